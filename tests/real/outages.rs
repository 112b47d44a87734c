//! Outages of the server; these tests have it to themselves.

mod restart;

use std::time::Duration;

use rocketmq_proto::v2 as pb;
use tokio::time::timeout;

use crate::raw::Raw;
use crate::support::{Process, RealServer};

#[tokio::test]
async fn a_killed_broker_comes_back_with_its_messages() {
    let server = RealServer::from_env();
    let mut raw = Raw::connect(&server, "killed-broker").await;
    let sent = raw.send("outages", "before").await;
    assert_eq!(sent.status.unwrap().code, pb::Code::Ok as i32);
    server.kill(Process::Broker).await;
    server.start().await;
    assert_eq!(server.written("outages").await, 1);
}

#[tokio::test]
async fn a_paused_proxy_answers_when_it_is_resumed() {
    let server = RealServer::from_env();
    let mut raw = Raw::connect(&server, "paused-proxy").await;
    server.pause(Process::Proxy).await;
    let early = timeout(Duration::from_secs(1), raw.route("outages")).await;
    server.resume(Process::Proxy).await;
    assert!(early.is_err(), "a paused proxy answered: {early:?}");
    assert_eq!(raw.route("outages").await.message_queues.len(), 1);
}
