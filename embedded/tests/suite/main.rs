//! The broker's promises, each seen by a bare client over a pipe and under a paused clock.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "tests"
)]

mod client;
mod delayed;
mod faults;
mod invariants;
mod nodes;
mod ordered;
mod polling;
mod pulling;
mod records;
mod routes;
mod sending;
mod sessions;
mod settling;
mod signatures;
mod tcp;
mod transactions;

use std::time::Duration;

use rocketmq_embedded::{EmbeddedBroker, TopicConfig};

/// One node reached by pipes, with the topic `t` of two queues.
async fn broker() -> EmbeddedBroker {
    let broker = EmbeddedBroker::builder().in_memory().start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(2));
    broker
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
