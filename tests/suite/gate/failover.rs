//! An endpoint of several addresses: settings are kept per proxy, so all calls go to one of them.

use rocketmq_actors::Client;

use super::*;

/// Topic `t`, whose one endpoint is that of both nodes.
fn topic_of_two(broker: &EmbeddedBroker) {
    broker.create_topic("t", TopicConfig::normal(QUEUES));
    let mut addresses = Vec::new();
    for node in 0..2 {
        let address = broker.node_endpoints(node);
        let (host, port) = address.rsplit_once(':').unwrap();
        addresses.push(pb::Address {
            host: host.to_owned(),
            port: port.parse().unwrap(),
        });
    }
    let endpoints = pb::Endpoints {
        scheme: pb::AddressScheme::IPv4 as i32,
        addresses,
    };
    let mut assignments = Vec::new();
    for id in 0..2 {
        assignments.push(pb::Assignment {
            message_queue: Some(pb::MessageQueue {
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
            }),
        });
    }
    broker.set_assignment("t", "g", assignments);
    broker.set_route("t", move |queues| {
        for queue in queues {
            queue.broker.as_mut().unwrap().endpoints = Some(endpoints.clone());
        }
    });
}

#[test]
fn polls_and_control_of_an_endpoint_reach_one_of_its_addresses_and_move_together() {
    virtually(async {
        for seed in 0..6 {
            let broker = broker(|builder| builder.nodes(2)).await;
            topic_of_two(&broker);
            let both = format!("{};{}", broker.node_endpoints(0), broker.node_endpoints(1));
            let config = config_at(&broker, &both).seed(seed).build().unwrap();
            let consumer = Client::new(config)
                .start(consumer_of(&["t"]))
                .await
                .unwrap();
            broker
                .wait_for(|record| record.count(Rpc::ReceiveMessage) > 0)
                .await;
            let used: Vec<_> = (0..2)
                .filter(|node| at(&broker.record(), *node).next().is_some())
                .collect();
            assert_eq!(used.len(), 1, "one of the addresses, by seed {seed}");
            let other = 1 - used[0];
            broker.refuse_connections(used[0], true);
            broker.reset_connections(used[0]);
            receiving(&broker, &[other]).await;
            assert_settings_first(&broker.record(), other);
            consumer.shutdown(Duration::ZERO).await;
        }
    });
}
