//! Messages and service of the RocketMQ 5 gRPC protocol (`apache.rocketmq.v2`).
//!
//! The code is generated from `apache/rocketmq/v2/*.proto` beside it and committed, so that
//! whoever builds this needs no generator. Message bodies are [`bytes::Bytes`].

/// The package `apache.rocketmq.v2`.
#[allow(clippy::all, missing_docs, reason = "generated code")]
pub mod v2 {
    include!("apache.rocketmq.v2.rs");
}
