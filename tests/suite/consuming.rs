//! A push consumer handles every message once, retries what failed, and dead-letters the rest.

use rocketmq_actors::{Delivery, Filter, Outcome, PushConsumerSpec};
use rocketmq_embedded::{GroupConfig, TopicConfig};

use super::harness::*;

#[test]
fn every_message_is_handled_and_acknowledged_once() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(4));
        store_numbered(&broker, "t", 300).await;
        let handled = Tally::default();
        let tally = handled.clone();
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(move |delivery: Delivery| {
                let tally = tally.clone();
                async move {
                    assert_eq!(delivery.body().as_ref(), delivery.message_id().as_bytes());
                    tally.add(delivery.message_id());
                }
            })
            .build()
            .unwrap();
        let client = client(&broker);
        let consumer = client.start(spec).await.unwrap();
        broker.wait_for(|_| broker.acks().len() == 300).await;
        assert_eq!((handled.ids(), handled.total()), (300, 300));
        let report = consumer.shutdown(secs(5)).await;
        assert!(report.in_time, "{report:?}");
        assert_eq!(report.abandoned, 0);
        let stats = consumer.stats();
        assert_eq!((stats.handled, stats.acked, stats.unsettled), (300, 300, 0));
        assert_eq!(
            (stats.tasks, stats.actors, stats.cached_bytes),
            (0, 0, 0),
            "{stats:?}"
        );
    });
}

#[test]
fn a_failed_message_comes_again_after_the_policys_delay_and_a_hopeless_one_is_dead_lettered() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        broker.create_group("g", GroupConfig::default().max_retries(2));
        store_numbered(&broker, "t", 10).await;
        let attempts = Tally::default();
        let tally = attempts.clone();
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(move |delivery: Delivery| {
                let tally = tally.clone();
                async move {
                    let attempt = tally.add(delivery.message_id());
                    assert_eq!(delivery.attempt(), u32::try_from(attempt).unwrap());
                    match delivery.message_id() {
                        "m3" if attempt == 1 => Outcome::Retry,
                        "m5" => panic!("a poison message"),
                        "m7" => Outcome::dead_letter("no use"),
                        _ => Outcome::Ack,
                    }
                }
            })
            .build()
            .unwrap();
        let consumer = client(&broker).start(spec).await.unwrap();
        broker
            .wait_for(|_| broker.dead_letters("g").len() == 2)
            .await;
        assert_eq!(attempts.of("m3"), 2);
        assert_eq!(attempts.of("m5"), 3, "the first delivery and two retries");
        assert_eq!(attempts.of("m7"), 1);
        consumer.shutdown(secs(5)).await;
    });
}
