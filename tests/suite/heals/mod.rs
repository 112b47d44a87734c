//! It heals: routes, sessions and transport under faults. Tests carry the numbers of the reports
//! whose recurrence they prevent.

mod heartbeats;
mod periodic;
mod routes;
mod sessions;
mod telemetry;
mod transport;

use rocketmq_actors::{Delivery, Filter, PushConsumerSpec};
use rocketmq_embedded::{EmbeddedBroker, Record, Rpc, TopicConfig, proto as pb};
use tokio::time::Instant;

use super::harness::*;

/// A consumer of topic `t` in group `g` that takes whatever comes.
fn consumer() -> PushConsumerSpec {
    PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(|_: Delivery| async {})
        .build()
        .unwrap()
}

/// When calls of a method reached a node.
fn times(record: &Record, node: usize, rpc: Rpc) -> Vec<Instant> {
    let there = record.of(rpc).filter(|call| call.node == node);
    there.map(|call| call.at).collect()
}

/// Topic `t` with eight queues on node 0, each of which is polled by itself.
fn eight_queues(broker: &EmbeddedBroker) {
    broker.create_topic("t", TopicConfig::normal(8));
    let ids: Vec<_> = (0..8).collect();
    broker.set_assignment("t", "g", assignments(broker, &ids));
}

/// These queues of topic `t` on node 0.
fn assignments(broker: &EmbeddedBroker, ids: &[i32]) -> Vec<pb::Assignment> {
    let address = broker.node_endpoints(0);
    let (host, port) = address.rsplit_once(':').unwrap();
    let endpoints = pb::Endpoints {
        scheme: pb::AddressScheme::IPv4 as i32,
        addresses: vec![pb::Address {
            host: host.to_owned(),
            port: port.parse().unwrap(),
        }],
    };
    let queue = |id: i32| pb::MessageQueue {
        topic: Some(pb::Resource {
            name: "t".to_owned(),
            ..Default::default()
        }),
        id,
        permission: pb::Permission::ReadWrite as i32,
        broker: Some(pb::Broker {
            name: "broker-0".to_owned(),
            id: 0,
            endpoints: Some(endpoints.clone()),
        }),
        accept_message_types: Vec::new(),
    };
    let assignment = |id: &i32| pb::Assignment {
        message_queue: Some(queue(*id)),
    };
    ids.iter().map(assignment).collect()
}
