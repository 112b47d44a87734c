//! A day in the life of a client at its defaults, and what is left after it: nothing.

use std::collections::BTreeMap;

use rocketmq_actors::{Delivery, Filter, ProducerSpec, PushConsumer, PushConsumerSpec};
use rocketmq_embedded::{EmbeddedBroker, RequestBody, Rpc, TopicConfig, proto as pb};

use super::harness::*;

const DAY: u64 = 24 * 3600;

async fn idle_consumer(broker: &EmbeddedBroker) -> PushConsumer {
    let spec = PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(|_: Delivery| async {})
        .build()
        .unwrap();
    client(broker).start(spec).await.unwrap()
}

/// Calls of one client by kind and node.
type Traffic = BTreeMap<(String, usize), u64>;

fn traffic(broker: &EmbeddedBroker, client_id: &str) -> Traffic {
    let mut traffic = Traffic::new();
    for call in broker.record().calls() {
        if call.client_id == client_id {
            *traffic
                .entry((format!("{:?}", call.rpc), call.node))
                .or_default() += 1;
        }
    }
    traffic
}

fn within(traffic: &Traffic, kind: &str, node: usize, least: u64, most: u64) {
    let calls = traffic.get(&(kind.to_owned(), node)).copied().unwrap_or(0);
    assert!(
        (least..=most).contains(&calls),
        "{kind} at {node}: {calls}, not {least} to {most}"
    );
}

#[test]
fn a_day_of_idling_costs_the_calls_of_the_traffic_table() {
    virtually(async {
        let broker = broker(|builder| builder.nodes(2)).await;
        broker.create_topic("t", TopicConfig::normal(4));
        let consumer = idle_consumer(&broker).await;
        let spec = ProducerSpec::builder().topic("t").build().unwrap();
        let producer = client(&broker).start(spec).await.unwrap();
        tokio::time::sleep(secs(DAY)).await;
        let consuming = traffic(&broker, consumer.client_id());
        let producing = traffic(&broker, producer.client_id());
        for node in 0..2 {
            for traffic in [&consuming, &producing] {
                within(traffic, "Heartbeat", node, DAY / 10 - 100, DAY / 10 + 1);
                // One stream for the whole day, and the settings on it every five minutes.
                within(traffic, "Telemetry", node, DAY / 300 - 5, DAY / 300 + 2);
            }
            within(&consuming, "ReceiveMessage", node, DAY / 20 - 50, DAY / 19);
            let live = broker.live(node);
            assert_eq!(
                (live.telemetry_streams, live.telemetry_streams_opened),
                (2, 2)
            );
        }
        for traffic in [&consuming, &producing] {
            within(traffic, "QueryRoute", 0, DAY / 30 - 20, DAY / 30 + 2);
        }
        within(&consuming, "QueryAssignment", 0, DAY / 5 - 200, DAY / 5 + 2);
        assert_eq!(consuming.len(), 8, "and nothing else: {consuming:?}");
        assert_eq!(producing.len(), 5, "and nothing else: {producing:?}");
        consumer.shutdown(secs(5)).await;
        producer.shutdown(secs(5)).await;
    });
}

#[test]
fn n32_termination_is_the_last_call_and_names_the_group() {
    virtually(async {
        let broker = broker(|builder| builder.nodes(2)).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let consumer = idle_consumer(&broker).await;
        tokio::time::sleep(secs(3)).await;
        consumer.shutdown(secs(5)).await;
        tokio::time::sleep(secs(120)).await;
        let record = broker.record();
        for node in 0..2 {
            let last = record.calls().rfind(|call| call.node == node).unwrap();
            assert_eq!(last.rpc, Rpc::NotifyClientTermination);
            let RequestBody::NotifyClientTermination(request) = &last.request else {
                panic!("{last:?}");
            };
            assert_eq!(request.group.as_ref().unwrap().name, "g");
            assert!(last.answered(pb::Code::Ok), "{last:?}");
            assert_eq!(
                broker.live(node).telemetry_streams,
                0,
                "telemetry was closed"
            );
        }
    });
}

#[test]
fn an_idle_channel_is_gone_after_half_an_hour_and_its_session_with_it() {
    virtually(async {
        let broker = broker(|builder| builder.nodes(2)).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let consumer = idle_consumer(&broker).await;
        tokio::time::sleep(secs(60)).await;
        assert_eq!(consumer.stats().sessions, 2);
        // Node 1 leaves: the route and the assignments name node 0 only.
        broker.set_route("t", |queues| {
            queues.retain(|queue| {
                queue
                    .broker
                    .as_ref()
                    .is_some_and(|broker| broker.name == "broker-0")
            });
        });
        let address = broker.node_endpoints(0);
        let left = assignment_at(&address);
        broker.set_assignment("t", "g", vec![left]);
        tokio::time::sleep(secs(20 * 60)).await;
        assert!(broker.live(1).connections > 0, "not idle for long enough");
        tokio::time::sleep(secs(15 * 60)).await;
        assert_eq!(broker.live(1).connections, 0, "the idle channel is closed");
        assert_eq!(consumer.stats().sessions, 1);
        assert!(broker.live(0).connections > 0, "the other is not");
        consumer.shutdown(secs(5)).await;
    });
}

fn assignment_at(address: &str) -> pb::Assignment {
    let (host, port) = address.rsplit_once(':').unwrap();
    pb::Assignment {
        message_queue: Some(pb::MessageQueue {
            topic: Some(pb::Resource {
                name: "t".to_owned(),
                ..Default::default()
            }),
            id: -1,
            permission: pb::Permission::ReadWrite as i32,
            broker: Some(pb::Broker {
                name: "broker-0".to_owned(),
                id: 0,
                endpoints: Some(pb::Endpoints {
                    scheme: pb::AddressScheme::IPv4 as i32,
                    addresses: vec![pb::Address {
                        host: host.to_owned(),
                        port: port.parse().unwrap(),
                    }],
                }),
            }),
            ..Default::default()
        }),
    }
}

#[test]
fn after_a_plain_drop_nothing_is_left() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        store_numbered(&broker, "t", 50).await;
        let alive = std::sync::Arc::new(());
        let held = alive.clone();
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(move |_: Delivery| {
                let held = held.clone();
                async move {
                    std::future::pending::<()>().await;
                    drop(held);
                }
            })
            .build()
            .unwrap();
        let client = client(&broker);
        let consumer = client.start(spec).await.unwrap();
        broker.wait_for(|_| broker.deliveries().len() == 50).await;
        drop((consumer, client));
        broker
            .wait_for(|record| record.count(Rpc::NotifyClientTermination) == 1)
            .await;
        tokio::time::sleep(secs(2)).await;
        assert_eq!(
            std::sync::Arc::strong_count(&alive),
            1,
            "no handler, no actor, no task"
        );
        let live = broker.live(0);
        assert_eq!(
            (live.connections, live.telemetry_streams),
            (0, 0),
            "no connection is left"
        );
        // And others get the messages at once.
        let second = Tally::default();
        let tally = second.clone();
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(move |delivery: Delivery| {
                tally.add(delivery.message_id());
                async {}
            })
            .build()
            .unwrap();
        let consumer = self::client(&broker).start(spec).await.unwrap();
        broker.wait_for(|_| broker.acks().len() == 50).await;
        assert_eq!(second.ids(), 50);
        consumer.shutdown(secs(5)).await;
    });
}
