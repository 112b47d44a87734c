//! Real ports and a real clock.

use std::time::Duration;

use rocketmq_embedded::proto::Code;
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use tonic::transport::Endpoint;

use crate::client::{Client, receive};

async fn connect(broker: &EmbeddedBroker) -> Client {
    let endpoint = Endpoint::try_from(format!("http://{}", broker.endpoints())).unwrap();
    Client::over(endpoint.connect_lazy(), "c")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_on_a_loopback_port_serves_clients() {
    let broker = EmbeddedBroker::start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(4));
    let client = connect(&broker).await;
    let _telemetry = client.subscribe("g", "t").await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.receive(receive("g", "t")).await }
    });
    broker.wait_for(|_| broker.live(0).parked_polls == 1).await;
    client.send_ids("t", &["m"]).await;
    let message = waiting.await.unwrap().only();
    assert_eq!(client.ack_message("g", &message).await, Code::Ok);
    let address = client.route("t").await.unwrap().message_queues[0]
        .broker
        .clone()
        .unwrap()
        .endpoints
        .unwrap()
        .addresses[0]
        .clone();
    assert_eq!(
        format!("{}:{}", address.host, address.port),
        broker.endpoints()
    );
    assert!(
        broker.connect(&address.host, 1).await.is_err(),
        "there are no pipes"
    );
    broker.shutdown().await;
    assert!(client.route("t").await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_node_refuses_connections_and_starts_on_its_old_port() {
    let broker = EmbeddedBroker::start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let client = connect(&broker).await;
    let mut telemetry = client.subscribe("g", "t").await;
    broker.stop_node(0);
    telemetry.down.message().await.unwrap_err();
    broker
        .wait_for(|_| !broker.live(0).listening && broker.live(0).connections == 0)
        .await;
    assert!(
        tokio::net::TcpStream::connect(broker.endpoints())
            .await
            .is_err()
    );
    broker.start_node(0).await.unwrap();
    let again = connect(&broker).await;
    assert!(again.route("t").await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_producers_and_consumers_lose_nothing() {
    let broker = EmbeddedBroker::start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(4));
    let mut tasks = Vec::new();
    for producer in 0..4 {
        let client = connect(&broker).await;
        tasks.push(tokio::spawn(async move {
            for n in 0..50 {
                client.send_ids("t", &[&format!("{producer}-{n}")]).await;
            }
        }));
    }
    for consumer in 0..4 {
        let mut client = connect(&broker).await;
        client.id = format!("c{consumer}");
        let broker = broker.clone();
        tasks.push(tokio::spawn(async move {
            let _telemetry = client.subscribe("g", "t").await;
            while broker.inspect("t", "g").acked < 200 {
                let received =
                    tokio::time::timeout(Duration::from_secs(1), client.receive(receive("g", "t")));
                for message in received
                    .await
                    .map(|received| received.messages())
                    .unwrap_or_default()
                {
                    assert_eq!(client.ack_message("g", &message).await, Code::Ok);
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let ids: std::collections::BTreeSet<_> = broker
        .acks()
        .into_iter()
        .map(|ack| ack.message_id)
        .collect();
    assert_eq!((ids.len(), broker.acks().len()), (200, 200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_refuses_resets_new_connections() {
    let broker = EmbeddedBroker::start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let old = connect(&broker).await;
    old.route("t").await.unwrap();
    broker.refuse_connections(0, true);
    let new = connect(&broker).await;
    new.route("t").await.unwrap_err();
    old.route("t").await.unwrap();
    broker.refuse_connections(0, false);
    new.route("t").await.unwrap();
}
