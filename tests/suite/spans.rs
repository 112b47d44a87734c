//! Logs say which actor they come from.

use actix::{Actor, Context, Handler};
use rocketmq_actors::{
    ChildRef, ChildSpec, Deliver, Delivery, Filter, Outcome, Place, PushConsumerSpec, Topology,
};
use rocketmq_embedded::TopicConfig;
use tracing::level_filters::LevelFilter;

use super::{harness::*, log::Log};

/// Logs what it is given, and panics the first time.
struct Chatty(bool);

impl Actor for Chatty {
    type Context = Context<Self>;
}

impl Handler<Deliver> for Chatty {
    type Result = Outcome;

    fn handle(&mut self, _: Deliver, _: &mut Self::Context) -> Outcome {
        tracing::info!("the actor has it");
        assert!(!std::mem::replace(&mut self.0, false), "once");
        Outcome::Ack
    }
}

fn lines(log: &Log, what: &str) -> Vec<String> {
    let text = log.text();
    let lines = text.lines().filter(|line| line.contains(what));
    lines.map(ToOwned::to_owned).collect()
}

#[test]
fn what_an_actor_logs_is_within_the_span_of_its_path_and_generation() {
    virtually(async {
        let log = Log::start(LevelFilter::TRACE);
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let chatty = ChildRef::new("chatty");
        let once = std::sync::atomic::AtomicBool::new(true);
        let make = move || Chatty(once.swap(false, std::sync::atomic::Ordering::AcqRel));
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(chatty.deliver())
            .build()
            .unwrap();
        let app = Topology::named("app")
            .place(Place::Here)
            .child(ChildSpec::actor(&chatty, make))
            .child(ChildSpec::member("in", &client(&broker), spec));
        let app = app.start().await.unwrap();
        store_numbered(&broker, "t", 1).await;
        broker.wait_for(|_| broker.acks().len() == 1).await;
        let said = lines(&log, "the actor has it");
        let [first, second] = &said[..] else {
            panic!("{said:?}");
        };
        assert!(
            first.contains("actor{path=\"app/chatty\" generation=1}"),
            "{first}"
        );
        assert!(
            second.contains("actor{path=\"app/chatty\" generation=2}"),
            "{second}"
        );
        app.stop(secs(5)).await;
    });
}

#[test]
fn what_a_handler_logs_is_within_the_span_of_its_delivery_and_consumer() {
    virtually(async {
        let log = Log::start(LevelFilter::TRACE);
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(|_: Delivery| async { tracing::info!("the handler has it") })
            .build()
            .unwrap();
        let app = Topology::named("app").place(Place::Here);
        let app = app.child(ChildSpec::member("in", &client(&broker), spec));
        let app = app.start().await.unwrap();
        store_numbered(&broker, "t", 1).await;
        broker.wait_for(|_| broker.acks().len() == 1).await;
        let said = lines(&log, "the handler has it");
        let [said] = &said[..] else {
            panic!("{said:?}");
        };
        for part in [
            "actor{path=\"app/in/queue t@broker-0",
            "process{actor=\"app/in\"",
            "messaging.message.id=\"m0\"",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        app.stop(secs(5)).await;
    });
}
