//! Ordered groups: one batch per queue at a time.

use rocketmq_embedded::proto as pb;
use rocketmq_embedded::proto::Code;
use rocketmq_embedded::{EmbeddedBroker, GroupConfig, TopicConfig};
use tokio::time::Instant;

use crate::client::{Client, Received, Telemetry, attempt, grouped, handle, receive};
use crate::secs;

async fn ordered(queues: usize, ids: &[&str]) -> (EmbeddedBroker, Client, Telemetry) {
    let broker = EmbeddedBroker::builder().in_memory().start().await.unwrap();
    broker.create_topic("f", TopicConfig::fifo(queues));
    let group = GroupConfig::default().fifo(true).max_retries(3);
    broker.create_group("g", group);
    let client = Client::of(&broker, "c");
    let telemetry = client.subscribe("g", "f").await;
    for id in ids {
        let sent = client.send(vec![grouped("f", id, "one")]).await;
        assert_eq!(sent.status.unwrap().code(), Code::Ok);
    }
    (broker, client, telemetry)
}

async fn take(client: &Client, batch: i32, attempt_id: &str) -> Received {
    let mut request = receive("g", "f");
    request.batch_size = batch;
    request.attempt_id = Some(attempt_id.to_owned());
    request.long_polling_timeout = Some(crate::client::seconds(20));
    client.receive(request).await
}

fn attempts(messages: &[pb::Message]) -> Vec<i32> {
    messages.iter().map(attempt).collect()
}

#[tokio::test(start_paused = true)]
async fn a_queue_yields_nothing_while_its_batch_is_open_and_goes_on_when_it_is_settled() {
    let (broker, client, _telemetry) = ordered(1, &["a", "b", "c"]).await;
    let batch = take(&client, 2, "1").await;
    assert_eq!(batch.ids(), ["a", "b"]);
    assert_eq!(handle(&batch.messages()[0]).split(' ').nth(3), Some("999"));
    let mut blocked = receive("g", "f");
    blocked.attempt_id = Some("2".into());
    assert_eq!(
        client.receive(blocked).await.status().message,
        "no new message"
    );
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { take(&client, 2, "3").await }
    });
    broker.wait_for(|_| broker.live(0).parked_polls == 1).await;
    for message in batch.messages() {
        assert_eq!(client.ack_message("g", &message).await, Code::Ok);
    }
    assert_eq!(waiting.await.unwrap().ids(), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn message_groups_in_one_queue_block_each_other_and_other_queues_go_on() {
    let (broker, client, _telemetry) = ordered(2, &["a"]).await;
    let taken = broker.messages("f")[0].queue;
    let groups = ["one", "two", "three", "four", "five", "six"];
    for group in groups {
        client.send(vec![grouped("f", group, group)]).await;
    }
    assert_eq!(take(&client, 1, "1").await.ids(), ["a"]);
    let rest = take(&client, 32, "2").await.ids();
    let elsewhere: Vec<String> = broker
        .messages("f")
        .into_iter()
        .filter(|message| message.queue != taken)
        .map(|message| message.message_id)
        .collect();
    assert!(!elsewhere.is_empty());
    assert_eq!(rest, elsewhere);
}

#[tokio::test(start_paused = true)]
async fn after_a_timeout_the_batch_is_read_again_from_the_first_open_message() {
    let (_broker, client, _telemetry) = ordered(1, &["a", "b", "c"]).await;
    let batch = take(&client, 2, "1").await.messages();
    client.ack_message("g", &batch[1]).await;
    let start = Instant::now();
    let again = take(&client, 32, "2").await;
    assert_eq!(start.elapsed().as_secs(), 10);
    assert_eq!(
        again.ids(),
        ["a", "b", "c"],
        "the acknowledgement above the hole is lost"
    );
    assert_eq!(attempts(&again.messages()), [2, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn acknowledging_from_the_front_keeps_the_progress() {
    let (_broker, client, _telemetry) = ordered(1, &["a", "b"]).await;
    let batch = take(&client, 2, "1").await.messages();
    client.ack_message("g", &batch[0]).await;
    let again = take(&client, 2, "2").await;
    assert_eq!(again.ids(), ["b"]);
    assert_eq!(attempts(&again.messages()), [2]);
}

#[tokio::test(start_paused = true)]
async fn the_same_attempt_gets_the_same_messages_again_at_once_and_uncounted() {
    let (_broker, client, _telemetry) = ordered(1, &["a", "b", "c"]).await;
    take(&client, 2, "same").await;
    let start = Instant::now();
    let again = take(&client, 2, "same").await;
    assert_eq!(again.ids(), ["a", "b"]);
    assert_eq!(attempts(&again.messages()), [1, 1]);
    assert_eq!(start.elapsed().as_secs(), 0);
    for message in again.messages() {
        client.ack_message("g", &message).await;
    }
    assert_eq!(take(&client, 2, "next").await.ids(), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_message_goes_to_the_dead_letters_and_the_queue_goes_on() {
    let (broker, client, _telemetry) = ordered(1, &["a", "z"]).await;
    for expected in 1..=4 {
        let taken = take(&client, 1, &expected.to_string()).await.only();
        assert_eq!(attempt(&taken), expected);
    }
    let next = take(&client, 1, "5").await;
    assert_eq!(next.ids(), ["z"]);
    assert_eq!(broker.dead_letters("g").len(), 1);
    assert_eq!(broker.dead_letters("g")[0].message_id, "a");
}

#[tokio::test(start_paused = true)]
async fn a_changed_time_unblocks_the_queue_earlier_and_counts_unless_suspended() {
    let (_broker, client, _telemetry) = ordered(1, &["a"]).await;
    let first = take(&client, 1, "1").await.only();
    let changed = client.change("g", &first, &handle(&first), 3, false).await;
    assert_eq!(changed.status.unwrap().code(), Code::Ok);
    let start = Instant::now();
    let second = take(&client, 1, "2").await.only();
    assert_eq!((attempt(&second), start.elapsed().as_secs()), (2, 3));
    client.change("g", &second, &handle(&second), 2, true).await;
    assert_eq!(attempt(&take(&client, 1, "3").await.only()), 2);
}

#[tokio::test(start_paused = true)]
async fn handles_of_older_batches_and_passed_messages_do_nothing_and_foreign_ones_are_abnormal() {
    let (broker, client, _telemetry) = ordered(1, &["a", "b", "c"]).await;
    let first = take(&client, 1, "1").await.only();
    let changed = client.change("g", &first, &handle(&first), 1, false).await;
    tokio::time::sleep(secs(1)).await;
    let second = take(&client, 1, "2").await.only();
    let old = client.ack("g", "f", &[("a", &handle(&first))]).await;
    assert_eq!(old.status.unwrap().code(), Code::Ok);
    assert_eq!(broker.inspect("f", "g").acked, 0);
    assert_ne!(changed.receipt_handle, handle(&first));
    let mut fields: Vec<String> = handle(&second).split(' ').map(str::to_owned).collect();
    fields[7] = "2".into();
    let foreign = client.ack("g", "f", &[("c", &fields.join(" "))]).await;
    let status = foreign.status.unwrap();
    assert_eq!(
        (status.code(), status.message.as_str()),
        (Code::InternalServerError, "ack failed: status is abnormal")
    );
    assert_eq!(client.ack_message("g", &second).await, Code::Ok);
    assert_eq!(
        client.ack_message("g", &second).await,
        Code::Ok,
        "it is passed"
    );
    assert_eq!(broker.inspect("f", "g").acked, 1);
}

#[tokio::test(start_paused = true)]
async fn forwarding_lets_the_queue_go_on() {
    let (broker, client, _telemetry) = ordered(1, &["a", "b"]).await;
    let first = take(&client, 1, "1").await.only();
    assert_eq!(
        client.forward("g", &first, &handle(&first)).await.code(),
        Code::Ok
    );
    assert_eq!(broker.dead_letters("g").len(), 1);
    assert_eq!(take(&client, 1, "2").await.ids(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn renewed_batches_stay_closed_until_their_client_leaves() {
    let (broker, client, _telemetry) = ordered(1, &["a"]).await;
    let mut request = receive("g", "f");
    request.auto_renew = true;
    let first = client.receive(request).await.only();
    for _ in 0..30 {
        tokio::time::sleep(secs(10)).await;
        client.heartbeat(Some("g")).await;
    }
    assert_eq!(broker.inspect("f", "g").in_flight, 1);
    let other = Client::of(&broker, "other");
    let _telemetry = other.subscribe("g", "f").await;
    client.terminate(Some("g")).await;
    let start = Instant::now();
    let second = take(&other, 1, "x").await.only();
    assert_eq!((attempt(&first), attempt(&second)), (1, 2));
    assert_eq!(start.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_given_back_at_once_wakes_a_waiting_receive() {
    let (broker, client, _telemetry) = ordered(1, &["a"]).await;
    let first = take(&client, 1, "1").await.only();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { take(&client, 1, "2").await }
    });
    broker.wait_for(|_| broker.live(0).parked_polls == 1).await;
    let start = Instant::now();
    client.change("g", &first, &handle(&first), 0, false).await;
    assert_eq!(attempt(&waiting.await.unwrap().only()), 2);
    assert_eq!(start.elapsed().as_secs(), 0);
}
