//! Topologies whose children refer to each other in ways that cannot work are refused before
//! anything starts, by a text that says what to change.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use actix::{Actor, Context, Handler};
use rocketmq_actors::{
    ChildRef, ChildSpec, Deliver, ErrorKind, Filter, MemberRef, Outcome, Place, Producer,
    ProducerSpec, PushConsumer, PushConsumerSpec, Topology,
};
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};

use super::harness::*;

struct Part;

impl Actor for Part {
    type Context = Context<Self>;
}

impl Handler<Deliver> for Part {
    type Result = Outcome;

    fn handle(&mut self, _: Deliver, _: &mut Self::Context) -> Outcome {
        Outcome::Ack
    }
}

/// Counts the actors it makes.
#[derive(Clone, Default)]
struct Parts(Arc<AtomicUsize>);

impl Parts {
    fn child(&self, reference: &ChildRef<Part>) -> ChildSpec {
        let made = self.0.clone();
        ChildSpec::actor(reference, move || {
            made.fetch_add(1, Ordering::AcqRel);
            Part
        })
    }

    /// Refuses it for this reason, having made none.
    async fn refuses(&self, topology: Topology, why: &str) {
        let error = topology.start().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        let text = error.to_string();
        assert!(text.contains(why), "{text}");
        assert_eq!(self.0.load(Ordering::Acquire), 0);
    }
}

fn app() -> Topology {
    Topology::named("app").place(Place::Here)
}

fn inner() -> Topology {
    Topology::named("inner")
}

fn billing(
    broker: &EmbeddedBroker,
    name: &MemberRef<PushConsumer>,
    handler: &ChildRef<Part>,
) -> ChildSpec {
    let spec = PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(handler.deliver())
        .build()
        .unwrap();
    ChildSpec::member(name, &client(broker), spec)
}

fn refs() -> [ChildRef<Part>; 3] {
    ["a", "b", "c"].map(ChildRef::new)
}

#[test]
fn what_a_child_needs_has_to_be_in_the_topology() {
    virtually(async {
        let ([a, b, _], parts) = (refs(), Parts::default());
        let out = MemberRef::<Producer>::new("out");
        let why = "app/a needs b, which is in no topology that runs: add ChildSpec::actor(&b, ..)";
        parts
            .refuses(app().child(parts.child(&a).needs(&b)), why)
            .await;
        let within = inner().child(parts.child(&a).needs(&out));
        let why = "app/inner/a needs out, which is in no topology that runs: add ChildSpec::member(&out, ..)";
        parts
            .refuses(app().child(ChildSpec::topology(within)), why)
            .await;
    });
}

#[test]
fn what_a_child_needs_has_to_be_started_before_it() {
    virtually(async {
        let ([a, b, c], parts) = (refs(), Parts::default());
        let late = app()
            .child(parts.child(&a).needs(&b))
            .child(parts.child(&b));
        let why = "app/a needs app/b, which is started after it: move app/b before app/a";
        parts.refuses(late, why).await;
        let [a2, b2] = ["a", "b"].map(ChildRef::new);
        let within = inner()
            .child(parts.child(&b2))
            .child(parts.child(&c).needs(&a2));
        let late = app()
            .child(ChildSpec::topology(within))
            .child(parts.child(&a2));
        let why = "move app/a before app/inner/c";
        parts.refuses(late, why).await;
    });
}

#[test]
fn a_reference_stands_for_one_child_only() {
    virtually(async {
        let ([a, ..], parts) = (refs(), Parts::default());
        let within = inner().child(parts.child(&a));
        let twice = app()
            .child(parts.child(&a))
            .child(ChildSpec::topology(within));
        let why = "app/a and app/inner/a have the same reference a";
        parts.refuses(twice, why).await;
        let other = ChildRef::new("a");
        let within = inner().child(parts.child(&other));
        let same_name = app()
            .child(parts.child(&a))
            .child(ChildSpec::topology(within));
        let app = same_name.start().await.unwrap();
        let error = app.add_to("inner", parts.child(&a)).await.unwrap_err();
        assert!(
            error.to_string().contains("app/a has the reference a"),
            "{error}"
        );
        app.stop(secs(5)).await;
    });
}

#[test]
fn children_that_wait_for_each_other_are_named_in_a_circle() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        let ([a, b, c], parts) = (refs(), Parts::default());
        let circle = app()
            .child(parts.child(&a).needs(&b))
            .child(parts.child(&b).needs(&c))
            .child(parts.child(&c).needs(&a));
        let why = "app/a needs app/b needs app/c needs app/a";
        parts.refuses(circle, why).await;
        let [a, ..] = refs();
        parts
            .refuses(app().child(parts.child(&a).needs(&a)), "app/a needs app/a")
            .await;
        let (name, [a, ..]) = (MemberRef::new("billing"), refs());
        let circle = app()
            .child(billing(&broker, &name, &a))
            .child(parts.child(&a).needs(&name));
        let why = "app/billing delivers to app/a needs app/billing";
        parts.refuses(circle, why).await;
        assert_eq!(broker.record().calls().count(), 0);
    });
}

#[test]
fn what_is_needed_may_be_anywhere_before_or_run_already() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let ([a, b, c], parts) = (refs(), Parts::default());
        let (out, name) = (MemberRef::<Producer>::new("out"), MemberRef::new("billing"));
        let producer = ProducerSpec::builder().topic("t").build().unwrap();
        let within = inner().child(parts.child(&a));
        let app = app()
            .child(ChildSpec::topology(within))
            .child(ChildSpec::member(&out, &client(&broker), producer))
            .child(parts.child(&b).needs(&a).needs(&out))
            .child(billing(&broker, &name, &b).needs(&b));
        let app = app.start().await.unwrap();
        app.add(parts.child(&c).needs(&a).needs(&name))
            .await
            .unwrap();
        let other = ChildRef::new("other");
        let second = Topology::named("second").place(Place::Here);
        let second = second.child(parts.child(&other).needs(&out));
        let second = second.start().await.unwrap();
        second.stop(secs(5)).await;
        app.stop(secs(60)).await;
        let late = ChildRef::new("late");
        let second = Topology::named("second").child(parts.child(&late).needs(&out));
        assert!(second.start().await.is_err(), "it has ended");
    });
}
