#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod arbiters;
mod cast;
mod chaos;
mod dynamic;
mod groups;
mod liveness;
mod probe;
mod restarting;
mod stopping;
mod timers;
mod traps;
mod usage;
