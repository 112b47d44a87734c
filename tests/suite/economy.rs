//! How few requests a message costs: a guard against lost batching that no slow machine can trip.

use rocketmq_actors::{Delivery, Filter, PushConsumerSpec};
use rocketmq_embedded::{Rpc, TopicConfig};

use super::harness::*;

const MESSAGES: usize = 2_000;

#[test]
fn a_backlog_is_received_and_acknowledged_in_batches() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(8));
        store_numbered(&broker, "t", MESSAGES).await;
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .concurrency(64)
            .handler(|_: Delivery| async {})
            .build()
            .unwrap();
        let consumer = client(&broker).start(spec).await.unwrap();
        broker
            .wait_for(|_| broker.inspect("t", "g").acked == MESSAGES as u64)
            .await;
        let record = broker.record();
        let (acks, receives) = (
            record.count(Rpc::AckMessage),
            record.count(Rpc::ReceiveMessage),
        );
        consumer.shutdown(secs(5)).await;
        assert!(acks <= MESSAGES / 16, "{acks} ack requests");
        assert!(receives <= MESSAGES / 16, "{receives} receive requests");
    });
}
