//! Receiving: long polls, redelivery, acknowledgement.

use rocketmq_embedded::Rpc;
use rocketmq_embedded::proto::Code;
use tokio::time::Instant;

use crate::client::{Client, attempt, receive};
use crate::{broker, secs};

#[tokio::test(start_paused = true)]
async fn a_sent_message_is_received_and_acknowledged_once() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    client.send_ids("t", &["m1"]).await;
    let message = client.receive(receive("g", "t")).await.only();
    assert_eq!(attempt(&message), 1);
    assert_eq!(client.ack_message("g", &message).await, Code::Ok);
    tokio::time::sleep(secs(60)).await;
    let none = client.receive(receive("g", "t")).await;
    assert_eq!(none.status().code(), Code::MessageNotFound);
    assert_eq!(none.status().message, "no new message");
    assert_eq!(broker.inspect("t", "g").acked, 1);
    assert_eq!(broker.acks().len(), 1);
    broker.assert_settings_first();
}

#[tokio::test(start_paused = true)]
async fn a_waiting_receive_wakes_when_a_message_arrives() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    let start = Instant::now();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.receive(receive("g", "t")).await }
    });
    tokio::time::sleep(secs(2)).await;
    assert_eq!(broker.live(0).parked_polls, 1);
    client.send_ids("t", &["m1"]).await;
    assert_eq!(waiting.await.unwrap().ids(), ["m1"]);
    assert_eq!(start.elapsed().as_secs(), 2);
    assert_eq!(broker.live(0).parked_polls, 0);
    assert_eq!(broker.record().count(Rpc::ReceiveMessage), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unsettled_message_comes_back_after_its_invisible_time_with_the_next_attempt() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    client.send_ids("t", &["m1"]).await;
    for expected in 1..=3 {
        let start = Instant::now();
        let mut request = receive("g", "t");
        request.long_polling_timeout = Some(crate::client::seconds(20));
        let message = client.receive(request).await.only();
        assert_eq!(attempt(&message), expected);
        let waited = start.elapsed().as_secs();
        assert_eq!(waited, if expected == 1 { 0 } else { 10 });
    }
}
