//! What the other tests take for granted about the server that they run on.

use std::collections::HashSet;
use std::time::Duration;

use rocketmq_proto::v2 as pb;

use crate::raw::Raw;
use crate::support::{Lag, RealServer};

#[tokio::test]
async fn listed_topics_have_routes_with_their_queues_and_types() {
    let mut raw = Raw::connect(&RealServer::from_env(), "routes").await;
    for (topic, queues, accepted) in [
        ("normal-8", 8, pb::MessageType::Normal),
        ("normal-1", 1, pb::MessageType::Normal),
        ("fifo", 4, pb::MessageType::Fifo),
        ("transaction", 4, pb::MessageType::Transaction),
        ("t1", 4, pb::MessageType::Normal),
        ("t20", 4, pb::MessageType::Normal),
    ] {
        let route = raw.route(topic).await;
        let ids: HashSet<_> = route.message_queues.iter().map(|queue| queue.id).collect();
        assert_eq!(ids.len(), queues, "{topic}: {:?}", route.status);
        for queue in route.message_queues {
            assert_eq!(queue.accept_message_types, [accepted as i32], "{topic}");
        }
    }
}

#[tokio::test]
async fn listed_groups_have_their_attempts_and_order() {
    let server = RealServer::from_env();
    for (topic, group, attempts, fifo) in [
        ("normal-1", "retries-2", 3, false),
        ("normal-1", "g20", 17, false),
        ("normal-1", "few5", 3, false),
        ("fifo", "fifo", 4, true),
        ("normal-1", "dead-letters", 101, false),
    ] {
        let mut raw = Raw::connect(&server, &format!("groups-{group}")).await;
        let (settings, _telemetry) = raw.subscribe(topic, group).await.unwrap();
        let policy = settings.backoff_policy.unwrap();
        assert_eq!(policy.max_attempts, attempts, "{group}");
        let Some(pb::settings::PubSub::Subscription(subscription)) = settings.pub_sub else {
            panic!("no subscription in the settings of {group}");
        };
        assert_eq!(subscription.fifo.unwrap_or_default(), fifo, "{group}");
    }
}

#[tokio::test]
async fn a_message_given_back_counts_as_lag_until_it_is_acknowledged() {
    let server = RealServer::from_env();
    let (topic, group) = ("harness", "harness");
    let mut raw = Raw::connect(&server, "lag").await;
    let (_settings, telemetry) = raw.subscribe(topic, group).await.unwrap();
    for id in ["one", "two", "three"] {
        let sent = raw.send(topic, id).await;
        assert_eq!(sent.status.unwrap().code, pb::Code::Ok as i32);
    }
    assert_eq!(server.written(topic).await, 3);
    let received = raw.receive_exactly(3, topic, group).await;
    for message in &received[..2] {
        assert_eq!(raw.ack(group, message).await.code, pb::Code::Ok as i32);
    }
    raw.terminate(group, telemetry).await;

    let retry = Lag {
        topic: format!("%RETRY%{group}_{topic}"),
        behind: 1,
    };
    let within = Duration::from_secs(60);
    server
        .lag_becomes(group, within, |lag| lag.contains(&retry))
        .await;

    let mut raw = Raw::connect(&server, "lag-again").await;
    let (_settings, _telemetry) = raw.subscribe(topic, group).await.unwrap();
    for message in raw.receive_exactly(1, topic, group).await {
        assert_eq!(raw.ack(group, &message).await.code, pb::Code::Ok as i32);
    }
    server.caught_up(group, within).await;
    assert_eq!(server.written(&retry.topic).await, 1);
}

#[tokio::test]
async fn cluster_mode_creates_a_group_that_nobody_listed() {
    let mut raw = Raw::connect(&RealServer::from_env(), "unlisted").await;
    let (settings, _telemetry) = raw.subscribe("normal-1", "unlisted").await.unwrap();
    assert_eq!(settings.backoff_policy.unwrap().max_attempts, 17);
}
