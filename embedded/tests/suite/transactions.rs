//! Transactions: half messages, ends, checks.

use std::time::Duration;

use rocketmq_embedded::proto as pb;
use rocketmq_embedded::proto::telemetry_command::Command;
use rocketmq_embedded::proto::{Code, MessageType, TransactionResolution, TransactionSource};
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use tokio::time::{Instant, timeout};

use crate::client::{
    Client, Telemetry, message, producer_settings, properties, push_settings, receive, resource,
    seconds, with,
};
use crate::secs;

async fn producer() -> (EmbeddedBroker, Client, Telemetry) {
    let broker = EmbeddedBroker::builder().in_memory().start().await.unwrap();
    broker.create_topic("x", TopicConfig::transaction(1));
    let client = Client::of(&broker, "p");
    let (telemetry, _) = client.settle(producer_settings("x")).await;
    (broker, client, telemetry)
}

fn half(id: &str) -> pb::Message {
    with(message("x", id), |p| {
        p.set_message_type(MessageType::Transaction)
    })
}

async fn end(
    client: &Client,
    id: &str,
    resolution: TransactionResolution,
    source: TransactionSource,
) -> pb::Status {
    let request = client.request(pb::EndTransactionRequest {
        topic: resource("x"),
        message_id: id.into(),
        transaction_id: id.into(),
        resolution: resolution.into(),
        source: source.into(),
        trace_context: String::new(),
    });
    let reply = client.grpc.clone().end_transaction(request).await.unwrap();
    reply.into_inner().status.unwrap()
}

async fn check(telemetry: &mut Telemetry) -> pb::RecoverOrphanedTransactionCommand {
    match telemetry.down.message().await.unwrap().unwrap().command {
        Some(Command::RecoverOrphanedTransactionCommand(command)) => command,
        other => panic!("{other:?}"),
    }
}

use TransactionResolution::{Commit, Rollback, Unspecified};
use TransactionSource::{SourceClient, SourceServerCheck};

#[tokio::test(start_paused = true)]
async fn a_half_message_is_seen_by_nobody_until_it_is_committed() {
    let (broker, client, _telemetry) = producer().await;
    let consumer = Client::of(&broker, "c");
    let _telemetry = consumer.settle(push_settings("g", "x")).await;
    let sent = client.send(vec![half("m")]).await;
    assert_eq!(sent.entries[0].transaction_id, "m");
    let counts = broker.inspect("x", "g");
    assert_eq!((counts.stored, counts.pending_transactions), (0, 1));
    assert_eq!(
        consumer.receive(receive("g", "x")).await.status().message,
        "no new message"
    );
    assert_eq!(
        end(&client, "m", Commit, SourceClient).await.code(),
        Code::Ok
    );
    let received = consumer.receive(receive("g", "x")).await.only();
    assert_eq!(properties(&received).message_id, "m");
    assert_eq!(
        properties(&received).message_type(),
        MessageType::Transaction
    );
    assert_eq!(received.user_properties["__transactionId__"], "m");
    let again = end(&client, "m", Commit, SourceClient).await;
    assert_eq!(
        (again.code(), again.message.as_str()),
        (Code::InternalServerError, "cannot found transaction data")
    );
}

#[tokio::test(start_paused = true)]
async fn a_rolled_back_message_is_gone_and_an_undecided_one_stays_until_a_check() {
    let (broker, client, mut telemetry) = producer().await;
    client.send(vec![half("gone")]).await;
    assert_eq!(
        end(&client, "gone", Rollback, SourceClient).await.code(),
        Code::Ok
    );
    assert_eq!(broker.inspect("x", "g").pending_transactions, 0);
    client.send(vec![half("open")]).await;
    assert_eq!(
        end(&client, "open", Unspecified, SourceClient).await.code(),
        Code::Ok
    );
    let unknown = end(&client, "open", Commit, SourceClient).await;
    assert_eq!(
        unknown.code(),
        Code::InternalServerError,
        "the proxy forgot it"
    );
    let command = check(&mut telemetry).await;
    assert_eq!(command.transaction_id, "open");
    assert_eq!(
        end(&client, "open", Commit, SourceServerCheck).await.code(),
        Code::Ok
    );
    assert_eq!(broker.messages("x").len(), 1);
    assert_eq!(broker.messages("x")[0].message_id, "open");
}

#[tokio::test(start_paused = true)]
async fn checks_come_at_every_scan_after_the_timeout_and_stop_after_fifteen() {
    let (broker, client, mut telemetry) = producer().await;
    let start = Instant::now();
    tokio::time::sleep(secs(25)).await;
    client.send(vec![half("m")]).await;
    for n in 1..=15_u64 {
        let command = check(&mut telemetry).await;
        let message = command.message.unwrap();
        assert_eq!(
            message.user_properties["TRANSACTION_CHECK_TIMES"],
            n.to_string()
        );
        assert_eq!(properties(&message).receipt_handle, None);
        // At 30 s the message is five seconds old, which is too young.
        assert_eq!(
            (start.elapsed() + Duration::from_millis(10)).as_secs(),
            30 + n * 30
        );
        client.heartbeat(None).await;
    }
    let silence = timeout(secs(100), telemetry.down.message()).await;
    assert!(silence.is_err());
    assert_eq!(broker.inspect("x", "g").pending_transactions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_recovery_time_delays_the_first_check_and_limits_the_producer() {
    let builder = EmbeddedBroker::builder()
        .in_memory()
        .transaction_checks(secs(3), secs(3));
    let broker = builder.start().await.unwrap();
    broker.create_topic("x", TopicConfig::transaction(1));
    let client = Client::of(&broker, "p");
    let (mut telemetry, _) = client.settle(producer_settings("x")).await;
    let start = Instant::now();
    let slow = with(half("m"), |p| {
        p.orphaned_transaction_recovery_duration = Some(seconds(10))
    });
    client.send(vec![slow]).await;
    check(&mut telemetry).await;
    assert_eq!((start.elapsed() + Duration::from_millis(10)).as_secs(), 12);
    assert_eq!(
        end(&client, "m", Commit, SourceClient).await.code(),
        Code::Ok,
        "but it is too late"
    );
    assert_eq!(broker.messages("x").len(), 0);
    assert_eq!(
        end(&client, "m", Commit, SourceServerCheck).await.code(),
        Code::Ok
    );
    assert_eq!(broker.messages("x").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn checks_go_to_one_producer_of_the_topic_in_turn() {
    let (broker, client, mut one) = producer().await;
    let other = Client::of(&broker, "q");
    let (mut two, _) = other.settle(producer_settings("x")).await;
    let foreign = Client::of(&broker, "r");
    let (mut none, _) = foreign.settle(producer_settings("other")).await;
    client.send(vec![half("m")]).await;
    let mut counts = [0, 0];
    for _ in 0..4 {
        tokio::select! {
            _ = check(&mut one) => counts[0] += 1,
            _ = check(&mut two) => counts[1] += 1,
            _ = none.down.message() => panic!("it did not declare the topic"),
        }
        client.heartbeat(None).await;
        other.heartbeat(None).await;
        foreign.heartbeat(None).await;
    }
    assert_eq!(counts, [2, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_transaction_without_an_id_or_never_seen_is_refused() {
    let (_broker, client, _telemetry) = producer().await;
    assert_eq!(
        end(&client, " ", Commit, SourceClient).await.code(),
        Code::InvalidTransactionId
    );
    assert_eq!(
        end(&client, "m", Commit, SourceClient).await.code(),
        Code::InternalServerError
    );
}

#[tokio::test(start_paused = true)]
async fn the_proxy_knows_a_transaction_for_thirty_seconds() {
    let (broker, client, _telemetry) = producer().await;
    let long = with(half("m"), |p| {
        p.orphaned_transaction_recovery_duration = Some(seconds(600))
    });
    client.send(vec![long]).await;
    tokio::time::sleep(secs(31)).await;
    assert_eq!(
        end(&client, "m", Commit, SourceClient).await.code(),
        Code::InternalServerError
    );
    assert_eq!(broker.inspect("x", "g").pending_transactions, 1);
}
