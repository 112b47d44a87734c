//! How a client starts on the real server: what is accepted, and what is refused how.

use std::time::Duration;

use rocketmq_actors::{
    Client, ClientConfig, Delivery, Error, ErrorKind, Filter, Message, ProducerSpec, PushConsumer,
    PushConsumerSpec, Tls, TlsOptions,
};
use tokio::sync::mpsc;

use crate::shared::GRACE;
use crate::support::RealServer;

fn client(tls: Tls) -> Client {
    let server = RealServer::from_env();
    let config = ClientConfig::builder(server.endpoints()).tls(tls);
    Client::new(config.build().unwrap())
}

/// A consumer that passes on the bodies it gets.
async fn consume(
    client: &Client,
    topic: &str,
    group: &str,
) -> Result<(PushConsumer, mpsc::UnboundedReceiver<Vec<u8>>), Error> {
    let (pass, bodies) = mpsc::unbounded_channel();
    let spec = PushConsumerSpec::builder(group)
        .subscribe(topic, Filter::any())
        .handler(move |delivery: Delivery| {
            let passed = pass.send(delivery.body().to_vec());
            async move { passed.map_err(|_| "nobody looks") }
        });
    let consumer = client.start(spec.build().unwrap()).await?;
    Ok((consumer, bodies))
}

/// A message from a producer to a consumer.
async fn round_trip(client: &Client, topic: &str, group: &str) {
    let (consumer, mut bodies) = consume(client, topic, group).await.unwrap();
    let spec = ProducerSpec::builder().topic(topic).build().unwrap();
    let producer = client.start(spec).await.unwrap();
    let message = Message::builder(topic).body("there and back").build();
    producer.send(message.unwrap()).await.unwrap();
    let received = tokio::time::timeout(Duration::from_secs(60), bodies.recv()).await;
    assert_eq!(received.unwrap().unwrap(), b"there and back");
    producer.shutdown(GRACE).await;
    let report = consumer.shutdown(GRACE).await;
    assert!(report.in_time && report.abandoned == 0, "{report:?}");
}

#[tokio::test]
async fn the_proxys_own_certificate_is_not_trusted() {
    let client = client(Tls::default());
    let refused = consume(&client, "s-tls", "s-tls").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Tls, "{refused}");
    let spec = ProducerSpec::builder().topic("s-tls").build().unwrap();
    let refused = client.start(spec).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Tls, "{refused}");
}

#[tokio::test]
async fn the_proxys_own_certificate_serves_whoever_skips_verification() {
    let tls = Tls::On(TlsOptions::default().dangerously_skip_verification());
    round_trip(&client(tls), "s-tls", "s-tls").await;
}

#[tokio::test]
async fn cluster_mode_starts_a_consumer_of_a_group_that_nobody_listed() {
    round_trip(&client(Tls::Off), "s-unlisted", "s-not-listed").await;
}
