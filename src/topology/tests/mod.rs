#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod probe;
mod restarting;
mod stopping;
mod timers;
mod traps;
