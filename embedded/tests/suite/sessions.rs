//! Settings, heartbeats, expiry, termination.

use rocketmq_embedded::proto as pb;
use rocketmq_embedded::proto::Code;
use rocketmq_embedded::proto::retry_policy::Strategy;
use rocketmq_embedded::proto::settings::PubSub;
use rocketmq_embedded::{Backoff, Close, EmbeddedBroker, GroupConfig};

use crate::client::{
    Client, attempt, command, producer_settings, push_settings, receive, resource, seconds, tags,
};
use crate::{broker, secs};

#[tokio::test(start_paused = true)]
async fn a_producer_gets_the_brokers_settings() {
    let broker = broker().await;
    let client = Client::of(&broker, "p");
    let (_telemetry, settings) = client.settle(producer_settings("t")).await;
    let policy = settings.backoff_policy.unwrap();
    assert_eq!(policy.max_attempts, 3);
    match policy.strategy.unwrap() {
        Strategy::ExponentialBackoff(backoff) => {
            assert_eq!(backoff.initial.unwrap().nanos, 10_000_000);
            assert_eq!(backoff.max.unwrap(), seconds(1));
            assert!((backoff.multiplier - 2.0).abs() < f32::EPSILON);
        }
        other => panic!("{other:?}"),
    }
    let Some(PubSub::Publishing(publishing)) = settings.pub_sub else {
        panic!("no publishing");
    };
    assert_eq!(publishing.max_body_size, 4_194_304);
    assert!(publishing.validate_message_type);
    assert_eq!(publishing.topics, [resource("t").unwrap()]);
    assert_eq!(settings.metric, Some(pb::Metric::default()));
}

#[tokio::test(start_paused = true)]
async fn a_consumer_gets_its_groups_settings() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let (_telemetry, settings) = client.settle(push_settings("g", "t")).await;
    let policy = settings.backoff_policy.unwrap();
    assert_eq!(policy.max_attempts, 17);
    let Some(Strategy::CustomizedBackoff(backoff)) = policy.strategy else {
        panic!("no list");
    };
    let steps: Vec<i64> = backoff.next.iter().map(|step| step.seconds).collect();
    assert_eq!(
        steps,
        [
            1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200
        ]
    );
    let Some(PubSub::Subscription(subscription)) = settings.pub_sub else {
        panic!("no subscription");
    };
    assert_eq!(subscription.fifo, Some(false));
    assert_eq!(subscription.receive_batch_size, Some(32));
    assert_eq!(subscription.long_polling_timeout, Some(seconds(20)));
    assert_eq!(broker.clients(0), ["c"]);
    assert!(broker.settings(0, "c").is_some());
}

#[tokio::test(start_paused = true)]
async fn changed_groups_are_told_only_when_settings_are_sent_again() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let mut telemetry = client.subscribe("g", "t").await;
    broker.update_group("g", |group| {
        *group = GroupConfig::default()
            .max_retries(2)
            .fifo(true)
            .backoff(Backoff::Exponential {
                initial: secs(2),
                max: secs(8),
                multiplier: 2.0,
            });
    });
    let silence = tokio::time::timeout(secs(600), telemetry.down.message()).await;
    assert!(silence.is_err(), "nothing is pushed");
    telemetry
        .up
        .send(command(push_settings("g", "t")))
        .await
        .unwrap();
    let reply = telemetry.down.message().await.unwrap().unwrap();
    let Some(pb::telemetry_command::Command::Settings(settings)) = reply.command else {
        panic!("no settings");
    };
    let policy = settings.backoff_policy.unwrap();
    assert_eq!(policy.max_attempts, 3);
    assert!(matches!(
        policy.strategy,
        Some(Strategy::ExponentialBackoff(_))
    ));
    let Some(PubSub::Subscription(subscription)) = settings.pub_sub else {
        panic!("no subscription");
    };
    assert_eq!(subscription.fifo, Some(true));
}

#[tokio::test(start_paused = true)]
async fn bad_settings_end_the_stream_with_a_grpc_status() {
    let broker = broker().await;
    let nothing = pb::Settings::default();
    let mut wrong_type = push_settings("g", "t");
    wrong_type.set_client_type(pb::ClientType::PullConsumer);
    let mut bad_filter = push_settings("g", "t");
    if let Some(PubSub::Subscription(subscription)) = &mut bad_filter.pub_sub {
        subscription.subscriptions[0].expression = Some(tags("||"));
    }
    let cases = [
        (
            nothing,
            tonic::Code::InvalidArgument,
            "there is no publishing or subscription data in settings",
        ),
        (
            producer_settings("a b"),
            tonic::Code::InvalidArgument,
            "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
        ),
        (
            push_settings("", "t"),
            tonic::Code::InvalidArgument,
            "the specified group is blank",
        ),
        (
            wrong_type,
            tonic::Code::Internal,
            "Client type is not consumer, type: PULL_CONSUMER",
        ),
        (
            bad_filter,
            tonic::Code::InvalidArgument,
            "expression format is not correct",
        ),
    ];
    for (settings, code, text) in cases {
        let client = Client::of(&broker, "c");
        let mut telemetry = client.telemetry(settings).await.unwrap();
        let status = telemetry.down.message().await.unwrap_err();
        assert_eq!(status.code(), code);
        assert_eq!(
            status.message(),
            format!("process client telemetryCommand failed. {text}")
        );
    }
    assert!(broker.clients(0).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_language_the_proxy_does_not_know_ends_the_stream() {
    let broker = broker().await;
    for language in ["", "GOLANG"] {
        let client = Client::of(&broker, "c").header("x-mq-language", language);
        let mut telemetry = client.telemetry(producer_settings("t")).await.unwrap();
        let status = telemetry.down.message().await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::Internal);
        assert!(status.message().contains("No enum constant"), "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_client_id_every_call_is_refused_and_telemetry_says_so_once() {
    let broker = broker().await;
    let client = Client::of(&broker, "");
    let refusals = [
        client.route("t").await.unwrap().status.unwrap(),
        client.heartbeat(None).await,
        client
            .send(vec![crate::client::message("t", "m")])
            .await
            .status
            .unwrap(),
        client.receive(receive("g", "t")).await.status(),
        client.ack("g", "t", &[("m", "h")]).await.status.unwrap(),
        client.terminate(None).await,
    ];
    for refusal in refusals {
        assert_eq!(refusal.code(), Code::ClientIdRequired);
        assert_eq!(refusal.message, "client id cannot be empty");
    }
    let mut telemetry = client.telemetry(producer_settings("t")).await.unwrap();
    let only = telemetry.down.message().await.unwrap().unwrap();
    assert_eq!(only.status.unwrap().code(), Code::ClientIdRequired);
    assert!(telemetry.down.message().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn heartbeat_and_termination_need_settings_and_consumers_a_group() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    for status in [
        client.heartbeat(Some("g")).await,
        client.terminate(Some("g")).await,
    ] {
        assert_eq!(status.code(), Code::UnrecognizedClientType);
        assert_eq!(
            status.message,
            "cannot find client settings for this client"
        );
    }
    let _telemetry = client.subscribe("g", "t").await;
    let status = client.heartbeat(None).await;
    assert_eq!(status.code(), Code::IllegalConsumerGroup);
    assert_eq!(status.message, "the specified group is blank");
    assert_eq!(client.heartbeat(Some("g")).await.code(), Code::Ok);
    assert_eq!(client.terminate(Some("g")).await.code(), Code::Ok);
    let again = client.terminate(Some("g")).await;
    assert_eq!(again.code(), Code::UnrecognizedClientType);
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_forgotten_and_a_beating_one_is_not() {
    let builder = EmbeddedBroker::builder()
        .in_memory()
        .client_expiry(secs(30));
    let broker = builder.start().await.unwrap();
    broker.create_topic("t", rocketmq_embedded::TopicConfig::normal(1));
    let silent = Client::of(&broker, "silent");
    let beating = Client::of(&broker, "beating");
    let _one = silent.subscribe("g", "t").await;
    let _two = beating.subscribe("g", "t").await;
    for _ in 0..10 {
        tokio::time::sleep(secs(10)).await;
        assert_eq!(beating.heartbeat(Some("g")).await.code(), Code::Ok);
    }
    assert_eq!(broker.clients(0), ["beating"]);
    let lost = silent.receive(receive("g", "t")).await.status();
    assert_eq!(lost.code(), Code::InternalServerError);
    assert!(lost.message.contains("\"settings\" is null"));
}

#[tokio::test(start_paused = true)]
async fn a_receive_without_settings_fails_and_still_ends_with_the_time() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let received = client.receive(receive("g", "t")).await;
    assert_eq!(received.status().code(), Code::InternalServerError);
    assert_eq!(received.contents.len(), 2);
    assert!(matches!(
        received.contents[1],
        pb::receive_message_response::Content::DeliveryTimestamp(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn unknown_groups_are_refused_when_groups_are_not_made_by_themselves() {
    let builder = EmbeddedBroker::builder()
        .in_memory()
        .auto_create_groups(false);
    let broker = builder.start().await.unwrap();
    let client = Client::of(&broker, "c");
    let mut telemetry = client.telemetry(push_settings("g", "t")).await.unwrap();
    let status = telemetry.down.message().await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    assert!(
        status.message().ends_with("group not found: g"),
        "{status:?}"
    );
    broker.create_group("g", GroupConfig::default());
    client.subscribe("g", "t").await;
}

#[tokio::test(start_paused = true)]
async fn renewed_messages_stay_with_a_living_client_and_return_when_it_leaves() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let other = Client::of(&broker, "other");
    let _one = client.subscribe("g", "t").await;
    let _two = other.subscribe("g", "t").await;
    client.send_ids("t", &["acked", "returned"]).await;
    let mut request = receive("g", "t");
    request.auto_renew = true;
    request.invisible_duration = None;
    let messages = client.receive(request.clone()).await.messages();
    assert_eq!(messages.len(), 2);
    for _ in 0..20 {
        tokio::time::sleep(secs(30)).await;
        client.heartbeat(Some("g")).await;
        other.heartbeat(Some("g")).await;
    }
    assert_eq!(broker.inspect("t", "g").in_flight, 2, "ten minutes later");
    let acked = messages
        .iter()
        .find(|m| crate::client::properties(m).message_id == "acked");
    assert_eq!(client.ack_message("g", acked.unwrap()).await, Code::Ok);
    assert_eq!(broker.inspect("t", "g").in_flight, 1);
    assert_eq!(client.terminate(Some("g")).await.code(), Code::Ok);
    let start = tokio::time::Instant::now();
    let returned = other.receive(request).await.only();
    assert_eq!(crate::client::properties(&returned).message_id, "returned");
    assert_eq!(attempt(&returned), 2);
    assert_eq!(start.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn renewed_messages_of_a_client_that_fell_silent_return() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    client.send_ids("t", &["m"]).await;
    let mut request = receive("g", "t");
    request.auto_renew = true;
    client.receive(request).await.only();
    tokio::time::sleep(secs(119)).await;
    assert_eq!(broker.inspect("t", "g").in_flight, 1);
    tokio::time::sleep(secs(3)).await;
    assert_eq!(broker.inspect("t", "g").ready, 1);
}

#[tokio::test(start_paused = true)]
async fn commands_reach_the_newest_stream_of_a_client_and_streams_close_three_ways() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let mut old = client.subscribe("g", "t").await;
    let mut new = client.subscribe("g", "t").await;
    let print = pb::TelemetryCommand {
        status: None,
        command: Some(
            pb::telemetry_command::Command::PrintThreadStackTraceCommand(
                pb::PrintThreadStackTraceCommand { nonce: "7".into() },
            ),
        ),
    };
    assert_eq!(broker.push_command("c", &print), 1);
    assert_eq!(new.down.message().await.unwrap().unwrap(), print);
    let quiet = tokio::time::timeout(secs(1), old.down.message()).await;
    assert!(quiet.is_err());

    assert!(broker.close_telemetry(0, "c", Close::End));
    assert!(new.down.message().await.unwrap().is_none());
    broker
        .wait_for(|_| broker.live(0).telemetry_streams == 1)
        .await;
    assert!(
        !broker.push_command_on(0, "c", print),
        "no stream is current"
    );

    let mut next = client.subscribe("g", "t").await;
    let error = Close::Error(tonic::Code::Unavailable, "going".into());
    assert!(broker.close_telemetry(0, "c", error));
    let status = next.down.message().await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (tonic::Code::Unavailable, "going")
    );

    let mut last = client.subscribe("g", "t").await;
    assert!(broker.close_telemetry(0, "c", Close::Reset));
    last.down.message().await.unwrap_err();
    old.down.message().await.unwrap_err();
    assert_eq!(
        client.heartbeat(Some("g")).await.code(),
        Code::Ok,
        "settings are kept"
    );
    assert!(!broker.close_telemetry(0, "nobody", Close::End));
    assert_eq!(broker.live(0).telemetry_streams_opened, 4);
}

#[tokio::test(start_paused = true)]
async fn a_half_closed_stream_is_completed_and_the_client_stays_known() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let mut telemetry = client.subscribe("g", "t").await;
    drop(telemetry.up);
    assert!(telemetry.down.message().await.unwrap().is_none());
    broker
        .wait_for(|_| broker.live(0).telemetry_streams == 0)
        .await;
    assert_eq!(client.heartbeat(Some("g")).await.code(), Code::Ok);
}
