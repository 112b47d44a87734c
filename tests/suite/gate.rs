//! The gate: an endpoint is used only after its settings were applied. A test for each sentence
//! of that promise.

mod assigned;
mod changes;
mod failover;
mod generations;
mod log;
mod order;
mod quarantine;
mod sharing;
mod starting;

use std::time::Duration;

use rocketmq_actors::{Delivery, Filter, PushConsumerSpec};
use rocketmq_embedded::{Call, EmbeddedBroker, Record, Rpc, TopicConfig, proto as pb};

use super::harness::*;

/// Queues of a topic on each node.
const QUEUES: usize = 2;

/// A consumer of these topics, of group `g`, that takes whatever comes.
fn consumer_of(topics: &[&str]) -> PushConsumerSpec {
    let mut spec = PushConsumerSpec::builder("g");
    for topic in topics {
        spec = spec.subscribe(*topic, Filter::any());
    }
    spec.handler(|_: Delivery| async {}).build().unwrap()
}

/// A broker whose node 0 is the access point only: topic `t` is on the nodes after it.
async fn cluster(nodes: usize) -> Checked {
    let broker = broker(|builder| builder.nodes(nodes)).await;
    let rest: Vec<_> = (1..nodes).collect();
    topic(&broker, "t", &rest);
    broker
}

/// A topic on these nodes; all its queues are assigned to group `g`.
fn topic(broker: &EmbeddedBroker, topic: &str, nodes: &[usize]) {
    broker.create_topic(topic, TopicConfig::normal(QUEUES));
    route(broker, topic, nodes);
    assign(broker, topic, nodes);
}

/// The route of the topic names these nodes.
fn route(broker: &EmbeddedBroker, topic: &str, nodes: &[usize]) {
    let names: Vec<_> = nodes.iter().map(|node| format!("broker-{node}")).collect();
    broker.set_route(topic, move |queues| {
        queues.retain(|queue| {
            let broker = queue.broker.as_ref().unwrap();
            names.contains(&broker.name)
        });
    });
}

/// Assigns all queues of the topic on these nodes to group `g`.
fn assign(broker: &EmbeddedBroker, topic: &str, nodes: &[usize]) {
    let assignment = |node: &usize| {
        let address = broker.node_endpoints(*node);
        let (host, port) = address.rsplit_once(':').unwrap();
        pb::Assignment {
            message_queue: Some(pb::MessageQueue {
                topic: Some(pb::Resource {
                    name: topic.to_owned(),
                    ..Default::default()
                }),
                id: -1,
                permission: pb::Permission::ReadWrite as i32,
                broker: Some(pb::Broker {
                    name: format!("broker-{node}"),
                    id: 0,
                    endpoints: Some(pb::Endpoints {
                        scheme: pb::AddressScheme::IPv4 as i32,
                        addresses: vec![pb::Address {
                            host: host.to_owned(),
                            port: port.parse().unwrap(),
                        }],
                    }),
                }),
                accept_message_types: Vec::new(),
            }),
        }
    };
    let assignments = nodes.iter().map(assignment).collect();
    broker.set_assignment(topic, "g", assignments);
}

/// The calls that reached a node.
fn at(record: &Record, node: usize) -> impl DoubleEndedIterator<Item = &Call> {
    record.calls().filter(move |call| call.node == node)
}

/// How many calls of a method reached a node.
fn count(record: &Record, node: usize, rpc: Rpc) -> usize {
    at(record, node).filter(|call| call.rpc == rpc).count()
}

/// The settings come first, and everything else after the node has answered them.
#[track_caller]
fn assert_settings_first(record: &Record, node: usize) {
    let mut calls = at(record, node);
    let first = calls.next().expect("the node was used");
    assert_eq!(first.rpc, Rpc::Telemetry, "at node {node}");
    let answered = first.ended_at().expect("the settings were answered");
    for call in calls {
        assert!(
            call.rpc == Rpc::Telemetry || call.at >= answered,
            "{:?} reached node {node} at {:?}",
            call.rpc,
            call.elapsed
        );
    }
}

/// Waits until the consumer receives from these nodes.
async fn receiving(broker: &EmbeddedBroker, nodes: &[usize]) {
    broker
        .wait_for(|record| {
            nodes
                .iter()
                .all(|node| count(record, *node, Rpc::ReceiveMessage) > 0)
        })
        .await;
}

/// Waits until so many route queries of a topic were answered, and for what comes of that.
async fn queried(broker: &EmbeddedBroker, times: usize) {
    broker
        .wait_for(|record| {
            let queries = record.of(Rpc::QueryRoute);
            queries.filter(|call| call.outcome().is_some()).count() >= times
        })
        .await;
    tokio::time::sleep(MOMENT).await;
}

/// Longer than anything takes that waits for nothing.
const MOMENT: Duration = Duration::from_millis(20);
