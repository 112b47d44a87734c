//! Acknowledging, changing invisible times, dead letters.

use std::time::Duration;

use rocketmq_embedded::proto as pb;
use rocketmq_embedded::proto::{Code, MessageType};
use rocketmq_embedded::{EmbeddedBroker, GroupConfig, TopicConfig};
use tokio::time::Instant;

use crate::client::{Client, Telemetry, attempt, handle, message, properties, receive};
use crate::{broker, secs};

/// A consumer that has received `m`, attempt 1, for ten seconds.
async fn holding(broker: &EmbeddedBroker) -> (Client, Telemetry, pb::Message) {
    let client = Client::of(broker, "c");
    let telemetry = client.subscribe("g", "t").await;
    client.send_ids("t", &["m"]).await;
    let message = client.receive(receive("g", "t")).await.only();
    (client, telemetry, message)
}

async fn code_of_ack(client: &Client, handle: &str) -> (Code, String) {
    let status = client.ack("g", "t", &[("m", handle)]).await.status.unwrap();
    (status.code(), status.message)
}

/// The next delivery, and how long it took.
async fn next(client: &Client) -> (pb::Message, u64) {
    let start = Instant::now();
    let mut request = receive("g", "t");
    request.long_polling_timeout = Some(crate::client::seconds(20));
    let message = client.receive(request).await.only();
    (message, start.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn acknowledging_twice_or_for_another_group_is_ok_and_does_nothing() {
    let broker = broker().await;
    let (client, _telemetry, message) = holding(&broker).await;
    assert_eq!(client.ack_message("other", &message).await, Code::Ok);
    assert_eq!(broker.inspect("t", "g").in_flight, 1);
    assert_eq!(client.ack_message("g", &message).await, Code::Ok);
    assert_eq!(client.ack_message("g", &message).await, Code::Ok);
    assert_eq!(broker.inspect("t", "g").acked, 1);
    assert_eq!(broker.acks().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn handles_are_refused_when_expired_malformed_unknown_or_out_of_range() {
    let broker = broker().await;
    let (client, _telemetry, message) = holding(&broker).await;
    let handle = handle(&message);
    let replace = |index: usize, value: &str| {
        let mut fields: Vec<&str> = handle.split(' ').collect();
        fields[index] = value;
        fields.join(" ")
    };
    let (code, text) = code_of_ack(&client, "a b c").await;
    assert_eq!(
        (code, text.starts_with("Parse failed, dataList size 3")),
        (Code::InternalServerError, true)
    );
    let (code, text) = code_of_ack(&client, &replace(5, "zzz")).await;
    assert_eq!(
        (code, text.as_str()),
        (Code::InvalidReceiptHandle, "cannot find broker zzz")
    );
    for out_of_range in [replace(6, "9"), replace(7, "9")] {
        let (code, text) = code_of_ack(&client, &out_of_range).await;
        assert_eq!(
            (code, text.as_str()),
            (Code::InternalServerError, "ack failed: status is abnormal")
        );
    }
    tokio::time::sleep(secs(10)).await;
    let (code, text) = code_of_ack(&client, &handle).await;
    assert_eq!(code, Code::InvalidReceiptHandle);
    assert!(text.ends_with("receipt handle is expired"));
    let none = client.ack("g", "t", &[]).await.status.unwrap();
    assert_eq!(
        (none.code(), none.message.as_str()),
        (Code::InternalServerError, "ack message result is empty")
    );
}

#[tokio::test(start_paused = true)]
async fn every_entry_of_an_acknowledgement_has_its_own_result() {
    let broker = broker().await;
    let (client, _telemetry, message) = holding(&broker).await;
    let reply = client
        .ack("g", "t", &[("m", &handle(&message)), ("x", "bad")])
        .await;
    assert_eq!(reply.status.unwrap().code(), Code::MultipleResults);
    let codes: Vec<_> = reply
        .entries
        .iter()
        .map(|e| e.status.as_ref().unwrap().code())
        .collect();
    assert_eq!(codes, [Code::Ok, Code::InternalServerError]);
    assert_eq!(reply.entries[1].message_id, "x");
    assert_eq!(broker.inspect("t", "g").acked, 1);
}

#[tokio::test(start_paused = true)]
async fn a_changed_invisible_time_gives_a_new_handle_and_kills_the_old_one() {
    let broker = broker().await;
    let (client, _telemetry, first) = holding(&broker).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let changed = client.change("g", &first, &handle(&first), 30, false).await;
    assert_eq!(changed.status.unwrap().code(), Code::Ok);
    assert_ne!(changed.receipt_handle, handle(&first));
    assert_eq!(
        client.ack_message("g", &first).await,
        Code::Ok,
        "though it settles nothing"
    );
    assert_eq!(broker.inspect("t", "g").in_flight, 1);
    assert_eq!(
        code_of_ack(&client, &changed.receipt_handle).await.0,
        Code::Ok
    );
    assert_eq!(broker.inspect("t", "g").in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_made_visible_comes_back_as_the_next_attempt_or_the_same_if_suspended() {
    let broker = broker().await;
    let (client, _telemetry, first) = holding(&broker).await;
    client.change("g", &first, &handle(&first), 0, false).await;
    let (second, waited) = next(&client).await;
    assert_eq!((attempt(&second), waited), (2, 0));
    client.change("g", &second, &handle(&second), 5, true).await;
    let (third, waited) = next(&client).await;
    assert_eq!((attempt(&third), waited), (2, 5));
    assert_eq!(properties(&third).message_id, "m");
}

#[tokio::test(start_paused = true)]
async fn changing_after_acknowledging_brings_the_message_back_to_life() {
    let broker = broker().await;
    let (client, _telemetry, first) = holding(&broker).await;
    assert_eq!(client.ack_message("g", &first).await, Code::Ok);
    let changed = client.change("g", &first, &handle(&first), 1, false).await;
    assert_eq!(changed.status.unwrap().code(), Code::Ok);
    let (second, _) = next(&client).await;
    assert_eq!(attempt(&second), 2);
}

#[tokio::test(start_paused = true)]
async fn invisible_times_to_change_to_have_limits() {
    let broker = broker().await;
    let (client, _telemetry, first) = holding(&broker).await;
    for (invisible, limit) in [(-1, "min is 0"), (43_201, "max is 43200000")] {
        let reply = client
            .change("g", &first, &handle(&first), invisible, false)
            .await;
        let status = reply.status.unwrap();
        assert_eq!(status.code(), Code::IllegalInvisibleTime);
        assert!(status.message.ends_with(limit), "{}", status.message);
    }
    tokio::time::sleep(secs(11)).await;
    let expired = client.change("g", &first, &handle(&first), 1, false).await;
    assert_eq!(expired.status.unwrap().code(), Code::InvalidReceiptHandle);
}

#[tokio::test(start_paused = true)]
async fn a_message_out_of_attempts_goes_to_the_dead_letters_at_the_next_receive() {
    let broker = broker().await;
    broker.create_group("g", GroupConfig::default().max_retries(2));
    let (client, _telemetry, mut message) = holding(&broker).await;
    for expected in 2..=3 {
        client
            .change("g", &message, &handle(&message), 0, false)
            .await;
        (message, _) = next(&client).await;
        assert_eq!(attempt(&message), expected);
    }
    client
        .change("g", &message, &handle(&message), 0, false)
        .await;
    tokio::time::sleep(secs(1)).await;
    assert!(broker.dead_letters("g").is_empty());
    let status = client.receive(receive("g", "t")).await.status();
    assert_eq!(status.message, "no match message");
    let dead = broker.dead_letters("g");
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].message_id, "m");
    assert_eq!(dead[0].attempt, 5);
    assert_eq!(dead[0].topic, "%DLQ%g");
    assert_eq!(broker.inspect("t", "g").ready, 0);
}

#[tokio::test(start_paused = true)]
async fn forwarding_copies_to_the_dead_letters_and_settles() {
    let broker = broker().await;
    let (client, _telemetry, message) = holding(&broker).await;
    let status = client.forward("g", &message, &handle(&message)).await;
    assert_eq!((status.code(), status.message.as_str()), (Code::Ok, "0"));
    assert_eq!(broker.inspect("t", "g").in_flight, 0);
    assert_eq!(broker.dead_letters("g").len(), 1);
    client.forward("g", &message, &handle(&message)).await;
    assert_eq!(
        broker.dead_letters("g").len(),
        2,
        "a second call makes a second copy"
    );

    let reader = Client::of(&broker, "reader");
    let _telemetry = reader.subscribe("readers", "%DLQ%g").await;
    let copies = reader
        .receive(receive("readers", "%DLQ%g"))
        .await
        .messages();
    assert_eq!(copies.len(), 2);
    assert_eq!(properties(&copies[0]).message_type(), MessageType::Delay);
    assert_eq!(properties(&copies[0]).message_id, "m");
    assert_eq!(attempt(&copies[0]), 2);
    assert_eq!(
        client.route("%DLQ%g").await.unwrap().message_queues.len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn forwarding_needs_a_handle_that_says_where_the_message_is() {
    let broker = broker().await;
    let (client, _telemetry, message) = holding(&broker).await;
    let full = handle(&message);
    let short = full.rsplit_once(' ').unwrap().0;
    let status = client.forward("g", &message, short).await;
    assert_eq!(
        (status.code(), status.message.as_str()),
        (Code::InvalidReceiptHandle, "commit log offset is empty")
    );
    let wrong = format!("{short} 12345");
    let status = client.forward("g", &message, &wrong).await;
    assert_eq!(
        (status.code(), status.message.as_str()),
        (
            Code::InternalServerError,
            "look message by offset failed, 12345"
        )
    );
    tokio::time::sleep(secs(11)).await;
    assert_eq!(
        client.forward("g", &message, &full).await.code(),
        Code::Ok,
        "expired handles will do"
    );
}

#[tokio::test(start_paused = true)]
async fn messages_come_back_later_by_the_slack() {
    let builder = EmbeddedBroker::builder()
        .in_memory()
        .redelivery_slack(secs(2));
    let broker = builder.start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let (client, _telemetry, _) = holding(&broker).await;
    let (again, waited) = next(&client).await;
    assert_eq!((attempt(&again), waited), (2, 12));
}

#[tokio::test(start_paused = true)]
async fn counts_add_up_at_every_moment() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    client.send_ids("t", &["a", "b", "c"]).await;
    let counts = broker.inspect("t", "g");
    assert_eq!((counts.stored, counts.ready, counts.in_flight), (3, 3, 0));
    let mut request = receive("g", "t");
    request.batch_size = 2;
    let two = client.receive(request).await.messages();
    let counts = broker.inspect("t", "g");
    assert_eq!((counts.stored, counts.ready, counts.in_flight), (3, 1, 2));
    client.ack_message("g", &two[0]).await;
    tokio::time::sleep(secs(11)).await;
    let counts = broker.inspect("t", "g");
    assert_eq!(
        (counts.stored, counts.ready, counts.in_flight, counts.acked),
        (3, 2, 0, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_queue_keeps_only_so_many_messages_as_it_was_told() {
    let builder = EmbeddedBroker::builder().in_memory().retention(2);
    let broker = builder.start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    for id in ["a", "b", "c"] {
        client.send(vec![message("t", id)]).await;
    }
    assert_eq!(client.receive(receive("g", "t")).await.ids(), ["b", "c"]);
    assert_eq!(broker.messages("t").len(), 2);
}
