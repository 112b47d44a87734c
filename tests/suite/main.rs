//! The client's promises, one module each, over the embedded broker.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "tests"
)]

mod consuming;
mod gate;
mod harness;
