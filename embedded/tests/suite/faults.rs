//! Faults on demand.

use std::time::Duration;

use rocketmq_embedded::proto as pb;
use rocketmq_embedded::proto::Code;
use rocketmq_embedded::proto::receive_message_response::Content;
use rocketmq_embedded::{EmbeddedBroker, Fault, Outcome, Reply, Rpc, TopicConfig};
use tokio::time::{Instant, timeout};

use crate::client::{
    Client, Telemetry, command, message, producer_settings, push_settings, receive,
};
use crate::{broker, secs};

async fn consumer() -> (EmbeddedBroker, Client, Telemetry) {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let telemetry = client.subscribe("g", "t").await;
    (broker, client, telemetry)
}

async fn beat(client: &Client) -> Code {
    client.heartbeat(Some("g")).await.code()
}

#[tokio::test(start_paused = true)]
async fn a_rule_meets_the_calls_it_names_and_no_others() {
    let (broker, client, _telemetry) = consumer().await;
    let rule = broker.fault(
        Fault::on(Rpc::Heartbeat)
            .client("c")
            .group("g")
            .node(0)
            .skip(1)
            .times(2)
            .status(Code::TooManyRequests, "flow limit"),
    );
    let foreign = broker.fault(Fault::on(Rpc::Heartbeat).node(1).always().hang());
    let mut codes = Vec::new();
    for _ in 0..4 {
        codes.push(beat(&client).await);
    }
    let busy = Code::TooManyRequests;
    assert_eq!(codes, [Code::Ok, busy, busy, Code::Ok]);
    assert_eq!((rule.hits(), foreign.hits()), (2, 0));
    let record = broker.record();
    let outcome = record.of(Rpc::Heartbeat).nth(1).unwrap().outcome();
    let expected = Outcome::Status {
        code: busy.into(),
        message: "flow limit".into(),
    };
    assert_eq!(outcome, Some(&expected));
}

#[tokio::test(start_paused = true)]
async fn rules_are_used_up_in_order_and_can_be_cleared() {
    let (broker, client, _telemetry) = consumer().await;
    broker.fault(Fault::on(Rpc::Heartbeat).status(Code::Forbidden, "1"));
    broker.fault(Fault::on(Rpc::Heartbeat).status(Code::BadRequest, "2"));
    let always = broker.fault(
        Fault::on(Rpc::Heartbeat)
            .always()
            .status(Code::InternalError, "3"),
    );
    assert_eq!(beat(&client).await, Code::Forbidden);
    assert_eq!(beat(&client).await, Code::BadRequest);
    assert_eq!(beat(&client).await, Code::InternalError);
    always.clear();
    assert_eq!(beat(&client).await, Code::Ok);
    broker.fault(Fault::on(Rpc::Heartbeat).always().raw_status(12345, "?"));
    assert_eq!(client.heartbeat(Some("g")).await.code, 12345);
    broker.clear_faults();
    assert_eq!(beat(&client).await, Code::Ok);
}

#[tokio::test(start_paused = true)]
async fn calls_can_fail_hang_be_late_and_lose_their_reply() {
    let (broker, client, _telemetry) = consumer().await;
    let send = || {
        let client = client.clone();
        async move {
            let request = client.request(pb::SendMessageRequest {
                messages: vec![message("t", "m")],
            });
            client.grpc.clone().send_message(request).await
        }
    };
    broker.fault(
        Fault::on(Rpc::SendMessage)
            .topic("t")
            .grpc(tonic::Code::ResourceExhausted, "x"),
    );
    let status = send().await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (tonic::Code::ResourceExhausted, "x")
    );
    assert!(broker.messages("t").is_empty());

    broker.fault(Fault::on(Rpc::SendMessage).hang());
    assert!(timeout(secs(1000), send()).await.is_err());
    assert!(broker.messages("t").is_empty());

    broker.fault(
        Fault::on(Rpc::SendMessage)
            .delay(secs(7))
            .status(Code::HaNotAvailable, ""),
    );
    let start = Instant::now();
    let late = send().await.unwrap().into_inner();
    assert_eq!(late.status.unwrap().code(), Code::HaNotAvailable);
    assert_eq!(start.elapsed().as_secs(), 7);

    broker.fault(Fault::on(Rpc::SendMessage).lose_reply());
    assert_eq!(send().await.unwrap_err().code(), tonic::Code::Unavailable);
    assert_eq!(broker.messages("t").len(), 1, "the work was done");

    broker.fault(Fault::on(Rpc::SendMessage).after_work().hang());
    assert!(timeout(secs(9), send()).await.is_err());
    assert_eq!(broker.messages("t").len(), 2);

    broker.fault(Fault::on(Rpc::SendMessage).delay_reply(secs(3)));
    let start = Instant::now();
    send().await.unwrap();
    assert_eq!(
        (start.elapsed().as_secs(), broker.messages("t").len()),
        (3, 3)
    );
}

#[tokio::test(start_paused = true)]
async fn a_reset_cuts_everything_on_the_connection_and_new_ones_are_taken() {
    let (broker, client, mut telemetry) = consumer().await;
    broker.fault(Fault::on(Rpc::QueryRoute).reset());
    client.route("t").await.unwrap_err();
    telemetry.down.message().await.unwrap_err();
    assert!(client.route("t").await.is_ok());
    assert_eq!(broker.live(0).connections_accepted, 2);
    assert_eq!(broker.live(0).connections, 1);
}

#[tokio::test(start_paused = true)]
async fn receive_streams_end_fail_or_hang_after_some_items() {
    let (broker, client, _telemetry) = consumer().await;
    client.send_ids("t", &["a", "b", "c"]).await;
    broker.fault(Fault::on(Rpc::ReceiveMessage).after_items(2));
    let cut = client.receive(receive("g", "t")).await;
    assert_eq!(cut.contents.len(), 2, "status and one message");
    assert!(cut.error.is_none());
    assert_eq!(
        broker.inspect("t", "g").in_flight,
        3,
        "the others are as good as lost"
    );

    tokio::time::sleep(secs(11)).await;
    broker.fault(
        Fault::on(Rpc::ReceiveMessage)
            .grpc(tonic::Code::Unavailable, "gone")
            .after_items(1),
    );
    let failed = client.receive(receive("g", "t")).await;
    assert_eq!(failed.contents.len(), 1);
    assert_eq!(failed.error.unwrap().code(), tonic::Code::Unavailable);

    tokio::time::sleep(secs(11)).await;
    broker.fault(Fault::on(Rpc::ReceiveMessage).hang().after_items(1));
    let mut request = client.request(receive("g", "t"));
    request.set_timeout(secs(10_000));
    assert!(
        timeout(secs(500), client.receive_raw(request))
            .await
            .is_err()
    );

    broker.fault(Fault::on(Rpc::ReceiveMessage).end());
    let nothing = client.receive(receive("g", "t")).await;
    assert!(nothing.contents.is_empty() && nothing.error.is_none());

    broker.fault(Fault::on(Rpc::ReceiveMessage).status(Code::TooManyRequests, "flow limit"));
    assert_eq!(
        client.receive(receive("g", "t")).await.status().code(),
        Code::TooManyRequests
    );
}

#[tokio::test(start_paused = true)]
async fn a_receive_that_loses_its_reply_leaves_its_messages_invisible() {
    let (broker, client, _telemetry) = consumer().await;
    client.send_ids("t", &["m"]).await;
    broker.fault(Fault::on(Rpc::ReceiveMessage).lose_reply());
    let lost = client.receive(receive("g", "t")).await;
    assert_eq!(lost.error.unwrap().code(), tonic::Code::Unavailable);
    assert_eq!(broker.inspect("t", "g").in_flight, 1);
    tokio::time::sleep(secs(11)).await;
    assert_eq!(broker.inspect("t", "g").ready, 1);
}

#[tokio::test(start_paused = true)]
async fn replies_can_be_made_hostile() {
    let (broker, client, mut telemetry) = consumer().await;
    client.send_ids("t", &["m"]).await;
    broker.fault(Fault::on(Rpc::ReceiveMessage).mutate(|reply| {
        if let Reply::ReceiveMessage(item) = reply
            && let Some(Content::Message(message)) = &mut item.content
        {
            message.body = "damaged".into();
        }
    }));
    assert_eq!(
        client.receive(receive("g", "t")).await.only().body,
        "damaged"
    );
    broker.fault(Fault::on(Rpc::QueryRoute).mutate(|reply| {
        if let Reply::QueryRoute(route) = reply {
            route.message_queues[0].permission = 99;
        }
    }));
    assert_eq!(
        client.route("t").await.unwrap().message_queues[0].permission,
        99
    );
    broker.fault(Fault::on(Rpc::Telemetry).mutate(|reply| {
        if let Reply::Telemetry(command) = reply
            && let Some(pb::telemetry_command::Command::Settings(settings)) = &mut command.command
        {
            settings.backoff_policy = None;
        }
    }));
    telemetry
        .up
        .send(command(push_settings("g", "t")))
        .await
        .unwrap();
    let reply = telemetry.down.message().await.unwrap().unwrap();
    let Some(pb::telemetry_command::Command::Settings(settings)) = reply.command else {
        panic!("no settings");
    };
    assert_eq!(settings.backoff_policy, None);
}

#[tokio::test(start_paused = true)]
async fn settings_can_hang_be_late_be_refused_fail_and_end() {
    let broker = broker().await;
    let client = Client::of(&broker, "p");
    broker.fault(Fault::on(Rpc::Telemetry).hang());
    let mut hung = client.telemetry(producer_settings("t")).await.unwrap();
    assert!(timeout(secs(600), hung.down.message()).await.is_err());
    assert_eq!(
        broker.record().of(Rpc::Telemetry).next().unwrap().outcome(),
        None
    );
    hung.up.send(command(producer_settings("t"))).await.unwrap();
    hung.down.message().await.unwrap().unwrap();

    broker.fault(Fault::on(Rpc::Telemetry).delay(secs(5)));
    let start = Instant::now();
    client.settle(producer_settings("t")).await;
    assert_eq!(start.elapsed().as_secs(), 5);

    broker.fault(Fault::on(Rpc::Telemetry).status(Code::Unauthorized, "no"));
    let mut refused = client.telemetry(producer_settings("t")).await.unwrap();
    let only = refused.down.message().await.unwrap().unwrap();
    assert_eq!(only.status.unwrap().code(), Code::Unauthorized);
    assert!(refused.down.message().await.unwrap().is_none());

    broker.fault(Fault::on(Rpc::Telemetry).grpc(tonic::Code::Unavailable, "no"));
    let mut failed = client.telemetry(producer_settings("t")).await.unwrap();
    assert_eq!(
        failed.down.message().await.unwrap_err().code(),
        tonic::Code::Unavailable
    );

    broker.fault(Fault::on(Rpc::Telemetry).end());
    let mut ended = client.telemetry(producer_settings("t")).await.unwrap();
    assert!(ended.down.message().await.unwrap().is_none());

    broker.fault(Fault::on(Rpc::Telemetry).reset());
    let mut reset = client.telemetry(producer_settings("t")).await;
    if let Ok(reset) = &mut reset {
        reset.down.message().await.unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_has_only_as_many_streams_as_it_may() {
    let builder = EmbeddedBroker::builder()
        .in_memory()
        .max_concurrent_streams(2);
    let broker = builder.start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "t").await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.receive(receive("g", "t")).await }
    });
    broker.wait_for(|_| broker.live(0).parked_polls == 1).await;
    let third = timeout(Duration::from_secs(1), client.route("t")).await;
    assert!(third.is_err(), "it waits for a stream");
    waiting.await.unwrap();
    assert!(client.route("t").await.is_ok());
}
