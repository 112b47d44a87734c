//! The client's promises, one module each, over the embedded broker.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "tests"
)]

mod actors;
mod actors_in_production;
mod backpressure;
mod batching;
mod behaviours;
mod chaos;
mod consuming;
mod crashes;
mod economy;
mod embedding;
mod events;
mod flood;
mod gate;
mod handlers;
mod harness;
mod heals;
mod heals_receives;
mod health;
mod life;
mod log;
mod pausing;
mod producer;
mod refusals;
mod requests;
mod secrets;
mod settling;
#[path = "../behaviours/mod.rs"]
mod shared;
mod slow_handlers;
mod spans;
#[cfg(feature = "tls")]
mod survivors;
mod tls;
mod topology;
mod tree;
mod wiring;
