//! A consumer that cannot take more holds up nobody else.

use rocketmq_actors::{Delivery, Filter, PushConsumerSpec};
use rocketmq_embedded::TopicConfig;

use super::harness::*;

/// Replies of so many queues are left unread.
const STALLED: usize = 12;

#[test]
fn replies_that_wait_for_room_hold_up_no_other_consumer_of_the_client() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("small", TopicConfig::normal(1));
        let body = vec![b'x'; 3 << 20];
        let large: Vec<_> = (0..STALLED).map(|n| format!("large-{n}")).collect();
        for topic in &large {
            broker.create_topic(topic, TopicConfig::normal(1));
            store(&broker, 0, vec![message(topic, "first", &body)]).await;
            store(&broker, 0, vec![message(topic, "second", &body)]).await;
        }
        let client = client(&broker);
        let stuck = large
            .iter()
            .fold(PushConsumerSpec::builder("stuck"), |stuck, topic| {
                stuck.subscribe(topic, Filter::any())
            })
            .max_cached_bytes(1 << 20)
            .handler(|_: Delivery| std::future::pending::<()>());
        let stuck = client.start(stuck.build().unwrap()).await.unwrap();
        broker
            .wait_for(|_| {
                let hidden = |topic| broker.inspect(topic, "stuck").in_flight > 0;
                large.iter().all(|topic| hidden(topic))
            })
            .await;
        let quick = Tally::default();
        let tally = quick.clone();
        let spec = PushConsumerSpec::builder("quick")
            .subscribe("small", Filter::any())
            .handler(move |delivery: Delivery| {
                tally.add(delivery.message_id());
                async {}
            });
        let consumer = client.start(spec.build().unwrap()).await.unwrap();
        store_numbered(&broker, "small", 3).await;
        let acked = broker.wait_for(|_| broker.acks().len() == 3);
        tokio::time::timeout(secs(5), acked).await.unwrap();
        assert_eq!(quick.ids(), 3);
        consumer.shutdown(secs(5)).await;
        stuck.shutdown(secs(0)).await;
    });
}
