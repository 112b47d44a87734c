//! A start that fails says why, in time, and can be tried again.

use std::error::Error as _;

use rocketmq_actors::{Client, Connector, ErrorKind};
use rocketmq_embedded::Fault;
use tokio::time::Instant;

use super::*;

fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
}

#[test]
fn n2_an_advertised_address_nobody_can_reach_is_named_with_topic_access_point_and_advice() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("orders", TopicConfig::normal(QUEUES));
        broker.advertise(0, "172.17.0.2", 8081);
        let start = Instant::now();
        let error = client(&broker)
            .start(consumer_of(&["orders"]))
            .await
            .unwrap_err();
        assert!(start.elapsed() <= secs(10), "{:?}", start.elapsed());
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert_eq!(error.peer(), Some("172.17.0.2:8081"));
        assert!(error.source().is_some(), "the cause is kept");
        let access_point = broker.endpoints();
        let advice = "set the proxy's advertised address";
        assert_says(
            &error.to_string(),
            &["172.17.0.2:8081", "topic orders", &access_point, advice],
        );
    });
}

#[test]
fn n2_an_advertised_address_that_hangs_up_or_is_silent_is_named_just_so() {
    for hangs_up in [true, false] {
        virtually(async {
            let broker = broker(|builder| builder).await;
            broker.create_topic("orders", TopicConfig::normal(QUEUES));
            broker.advertise(0, "172.17.0.2", 8081);
            let pipes = broker.connector();
            let connector = Connector::new(move |host: String, port| {
                let connected = if host == "172.17.0.2" {
                    let (near, far) = tokio::io::duplex(1024);
                    if !hangs_up {
                        std::mem::forget(far);
                    }
                    Ok(near)
                } else {
                    pipes.connect(&host, port)
                };
                async move { connected }
            });
            let config = config(&broker).connector(connector).build().unwrap();
            let start = Instant::now();
            let error = Client::new(config)
                .start(consumer_of(&["orders"]))
                .await
                .unwrap_err();
            assert!(start.elapsed() <= secs(10), "{:?}", start.elapsed());
            assert_says(
                &error.to_string(),
                &[
                    "172.17.0.2:8081",
                    "topic orders",
                    &broker.endpoints(),
                    "advertised address",
                ],
            );
        });
    }
}

#[test]
fn n22_q5_refused_settings_fail_the_start_at_once_and_the_next_start_works() {
    virtually(async {
        let broker = cluster(2).await;
        let refusal = Fault::on(Rpc::Telemetry).always();
        let refusal = broker.fault(refusal.grpc(tonic::Code::InvalidArgument, "bad group"));
        let client = client(&broker);
        let start = Instant::now();
        let error = client.start(consumer_of(&["t"])).await.unwrap_err();
        assert!(start.elapsed() <= secs(1), "{:?}", start.elapsed());
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_says(&error.to_string(), &["bad group", "topic t"]);
        broker
            .wait_for(|_| broker.live(1).telemetry_streams == 0)
            .await;
        refusal.clear();
        let _consumer = client.start(consumer_of(&["t"])).await.unwrap();
        receiving(&broker, &[1]).await;
    });
}

#[test]
fn n22_q5_settings_that_are_never_answered_fail_the_start_in_time_and_the_next_start_works() {
    virtually(async {
        let broker = cluster(2).await;
        let silence = broker.fault(Fault::on(Rpc::Telemetry).always().hang());
        let client = client(&broker);
        let start = Instant::now();
        let error = client.start(consumer_of(&["t"])).await.unwrap_err();
        assert!(start.elapsed() <= secs(10), "{:?}", start.elapsed());
        assert_eq!(error.kind(), ErrorKind::Timeout);
        let node = broker.node_endpoints(1);
        assert_says(&error.to_string(), &[&node, "topic t", "settings"]);
        broker
            .wait_for(|_| broker.live(1).telemetry_streams == 0)
            .await;
        assert_eq!(count(&broker.record(), 1, Rpc::ReceiveMessage), 0);
        silence.clear();
        let _consumer = client.start(consumer_of(&["t"])).await.unwrap();
        receiving(&broker, &[1]).await;
    });
}

#[test]
fn one_lost_answer_to_the_settings_does_not_fail_a_start() {
    virtually(async {
        let broker = cluster(2).await;
        broker.fault(Fault::on(Rpc::Telemetry).hang());
        let start = Instant::now();
        let client = client(&broker);
        let _consumer = client.start(consumer_of(&["t"])).await.unwrap();
        assert!(start.elapsed() <= secs(7), "{:?}", start.elapsed());
        assert_eq!(broker.record().count(Rpc::QueryRoute), 2);
    });
}

#[test]
fn a_start_without_the_topic_says_which() {
    virtually(async {
        let broker = cluster(2).await;
        let client = client(&broker);
        let error = client.start(consumer_of(&["t", "nowhere"])).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_says(&error.to_string(), &["nowhere", &broker.endpoints()]);
    });
}
