//! What a restart of an application's own actor leaves alone, and what a dropped handle does.

use actix::{Actor, Context, Handler, Message};
use rocketmq_actors::{ChildRef, ChildSpec, Place, Restart, Topology};

use super::harness::*;

/// Counts its lives.
struct Cat(Tally);

#[derive(Message)]
#[rtype(result = "usize")]
enum Ask {
    Lives,
    Die,
}

impl Actor for Cat {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        self.0.add("life");
    }
}

impl Handler<Ask> for Cat {
    type Result = usize;

    fn handle(&mut self, ask: Ask, _: &mut Self::Context) -> usize {
        match ask {
            Ask::Lives => self.0.of("life"),
            Ask::Die => std::panic::resume_unwind(Box::new("dead")),
        }
    }
}

fn app(cat: &ChildRef<Cat>, lives: &Tally) -> Topology {
    let lives = lives.clone();
    let child = ChildSpec::actor(cat, move || Cat(lives.clone())).restart(Restart::Permanent);
    Topology::named("app").place(Place::Here).child(child)
}

#[test]
fn addresses_recipients_and_weak_ones_and_queued_messages_survive_a_restart() {
    virtually(async {
        let (cat, lives) = (ChildRef::new("cat"), Tally::default());
        let app = app(&cat, &lives).start().await.unwrap();
        let address = cat.ready().await;
        let recipient = address.clone().recipient::<Ask>();
        let (weak, weak_recipient) = (address.downgrade(), recipient.downgrade());
        let queued = {
            address.do_send(Ask::Die);
            address.send(Ask::Lives)
        };
        assert_eq!(queued.await.unwrap(), 2, "queued behind the crash");
        assert_eq!(recipient.send(Ask::Lives).await.unwrap(), 2);
        let upgraded = weak.upgrade().unwrap();
        assert_eq!(upgraded.send(Ask::Lives).await.unwrap(), 2);
        let upgraded = weak_recipient.upgrade().unwrap();
        assert_eq!(upgraded.send(Ask::Lives).await.unwrap(), 2);
        assert!(address.connected());
        app.stop(secs(5)).await;
        assert!(!address.connected());
    });
}
