//! Each actor is made to panic under load: nothing is lost, the consumer goes on, the restart is
//! counted.

use rocketmq_actors::{Delivery, Filter, PushConsumer, PushConsumerSpec};
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};

use super::harness::*;

const MESSAGES: usize = 400;

async fn consuming(broker: &EmbeddedBroker, handled: &Tally) -> PushConsumer {
    let tally = handled.clone();
    let spec = PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .concurrency(8)
        .max_cached_messages(64)
        .handler(move |delivery: Delivery| {
            let tally = tally.clone();
            async move {
                tokio::time::sleep(millis(20)).await;
                tally.add(delivery.message_id());
            }
        })
        .build()
        .unwrap();
    client(broker).start(spec).await.unwrap()
}

/// Crashes one kind of actor in the middle of a backlog and again at its end.
fn survives_a_crash_of(actor: &'static str) {
    virtually(async move {
        let broker = broker(|builder| builder.nodes(2)).await;
        broker.create_topic("t", TopicConfig::normal(2));
        store_numbered(&broker, "t", MESSAGES).await;
        let handled = Tally::default();
        let consumer = consuming(&broker, &handled).await;
        broker
            .wait_for(|_| broker.acks().len() >= MESSAGES / 4)
            .await;
        consumer.crash(actor);
        broker.wait_for(|_| broker.acks().len() >= MESSAGES).await;
        assert_eq!(handled.ids(), MESSAGES, "every message was handled");
        assert!(
            consumer.stats().restarts >= 1,
            "the restart is counted: {:?}",
            consumer.stats()
        );
        let twice = handled.total() - MESSAGES;
        assert!(twice <= 64, "no more repeats than were in flight: {twice}");

        store(&broker, 1, vec![message("t", "late", b"late")]).await;
        broker.wait_for(|_| broker.acks().len() > MESSAGES).await;
        let report = consumer.shutdown(secs(5)).await;
        assert_eq!(report.abandoned, 0, "{report:?}");
        let stats = consumer.stats();
        assert_eq!(
            (stats.tasks, stats.actors, stats.cached_messages),
            (0, 0, 0),
            "{stats:?}"
        );
    });
}

#[test]
fn a_crash_of_the_route_actor_loses_nothing() {
    survives_a_crash_of("routes");
}

#[test]
fn a_crash_of_the_sessions_loses_nothing() {
    survives_a_crash_of("session");
}

#[test]
fn a_crash_of_the_consumer_actor_loses_nothing() {
    survives_a_crash_of("consumer");
}

#[test]
fn a_crash_of_the_process_queues_loses_nothing() {
    survives_a_crash_of("queue");
}

#[test]
fn a_consumer_whose_actor_crashes_too_often_fails_with_an_error_and_ends() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let consumer = consuming(&broker, &Tally::default()).await;
        let failed = async {
            loop {
                consumer.crash("consumer");
                tokio::time::sleep(secs(1)).await;
            }
        };
        let error = tokio::select! {
            error = consumer.failed() => error,
            () = failed => unreachable!(),
        };
        assert_eq!(error.kind(), rocketmq_actors::ErrorKind::GaveUp, "{error}");
        consumer.shutdown(secs(1)).await;
        let stats = consumer.stats();
        assert_eq!(
            (stats.tasks, stats.actors, stats.sessions),
            (0, 0, 0),
            "{stats:?}"
        );
    });
}
