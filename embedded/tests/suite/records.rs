//! What is remembered, and the rule that settings come first.

use rocketmq_embedded::proto::Code;
use rocketmq_embedded::{EmbeddedBroker, RequestBody, Rpc, TopicConfig};

use crate::client::{Client, push_settings, receive};
use crate::{broker, secs};

#[tokio::test(start_paused = true)]
async fn every_call_is_recorded_in_order_with_what_it_carried() {
    let broker = broker().await;
    let client = Client::of(&broker, "c")
        .header("x-mq-request-id", "r1")
        .header("x-mq-date-time", "20200101T000000Z")
        .header("x-mq-namespace", "ns");
    client.route("t").await.unwrap();
    let mark = broker.record().next_seq();
    let _telemetry = client.subscribe("g", "t").await;
    tokio::time::sleep(secs(3)).await;
    client.receive(receive("g", "t")).await;
    let record = broker.record();
    let kinds: Vec<_> = record.calls().map(|call| call.rpc).collect();
    assert_eq!(
        kinds,
        [Rpc::QueryRoute, Rpc::Telemetry, Rpc::ReceiveMessage]
    );
    assert_eq!(record.since(mark).count(), 2);
    let receive = record.of(Rpc::ReceiveMessage).next().unwrap();
    assert_eq!(receive.elapsed.as_secs(), 3);
    assert_eq!(receive.client_id, "c");
    assert_eq!((receive.seq, receive.node), (2, 0));
    assert_eq!(receive.headers.language, "RUST");
    assert_eq!(receive.headers.version, "5.1.0");
    assert_eq!(receive.headers.request_id, "r1");
    assert_eq!(receive.headers.date_time, "20200101T000000Z");
    assert_eq!(receive.headers.namespace, "ns");
    assert_eq!(receive.headers.timeout, Some(secs(25)));
    assert!(receive.answered(Code::MessageNotFound));
    assert_eq!((receive.ended_at().unwrap() - receive.at).as_millis(), 4950);
    let RequestBody::ReceiveMessage(body) = &receive.request else {
        panic!("{:?}", receive.request);
    };
    assert_eq!(body.batch_size, 32);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_wakes_when_the_call_it_waits_for_is_there() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let waiting = tokio::spawn({
        let broker = broker.clone();
        async move {
            let answered = |call: &rocketmq_embedded::Call| call.answered(Code::Ok);
            broker
                .wait_for(|record| record.of(Rpc::QueryRoute).filter(|c| answered(c)).count() == 2)
                .await;
        }
    });
    client.route("t").await.unwrap();
    client.route("nope").await.unwrap();
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    client.route("t").await.unwrap();
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_record_is_bounded_and_can_be_off() {
    let broker = EmbeddedBroker::builder()
        .in_memory()
        .record_limit(2)
        .start()
        .await
        .unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let client = Client::of(&broker, "c");
    for _ in 0..3 {
        client.route("t").await.unwrap();
    }
    let record = broker.record();
    assert_eq!(record.len(), 2);
    assert_eq!(record.calls().next().unwrap().seq, 1);
    let waiting = tokio::spawn({
        let broker = broker.clone();
        async move {
            let mut firsts = Vec::new();
            let seen = |record: &rocketmq_embedded::Record| {
                assert!(record.len() <= 2);
                assert_eq!(
                    broker.record().len(),
                    record.len(),
                    "a waiter may ask anything"
                );
                firsts.push(record.calls().next().map(|call| call.seq));
                record.next_seq() == 6
            };
            broker.wait_for(seen).await;
            firsts
        }
    });
    tokio::task::yield_now().await;
    for _ in 0..3 {
        client.route("t").await.unwrap();
    }
    let firsts = waiting.await.unwrap();
    assert_eq!(
        (firsts.first(), firsts.last()),
        (Some(&Some(1)), Some(&Some(4)))
    );

    let broker = EmbeddedBroker::builder()
        .in_memory()
        .without_record()
        .start()
        .await
        .unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    client.send_ids("t", &["m"]).await;
    let message = client.receive(receive("g", "t")).await.only();
    client.ack_message("g", &message).await;
    assert!(
        broker.record().is_empty() && broker.deliveries().is_empty() && broker.acks().is_empty()
    );
    assert_eq!(broker.inspect("t", "g").acked, 1);
}

#[tokio::test(start_paused = true)]
async fn long_bodies_are_not_kept_in_the_record() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let mut long = crate::client::message("t", "long");
    long.body = vec![1; 64 * 1024 + 1].into();
    client.send(vec![long]).await;
    client.send_ids("t", &["short"]).await;
    let record = broker.record();
    let bodies: Vec<usize> = record
        .calls()
        .map(|call| match &call.request {
            RequestBody::SendMessage(send) => send.messages[0].body.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(bodies, [0, "body of short".len()]);
}

#[tokio::test(start_paused = true)]
async fn calls_before_settings_are_violations_and_routes_and_telemetry_are_free() {
    let broker = EmbeddedBroker::builder()
        .in_memory()
        .nodes(2)
        .start()
        .await
        .unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let client = Client::of(&broker, "c");
    client.route("t").await.unwrap();
    let _telemetry = client.subscribe("g", "t").await;
    client.assignment("t", "g").await;
    client.send_ids("t", &["m"]).await;
    broker.assert_settings_first();
    let elsewhere = Client::at(&broker, 1, "c");
    elsewhere.send_ids("t", &["m"]).await;
    let violations = broker.violations();
    assert_eq!(violations.len(), 1);
    assert!(
        violations[0].contains("SendMessage of c reached broker-1 before its settings"),
        "{violations:?}"
    );
    let refused = Client::of(&broker, "refused");
    let mut telemetry = refused.telemetry(push_settings("", "t")).await.unwrap();
    telemetry.down.message().await.unwrap_err();
    refused.heartbeat(Some("g")).await;
    assert_eq!(
        broker.violations().len(),
        2,
        "refused settings do not count"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_is_excused_until_it_is_told_that_its_settings_are_lost() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    assert!(broker.forget_settings(0, "c"));
    client.send_ids("t", &["m"]).await;
    let told = client.receive(receive("g", "t")).await.status();
    assert!(told.message.contains("\"settings\" is null"));
    tokio::time::sleep(secs(1)).await;
    client.heartbeat(Some("g")).await;
    broker.assert_settings_first();
    client.send_ids("t", &["m2"]).await;
    assert_eq!(broker.violations().len(), 1);
    let _telemetry = client.subscribe("g", "t").await;
    client.send_ids("t", &["m3"]).await;
    assert_eq!(broker.violations().len(), 1);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "nodes were used before they answered settings")]
async fn the_assertion_fails_with_the_list() {
    let broker = broker().await;
    Client::of(&broker, "c").heartbeat(None).await;
    broker.assert_settings_first();
}
