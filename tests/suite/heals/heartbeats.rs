//! Heartbeats that are missed, and what is made anew.

use std::collections::HashSet;

use rocketmq_actors::{Client, Delivery, Filter, PushConsumer, PushConsumerSpec};
use rocketmq_embedded::{Call, EmbeddedBroker, Fault, Record, Rpc, TopicConfig, proto as pb};
use tokio::time::Instant;

use crate::harness::*;

/// Consumers of one client, each of a group of its own.
async fn consumers(broker: &EmbeddedBroker, client: &Client, count: usize) -> Vec<PushConsumer> {
    broker.create_topic("t", TopicConfig::normal(1));
    let mut consumers = Vec::new();
    for number in 0..count {
        let spec = PushConsumerSpec::builder(format!("g{number}"))
            .subscribe("t", Filter::any())
            .handler(|_: Delivery| async {});
        consumers.push(client.start(spec.build().unwrap()).await.unwrap());
    }
    consumers
}

fn times(record: &Record, rpc: Rpc) -> Vec<Instant> {
    record.of(rpc).map(|call| call.at).collect()
}

fn connections<'a>(calls: impl Iterator<Item = &'a Call>) -> HashSet<u64> {
    calls.map(|call| call.connection).collect()
}

#[test]
fn n25_a_missed_heartbeat_is_followed_by_a_probe_and_two_by_new_connections() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        let running = consumers(&broker, &client(&broker), 1).await;
        broker
            .wait_for(|_| broker.record().count(Rpc::Heartbeat) == 1)
            .await;
        broker.fault(Fault::on(Rpc::Heartbeat).hang().times(2));
        broker
            .wait_for(|_| broker.record().count(Rpc::Heartbeat) == 4)
            .await;
        let record = broker.record();
        let beats = times(&record, Rpc::Heartbeat);
        let answer_time = beats[2] - beats[1];
        assert!(
            answer_time <= secs(4),
            "probed as soon as it is missed: {answer_time:?}"
        );
        let after = record.of(Rpc::Heartbeat).nth(3).unwrap();
        let before = connections(record.of(Rpc::Heartbeat).take(3));
        assert!(!before.contains(&after.connection), "over a new connection");
        let opened: HashSet<_> = connections(record.of(Rpc::Telemetry));
        assert_eq!(opened.len(), 2, "one stream each");
        store_numbered(&broker, "t", 1).await;
        broker.wait_for(|_| broker.acks().len() == 1).await;
        drop(running);
    });
}

#[test]
fn one_missed_heartbeat_alone_changes_nothing() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        let _running = consumers(&broker, &client(&broker), 1).await;
        broker
            .wait_for(|_| broker.record().count(Rpc::Heartbeat) == 1)
            .await;
        broker.fault(Fault::on(Rpc::Heartbeat).hang().times(1));
        broker
            .wait_for(|_| broker.record().count(Rpc::Heartbeat) == 5)
            .await;
        let record = broker.record();
        assert_eq!(connections(record.of(Rpc::Heartbeat)).len(), 1);
        assert_eq!(connections(record.of(Rpc::Telemetry)).len(), 1);
    });
}

#[test]
fn members_of_a_client_that_all_miss_heartbeats_make_their_connections_anew_once() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        let client = client(&broker);
        let _running = consumers(&broker, &client, 3).await;
        broker
            .wait_for(|_| broker.record().count(Rpc::Heartbeat) == 3)
            .await;
        broker.fault(Fault::on(Rpc::Heartbeat).hang().times(6));
        broker
            .wait_for(|_| broker.record().count(Rpc::Heartbeat) == 15)
            .await;
        let used = connections(broker.record().of(Rpc::Heartbeat));
        assert_eq!(used.len(), 2, "the first and the one after it");
    });
}

#[test]
fn connections_are_made_anew_for_missed_heartbeats_at_most_once_in_thirty_seconds() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        let _running = consumers(&broker, &client(&broker), 1).await;
        broker
            .wait_for(|_| broker.record().count(Rpc::Heartbeat) == 1)
            .await;
        let began = Instant::now();
        broker.fault(Fault::on(Rpc::Heartbeat).hang().always());
        tokio::time::sleep(secs(300)).await;
        let streams: Vec<_> = times(&broker.record(), Rpc::Telemetry);
        let reopened = streams.iter().filter(|at| **at > began).count();
        assert!((5..=10).contains(&reopened), "{reopened}");
    });
}

#[test]
fn q16_a_heartbeat_that_tells_of_lost_settings_by_a_text_is_understood() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        let running = consumers(&broker, &client(&broker), 1).await;
        broker
            .wait_for(|_| broker.record().count(Rpc::Heartbeat) == 1)
            .await;
        broker.forget_settings(0, running[0].client_id());
        let lost = Fault::on(Rpc::Heartbeat).times(1);
        let text = "NullPointerException: because \"settings\" is null";
        broker.fault(lost.status(pb::Code::InternalServerError, text));
        let before = broker.record().count(Rpc::Telemetry);
        broker
            .wait_for(|_| broker.record().count(Rpc::Telemetry) > before)
            .await;
        store_numbered(&broker, "t", 1).await;
        broker.wait_for(|_| broker.acks().len() == 1).await;
    });
}
