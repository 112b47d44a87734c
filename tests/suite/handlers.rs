//! Handlers that panic, and starts that are given up.

use actix::{Actor, Context, Handler, ResponseFuture};
use rocketmq_actors::{
    ChildRef, ChildSpec, Deliver, Delivery, Filter, MemberRef, Outcome, Place, PushConsumer,
    PushConsumerBuilder, PushConsumerSpec, Topology,
};
use rocketmq_embedded::{GroupConfig, TopicConfig};
use tokio::task::yield_now;

use super::harness::*;

fn blow() -> ! {
    std::panic::resume_unwind(Box::new("poison"));
}

/// The first time it comes, `m3` is poison.
fn is_poison(delivery: &Delivery, seen: &Tally) -> bool {
    seen.add(delivery.message_id()) == 1 && delivery.message_id() == "m3"
}

fn before_await(seen: Tally) -> PushConsumerBuilder {
    spec().handler(move |delivery: Delivery| {
        if is_poison(&delivery, &seen) {
            blow();
        }
        async {}
    })
}

fn after_await(seen: Tally) -> PushConsumerBuilder {
    spec().handler(move |delivery: Delivery| {
        let seen = seen.clone();
        async move {
            tokio::time::sleep(millis(5)).await;
            if is_poison(&delivery, &seen) {
                blow();
            }
        }
    })
}

fn spec() -> PushConsumerBuilder {
    PushConsumerSpec::builder("g").subscribe("t", Filter::any())
}

/// An actor whose handling panics at once or later, or is dropped with the actor.
#[derive(Clone)]
struct Fragile {
    seen: Tally,
    at_once: bool,
}

impl Actor for Fragile {
    type Context = Context<Self>;
}

impl Handler<Deliver> for Fragile {
    type Result = ResponseFuture<Outcome>;

    fn handle(&mut self, order: Deliver, _: &mut Self::Context) -> Self::Result {
        let poison = is_poison(&order.delivery, &self.seen);
        if poison && self.at_once {
            blow();
        }
        Box::pin(async move {
            tokio::time::sleep(millis(5)).await;
            if poison {
                blow();
            }
            Outcome::Ack
        })
    }
}

/// All eight messages are handled, and only the poison twice.
async fn all_handled(broker: &Checked, seen: &Tally) {
    broker.wait_for(|_| broker.acks().len() == 8).await;
    assert_eq!((seen.ids(), seen.of("m3")), (8, 2));
}

async fn broker_with_messages() -> Checked {
    let broker = broker(|builder| builder).await;
    broker.create_topic("t", TopicConfig::normal(1));
    broker.create_group("g", GroupConfig::default().max_retries(16));
    store_numbered(&broker, "t", 8).await;
    broker
}

#[test]
fn n99_a_panic_in_a_closure_is_a_failed_delivery_and_the_others_go_on() {
    for make in [before_await, after_await] {
        virtually(async {
            let broker = broker_with_messages().await;
            let seen = Tally::default();
            let spec = make(seen.clone()).build().unwrap();
            let consumer = client(&broker).start(spec).await.unwrap();
            all_handled(&broker, &seen).await;
            let stats = consumer.stats();
            assert_eq!((stats.failed, stats.handled), (1, 8), "{stats:?}");
            consumer.shutdown(secs(5)).await;
        });
    }
}

#[test]
fn n99_a_panic_in_an_actor_is_a_failed_delivery_and_the_others_go_on() {
    for at_once in [true, false] {
        virtually(async {
            let broker = broker_with_messages().await;
            let seen = Tally::default();
            let fragile = ChildRef::new("fragile");
            let made = Fragile {
                seen: seen.clone(),
                at_once,
            };
            let input = MemberRef::<PushConsumer>::new("in");
            let spec = spec().concurrency(1).handler(fragile.deliver()).build();
            let app = Topology::named("app")
                .place(Place::Here)
                .child(ChildSpec::actor(&fragile, move || made.clone()))
                .child(ChildSpec::member(&input, &client(&broker), spec.unwrap()));
            let app = app.start().await.unwrap();
            all_handled(&broker, &seen).await;
            assert_eq!(input.ready().await.stats().failed, 1, "at once: {at_once}");
            assert!(app.stop(secs(60)).await.in_time);
        });
    }
}

#[test]
fn n94_starts_given_up_at_any_moment_leave_nothing_behind() {
    virtually(async {
        let broker = broker_with_messages().await;
        let client = client(&broker);
        for turns in 0..150 {
            let seen = Tally::default();
            let given_up = async {
                for _ in 0..turns {
                    yield_now().await;
                }
            };
            tokio::select! {
                biased;
                () = given_up => {}
                started = client.start(after_await(seen).build().unwrap()) => {
                    drop(started.unwrap());
                }
            }
        }
        broker.wait_for(|_| broker.live(0).parked_polls == 0).await;
        let seen = Tally::default();
        let consumer = client
            .start(before_await(seen).build().unwrap())
            .await
            .unwrap();
        store_numbered(&broker, "t", 1).await;
        broker.wait_for(|_| !broker.acks().is_empty()).await;
        consumer.shutdown(secs(5)).await;
        let stats = consumer.stats();
        assert_eq!((stats.tasks, stats.actors), (0, 0), "{stats:?}");
    });
}
