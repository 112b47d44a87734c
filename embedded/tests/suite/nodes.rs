//! Nodes that stop, hang and come back.

use rocketmq_embedded::proto::Code;
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use tokio::time::timeout;

use crate::client::{Client, receive};
use crate::secs;

async fn two_nodes() -> EmbeddedBroker {
    let builder = EmbeddedBroker::builder().in_memory().nodes(2);
    let broker = builder.start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    broker
}

#[tokio::test(start_paused = true)]
async fn nodes_have_their_own_settings_and_messages() {
    let broker = two_nodes().await;
    let zero = Client::at(&broker, 0, "c");
    let one = Client::at(&broker, 1, "c");
    let _telemetry = zero.subscribe("g", "t").await;
    one.send_ids("t", &["m"]).await;
    assert_eq!(broker.messages("t")[0].node, 1);
    assert_eq!(
        one.heartbeat(Some("g")).await.code(),
        Code::UnrecognizedClientType
    );
    assert_eq!(
        zero.receive(receive("g", "t")).await.status().code(),
        Code::MessageNotFound
    );
    let mut by_name = receive("g", "t");
    let queue = by_name.message_queue.as_mut().unwrap();
    queue.broker = Some(rocketmq_embedded::proto::Broker {
        name: "broker-1".into(),
        ..rocketmq_embedded::proto::Broker::default()
    });
    let message = zero.receive(by_name).await.only();
    assert_eq!(
        zero.ack_message("g", &message).await,
        Code::Ok,
        "one node passes on to another"
    );
    assert_eq!(broker.inspect("t", "g").acked, 1);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_node_cuts_and_refuses_connections_and_comes_back_without_settings() {
    let broker = two_nodes().await;
    let client = Client::at(&broker, 1, "c");
    let mut telemetry = client.subscribe("g", "t").await;
    client.send_ids("t", &["m"]).await;
    broker.stop_node(1);
    telemetry.down.message().await.unwrap_err();
    client.route("t").await.unwrap_err();
    let refused = broker.connect("10.0.0.2", 8081).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert!(broker.connect("10.0.0.1", 8081).await.is_ok());
    assert!(broker.live(0).listening && !broker.live(1).listening);
    broker.start_node(1).await.unwrap();
    assert!(broker.live(1).listening);
    assert_eq!(
        client.heartbeat(Some("g")).await.code(),
        Code::UnrecognizedClientType
    );
    let _telemetry = client.subscribe("g", "t").await;
    assert_eq!(
        client.receive(receive("g", "t")).await.ids(),
        ["m"],
        "messages are kept"
    );
}

#[tokio::test(start_paused = true)]
async fn a_black_hole_takes_connections_and_answers_nothing_until_it_is_lifted() {
    let broker = two_nodes().await;
    let old = Client::of(&broker, "old");
    old.route("t").await.unwrap();
    broker.black_hole(0, true);
    assert!(timeout(secs(3600), old.route("t")).await.is_err());
    let new = Client::of(&broker, "new");
    assert!(timeout(secs(60), new.route("t")).await.is_err());
    assert!(Client::at(&broker, 1, "other").route("t").await.is_ok());
    let waiting = tokio::spawn(async move { old.route("t").await });
    tokio::time::sleep(secs(1)).await;
    broker.black_hole(0, false);
    assert!(waiting.await.unwrap().is_ok());
    assert!(new.route("t").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn connections_can_be_cut_and_counted() {
    let broker = two_nodes().await;
    let client = Client::of(&broker, "c");
    let mut telemetry = client.subscribe("g", "t").await;
    let live = broker.live(0);
    assert_eq!(
        (live.connections, live.telemetry_streams, live.clients),
        (1, 1, 1)
    );
    broker.reset_connections(0);
    telemetry.down.message().await.unwrap_err();
    broker
        .wait_for(|_| broker.live(0).telemetry_streams == 0)
        .await;
    assert_eq!(
        client.heartbeat(Some("g")).await.code(),
        Code::Ok,
        "settings are kept"
    );
    assert_eq!(broker.live(0).connections_accepted, 2);
}

#[tokio::test(start_paused = true)]
async fn everything_ends_with_the_last_handle_or_on_shutdown() {
    let broker = two_nodes().await;
    let connector = broker.connector();
    let client = Client::of(&broker, "c");
    let mut telemetry = client.subscribe("g", "t").await;
    let other = broker.clone();
    drop(broker);
    assert!(client.route("t").await.is_ok(), "there is another handle");
    drop(other);
    telemetry.down.message().await.unwrap_err();
    assert!(connector.connect("10.0.0.1", 8081).is_err());

    let broker = two_nodes().await;
    let client = Client::of(&broker, "c");
    let mut telemetry = client.subscribe("g", "t").await;
    broker.shutdown().await;
    telemetry.down.message().await.unwrap_err();
    assert_eq!(broker.live(0).connections, 0);
    assert_eq!(broker.live(0).telemetry_streams, 0);
    assert!(!broker.record().is_empty());
}

#[tokio::test(start_paused = true)]
async fn handles_can_be_shared_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    let broker = two_nodes().await;
    shared(&broker);
    shared(&broker.connector());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_refuses_connections_keeps_those_it_has() {
    let broker = two_nodes().await;
    let old = Client::of(&broker, "old");
    let _telemetry = old.subscribe("g", "t").await;
    broker.refuse_connections(0, true);
    assert!(!broker.live(0).listening);
    assert_eq!(old.heartbeat(Some("g")).await.code(), Code::Ok);
    let new = Client::of(&broker, "new");
    new.route("t").await.unwrap_err();
    broker.refuse_connections(0, false);
    assert!(new.route("t").await.is_ok());
}
