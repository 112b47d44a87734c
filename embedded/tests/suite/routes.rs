//! Routes and assignments.

use rocketmq_embedded::proto::{AddressScheme, Assignment, Code, MessageType, Permission};
use rocketmq_embedded::{EmbeddedBroker, GroupConfig, TopicConfig};

use crate::broker;
use crate::client::Client;

async fn two_nodes() -> EmbeddedBroker {
    let builder = EmbeddedBroker::builder().in_memory().nodes(2);
    let broker = builder.start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(2));
    broker
}

#[tokio::test(start_paused = true)]
async fn a_route_names_every_queue_of_every_node_with_its_own_address() {
    let broker = two_nodes().await;
    let client = Client::of(&broker, "c");
    let route = client.route("t").await.unwrap();
    assert_eq!(route.status.unwrap().code(), Code::Ok);
    let queues: Vec<_> = route
        .message_queues
        .iter()
        .map(|queue| {
            let broker = queue.broker.clone().unwrap();
            let endpoints = broker.endpoints.unwrap();
            assert_eq!(endpoints.scheme(), AddressScheme::IPv4);
            assert_eq!(queue.permission(), Permission::ReadWrite);
            assert_eq!(broker.id, 0);
            let address = &endpoints.addresses[0];
            (
                broker.name,
                queue.id,
                format!("{}:{}", address.host, address.port),
            )
        })
        .collect();
    let expected = [
        ("broker-0", 0, "10.0.0.1:8081"),
        ("broker-0", 1, "10.0.0.1:8081"),
        ("broker-1", 0, "10.0.0.2:8081"),
        ("broker-1", 1, "10.0.0.2:8081"),
    ];
    let expected = expected.map(|(name, id, at)| (name.to_owned(), id, at.to_owned()));
    assert_eq!(queues, expected);
    assert_eq!(broker.endpoints(), "10.0.0.1:8081");
    assert_eq!(broker.node_endpoints(1), "10.0.0.2:8081");
}

#[tokio::test(start_paused = true)]
async fn a_mixed_topic_accepts_four_types_and_others_their_own() {
    let broker = broker().await;
    broker.create_topic("m", TopicConfig::mixed(1));
    broker.create_topic("d", TopicConfig::delay(1).permission(Permission::Read));
    let client = Client::of(&broker, "c");
    let mixed = client.route("m").await.unwrap().message_queues;
    let all: Vec<_> = mixed[0].accept_message_types().collect();
    use MessageType::{Delay, Fifo, Normal, Transaction};
    assert_eq!(all, [Normal, Fifo, Delay, Transaction]);
    let delay = client.route("d").await.unwrap().message_queues;
    assert_eq!(delay[0].accept_message_types().collect::<Vec<_>>(), [Delay]);
    assert_eq!(delay[0].permission(), Permission::Read);
}

#[tokio::test(start_paused = true)]
async fn unknown_and_illegal_topics_are_told_apart() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let long = "x".repeat(128);
    let cases = [
        (
            "nope",
            Code::TopicNotFound,
            "CODE: 17  DESC: No topic route info in name server for the topic: nope",
        ),
        ("", Code::IllegalTopic, "The specified topic is blank"),
        (
            "a b",
            Code::IllegalTopic,
            "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
        ),
        (
            long.as_str(),
            Code::IllegalTopic,
            "The specified topic is longer than topic max length 127.",
        ),
        ("TBW102", Code::IllegalTopic, "cannot access system topic"),
        (
            "rmq_sys_x",
            Code::IllegalTopic,
            "cannot access system topic",
        ),
    ];
    for (topic, code, text) in cases {
        let status = client.route(topic).await.unwrap().status.unwrap();
        assert_eq!((status.code(), status.message.as_str()), (code, text));
    }
    broker.delete_topic("t");
    let status = client.route("t").await.unwrap().status.unwrap();
    assert_eq!(status.code(), Code::TopicNotFound);
}

#[tokio::test(start_paused = true)]
async fn assignments_are_brokers_for_normal_groups_and_queues_for_ordered_ones() {
    let broker = two_nodes().await;
    broker.create_group("ordered", GroupConfig::default().fifo(true));
    let client = Client::of(&broker, "c");
    let ids = |assignments: &[Assignment]| -> Vec<(String, i32)> {
        assignments
            .iter()
            .map(|assignment| {
                let queue = assignment.message_queue.clone().unwrap();
                (queue.broker.unwrap().name, queue.id)
            })
            .collect()
    };
    let pair = |name: &str, id| (name.to_owned(), id);
    let normal = client.assignment("t", "never-seen").await;
    assert_eq!(
        ids(&normal.assignments),
        [pair("broker-0", -1), pair("broker-1", -1)]
    );
    let ordered = client.assignment("t", "ordered").await;
    assert_eq!(
        ids(&ordered.assignments),
        [
            pair("broker-0", 0),
            pair("broker-0", 1),
            pair("broker-1", 0),
            pair("broker-1", 1)
        ]
    );
    broker.set_assignment("t", "ordered", ordered.assignments[..1].to_vec());
    let one = client.assignment("t", "ordered").await;
    assert_eq!(ids(&one.assignments), [pair("broker-0", 0)]);
    broker.clear_assignment("t", "ordered");
    assert_eq!(client.assignment("t", "ordered").await.assignments.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_assignment_without_a_readable_queue_is_forbidden() {
    let broker = broker().await;
    broker.create_topic("w", TopicConfig::normal(1).permission(Permission::Write));
    let client = Client::of(&broker, "c");
    let status = client.assignment("w", "g").await.status.unwrap();
    assert_eq!(
        (status.code(), status.message.as_str()),
        (Code::Forbidden, "no readable queue")
    );
    let status = client.assignment("t", "").await.status.unwrap();
    assert_eq!(status.code(), Code::IllegalConsumerGroup);
}

#[tokio::test(start_paused = true)]
async fn routes_can_be_changed_and_addresses_advertised() {
    let broker = two_nodes().await;
    let client = Client::of(&broker, "c");
    broker.advertise(1, "proxy.example", 9999);
    let route = client.route("t").await.unwrap().message_queues;
    let endpoints = route[2].broker.clone().unwrap().endpoints.unwrap();
    assert_eq!(endpoints.scheme(), AddressScheme::DomainName);
    assert_eq!(endpoints.addresses[0].host, "proxy.example");
    assert_eq!(endpoints.addresses[0].port, 9999);
    broker.set_route("t", |queues| queues.truncate(1));
    assert_eq!(client.route("t").await.unwrap().message_queues.len(), 1);
    broker.clear_route("t");
    assert_eq!(client.route("t").await.unwrap().message_queues.len(), 4);
}
