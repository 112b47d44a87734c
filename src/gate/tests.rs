#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod sentences;
