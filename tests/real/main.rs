//! Tests against the real Apache RocketMQ server; `tests/real/run` starts it and runs them.
//!
//! Tests in a module `local` get a server in local mode, those in a module `outages` have the
//! server to themselves, and all others run side by side on one server in cluster mode. Each uses
//! a topic and a group of its own from the file `resources`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    unreachable_pub,
    reason = "tests"
)]

mod acceptance;
mod behaviours;
mod local;
mod outages;
mod processes;
mod raw;
mod server;
#[path = "../behaviours/mod.rs"]
mod shared;
mod starting;
mod support;
mod worker;
