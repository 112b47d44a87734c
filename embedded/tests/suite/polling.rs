//! Receiving: long polls, redelivery, acknowledgement.

use rocketmq_embedded::proto::{
    Code, FilterExpression, FilterType, Permission, ReceiveMessageRequest,
};
use rocketmq_embedded::{Outcome, Rpc, TopicConfig};
use tokio::time::Instant;

use crate::client::{Client, attempt, handle, message, receive, seconds, tagged, tags};
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
        request.long_polling_timeout = Some(seconds(20));
        let message = client.receive(request).await.only();
        assert_eq!(attempt(&message), expected);
        let waited = start.elapsed().as_secs();
        assert_eq!(waited, if expected == 1 { 0 } else { 10 });
    }
}

/// How long a receive on an empty topic takes, in milliseconds.
async fn empty_poll(client: &Client, ask: Option<i64>, deadline: u64) -> (Code, u128) {
    let mut body = receive("g", "t");
    body.long_polling_timeout = ask.map(seconds);
    let mut request = client.request(body);
    request.set_timeout(secs(deadline));
    let start = Instant::now();
    let received = client.receive_raw(request).await;
    (received.status().code(), start.elapsed().as_millis())
}

#[tokio::test(start_paused = true)]
async fn a_poll_waits_between_five_and_twenty_seconds_and_within_its_deadline() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    let none = Code::MessageNotFound;
    assert_eq!(empty_poll(&client, Some(1), 30).await, (none, 4950));
    assert_eq!(empty_poll(&client, Some(6), 30).await, (none, 5950));
    assert_eq!(empty_poll(&client, Some(30), 30).await, (none, 19950));
    assert_eq!(empty_poll(&client, Some(30), 8).await, (none, 7950));
    assert_eq!(empty_poll(&client, None, 9).await, (none, 7450));
    assert_eq!(
        empty_poll(&client, Some(5), 4).await,
        (Code::IllegalPollingTime, 0)
    );
    let old = client.clone().header("x-mq-client-version", "5.0.2");
    assert_eq!(empty_poll(&old, Some(5), 4).await, (Code::BadRequest, 0));
    let undated = client.receive_raw(client.request(receive("g", "t"))).await;
    assert_eq!(undated.status().code(), Code::InternalServerError);
    assert!(
        undated
            .status()
            .message
            .contains("\"timeRemaining\" is null")
    );
}

#[tokio::test(start_paused = true)]
async fn the_invisible_time_has_limits_unless_the_broker_renews() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    let small = "the invisibleTime is too small. min is 10000";
    let large = "the invisibleTime is too large. max is 43200000";
    for (asked, text) in [(None, small), (Some(9), small), (Some(43_201), large)] {
        let mut request = receive("g", "t");
        request.invisible_duration = asked.map(seconds);
        let status = client.receive(request).await.status();
        assert_eq!(
            (status.code(), status.message.as_str()),
            (Code::IllegalInvisibleTime, text)
        );
    }
    client.send_ids("t", &["m"]).await;
    let mut request = receive("g", "t");
    request.auto_renew = true;
    request.invisible_duration = None;
    let message = client.receive(request).await.only();
    assert_eq!(handle(&message).split(' ').nth(2), Some("60000"));
}

#[tokio::test(start_paused = true)]
async fn a_receive_takes_all_queues_whatever_queue_it_names_and_at_most_its_batch() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    let ids: Vec<String> = (0..40).map(|n| format!("m{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    client.send_ids("t", &ids).await;
    let mut request = receive("g", "t");
    request.message_queue.as_mut().unwrap().id = 7;
    request.batch_size = 3;
    assert_eq!(client.receive(request.clone()).await.messages().len(), 3);
    request.batch_size = 1000;
    assert_eq!(client.receive(request.clone()).await.messages().len(), 32);
    assert_eq!(client.receive(request.clone()).await.messages().len(), 5);
    let delivered: std::collections::BTreeSet<_> = broker
        .deliveries()
        .into_iter()
        .map(|d| d.message_id)
        .collect();
    assert_eq!(delivered.len(), 40);
    request.batch_size = 0;
    let start = Instant::now();
    client.send_ids("t", &["more"]).await;
    let none = client.receive(request).await.status();
    assert_eq!(none.message, "no new message");
    assert_eq!(start.elapsed().as_millis(), 4950, "it waits all its time");
}

#[tokio::test(start_paused = true)]
async fn messages_that_do_not_match_are_consumed_for_good() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    let send = async |id: &str, tag: &str| {
        client.send(vec![tagged("t", id, tag)]).await;
    };
    send("a", "A").await;
    send("b", "B").await;
    send("c", "C").await;
    client.send_ids("t", &["untagged"]).await;
    let mut request = receive("g", "t");
    request.filter_expression = Some(tags(" A ||  || C"));
    let mut ids = client.receive(request.clone()).await.ids();
    ids.sort();
    assert_eq!(ids, ["a", "c"]);
    send("b2", "B").await;
    let start = Instant::now();
    let status = client.receive(request).await.status();
    assert_eq!(
        (status.code(), status.message.as_str()),
        (Code::MessageNotFound, "no match message")
    );
    assert_eq!(start.elapsed().as_secs(), 0, "it does not wait");
    let all = client.receive(receive("g", "t")).await;
    assert_eq!(all.status().message, "no new message");
    let mut others = client.receive(receive("other", "t")).await.ids();
    others.sort();
    assert_eq!(
        others,
        ["a", "b", "b2", "c", "untagged"],
        "groups are apart, from offset 0"
    );
}

fn sql(expression: String) -> ReceiveMessageRequest {
    let mut request = receive("g", "t");
    request.filter_expression = Some(FilterExpression {
        r#type: FilterType::Sql.into(),
        expression,
    });
    request
}

#[tokio::test(start_paused = true)]
async fn sql_filters_pick_messages_by_their_properties() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    for (id, price) in [("cheap", "5"), ("dear", "50"), ("odd", "much")] {
        let mut message = tagged("t", id, "T");
        message.user_properties.insert("price".into(), price.into());
        client.send(vec![message]).await;
    }
    let received = client
        .receive(sql("TAGS = 'T' AND price >= 10".into()))
        .await;
    assert_eq!(received.ids(), ["dear"]);
    let rest = client.receive(receive("g", "t")).await.status();
    assert_eq!(rest.message, "no new message", "the others are consumed");
}

#[tokio::test(start_paused = true)]
async fn bad_filters_topics_and_groups_are_refused() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    let mut bars = receive("g", "t");
    bars.filter_expression = Some(tags("||"));
    broker.create_topic("w", TopicConfig::normal(1).permission(Permission::Write));
    let cases = [
        (bars, Code::IllegalFilterExpression),
        (sql("".into()), Code::IllegalFilterExpression),
        (sql("a ==".into()), Code::InternalServerError),
        (receive("g", "unknown"), Code::TopicNotFound),
        (receive("g", "a b"), Code::IllegalTopic),
        (receive("a b", "t"), Code::IllegalConsumerGroup),
        (receive("g", "w"), Code::Forbidden),
    ];
    for (request, code) in cases {
        assert_eq!(client.receive(request).await.status().code(), code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_receive_ends_with_the_time_after_its_messages() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    client.send_ids("t", &["a", "b"]).await;
    let contents = client.receive(receive("g", "t")).await.contents;
    use rocketmq_embedded::proto::receive_message_response::Content;
    assert!(matches!(
        contents.as_slice(),
        [
            Content::Status(_),
            Content::Message(_),
            Content::Message(_),
            Content::DeliveryTimestamp(_)
        ]
    ));
}

#[tokio::test(start_paused = true)]
async fn of_two_waiting_receives_exactly_one_gets_a_message() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    let wait = || {
        let client = client.clone();
        tokio::spawn(async move { client.receive(receive("g", "t")).await })
    };
    let waiting = [wait(), wait()];
    broker.wait_for(|_| broker.live(0).parked_polls == 2).await;
    client.send_ids("t", &["m"]).await;
    let mut got = 0;
    for one in waiting {
        got += one.await.unwrap().messages().len();
    }
    assert_eq!(got, 1);
    assert_eq!(broker.deliveries().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_receive_loses_no_message() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.receive(receive("g", "t")).await }
    });
    broker.wait_for(|_| broker.live(0).parked_polls == 1).await;
    waiting.abort();
    broker.wait_for(|_| broker.live(0).parked_polls == 0).await;
    assert_eq!(
        broker
            .record()
            .of(Rpc::ReceiveMessage)
            .next()
            .unwrap()
            .outcome(),
        Some(&Outcome::Cancelled)
    );
    client.send_ids("t", &["m"]).await;
    let message = client.receive(receive("g", "t")).await.only();
    assert_eq!(attempt(&message), 1);
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_stream_that_is_dropped_half_way_come_back_after_a_second() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    // More than a stream may send before its receiver reads.
    for id in ["a", "b", "c"] {
        let mut big = message("t", id);
        big.body = vec![7; 3 << 20].into();
        client.send(vec![big]).await;
    }
    let mut request = client.request(receive("g", "t"));
    request.set_timeout(secs(25));
    let stream = client.grpc.clone().receive_message(request).await.unwrap();
    drop(stream);
    let start = Instant::now();
    let again = client.receive(receive("g", "t")).await;
    assert!(!again.messages().is_empty());
    assert!(
        again.messages().iter().all(|m| attempt(m) == 1),
        "it counts as no attempt"
    );
    assert_eq!(start.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_receive_ends_when_its_topic_is_deleted_or_its_client_leaves() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    let wait = |auto_renew: bool| {
        let client = client.clone();
        let mut request = receive("g", "t");
        request.auto_renew = auto_renew;
        tokio::spawn(async move { client.receive(request).await.status() })
    };
    let leaving = wait(true);
    broker.wait_for(|_| broker.live(0).parked_polls == 1).await;
    client.terminate(Some("g")).await;
    client.send_ids("t", &["m"]).await;
    let status = leaving.await.unwrap();
    assert_eq!(status.code(), Code::MessageNotFound);
    assert_eq!(status.message, "The client [c] is disconnected.");
    assert_eq!(broker.inspect("t", "g").in_flight, 1);
    let _telemetry = client.subscribe("g", "t").await;
    assert_eq!(client.receive(receive("g", "t")).await.ids(), ["m"]);
    let waiting = wait(false);
    broker.wait_for(|_| broker.live(0).parked_polls == 1).await;
    broker.delete_topic("t");
    assert_eq!(waiting.await.unwrap().code(), Code::TopicNotFound);
}

#[tokio::test(start_paused = true)]
async fn queues_can_be_added_to_a_topic_in_use() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    client.send_ids("t", &["a", "b"]).await;
    assert_eq!(client.receive(receive("g", "t")).await.messages().len(), 2);
    broker.create_topic("t", TopicConfig::normal(4));
    client.send_ids("t", &["c", "d", "e", "f"]).await;
    let queues: std::collections::BTreeSet<_> =
        broker.messages("t").into_iter().map(|m| m.queue).collect();
    assert_eq!(queues.len(), 4);
    assert_eq!(client.receive(receive("g", "t")).await.messages().len(), 4);
}
