//! Delayed messages.

use std::time::{Duration, UNIX_EPOCH};

use prost_types::Timestamp;
use rocketmq_embedded::proto::{Code, MessageType};
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use tokio::time::Instant;

use crate::client::{Client, Telemetry, message, properties, receive, seconds, with};
use crate::secs;

async fn delayed() -> (EmbeddedBroker, Client, Telemetry) {
    let broker = EmbeddedBroker::builder().in_memory().start().await.unwrap();
    broker.create_topic("d", TopicConfig::delay(1));
    let client = Client::of(&broker, "c");
    let telemetry = client.subscribe("g", "d").await;
    (broker, client, telemetry)
}

fn at(broker: &EmbeddedBroker, later: Duration) -> Timestamp {
    let wall = (broker.now() + later).duration_since(UNIX_EPOCH).unwrap();
    Timestamp {
        seconds: wall.as_secs().try_into().unwrap(),
        nanos: wall.subsec_nanos().try_into().unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_delayed_message_wakes_a_receive_when_it_is_due_and_not_before() {
    let (broker, client, _telemetry) = delayed().await;
    let due = at(&broker, secs(7));
    let sent = client
        .send(vec![with(message("d", "m"), |p| {
            p.delivery_timestamp = Some(due)
        })])
        .await;
    let recall = &sent.entries[0].recall_handle;
    let text = data_encoding::BASE64URL.decode(recall.as_bytes()).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.starts_with("v1 d broker-0 ") && text.ends_with(" m"),
        "{text}"
    );
    assert_eq!(broker.inspect("d", "g").delayed, 1);
    assert_eq!(broker.inspect("d", "g").stored, 0);
    let start = Instant::now();
    let mut request = receive("g", "d");
    request.long_polling_timeout = Some(seconds(20));
    let received = client.receive(request).await.only();
    let waited = start.elapsed();
    assert!(
        waited >= Duration::from_millis(6_998) && waited <= Duration::from_millis(7_010),
        "{waited:?}"
    );
    let p = properties(&received);
    assert_eq!(p.message_type(), MessageType::Delay);
    assert_eq!(p.delivery_timestamp, Some(due));
    assert_eq!(broker.inspect("d", "g").delayed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_time_that_is_past_means_at_once_and_no_recall() {
    let (_broker, client, _telemetry) = delayed().await;
    let past = Timestamp {
        seconds: 1,
        nanos: 0,
    };
    let sent = client
        .send(vec![with(message("d", "m"), |p| {
            p.delivery_timestamp = Some(past)
        })])
        .await;
    assert_eq!(sent.entries[0].recall_handle, "");
    assert_eq!(client.receive(receive("g", "d")).await.ids(), ["m"]);
}

#[tokio::test(start_paused = true)]
async fn a_day_is_the_longest_delay() {
    let (broker, client, _telemetry) = delayed().await;
    let day = secs(24 * 3600);
    for (delay, code) in [(day, Code::Ok), (day + secs(1), Code::IllegalDeliveryTime)] {
        let due = at(&broker, delay);
        let sent = client
            .send(vec![with(message("d", "m"), |p| {
                p.delivery_timestamp = Some(due)
            })])
            .await;
        assert_eq!(sent.status.unwrap().code(), code);
    }
}

async fn recall(client: &Client, topic: &str, handle: &str) -> (Code, String) {
    let request = client.request(rocketmq_embedded::proto::RecallMessageRequest {
        topic: crate::client::resource(topic),
        recall_handle: handle.to_owned(),
    });
    let reply = client.grpc.clone().recall_message(request).await;
    let reply = reply.unwrap().into_inner();
    let status = reply.status.unwrap();
    (status.code(), status.message + &reply.message_id)
}

#[tokio::test(start_paused = true)]
async fn a_recalled_message_is_never_delivered() {
    let builder = EmbeddedBroker::builder().in_memory().recall(true);
    let broker = builder.start().await.unwrap();
    broker.create_topic("d", TopicConfig::delay(1));
    broker.create_topic("e", TopicConfig::delay(1));
    broker.create_topic("n", TopicConfig::normal(1));
    let client = Client::of(&broker, "c");
    let due = at(&broker, secs(7));
    let sent = client
        .send(vec![with(message("d", "m"), |p| {
            p.delivery_timestamp = Some(due)
        })])
        .await;
    let handle = &sent.entries[0].recall_handle;
    let error = Code::InternalServerError;
    assert_eq!(
        recall(&client, "n", handle).await.0,
        Code::MessagePropertyConflictWithType
    );
    assert_eq!(
        recall(&client, "d", "x").await,
        (error, "recall handle is invalid".into())
    );
    assert_eq!(
        recall(&client, "e", handle).await,
        (error, "recall failed, topic not match".into())
    );
    for _ in 0..2 {
        assert_eq!(recall(&client, "d", handle).await, (Code::Ok, "OKm".into()));
    }
    tokio::time::sleep(secs(8)).await;
    assert_eq!(broker.inspect("d", "g").stored, 0);
    assert_eq!(
        recall(&client, "d", handle).await,
        (error, "recall failed, timestamp invalid".into())
    );
}
