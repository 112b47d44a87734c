//! Values and rules of the protocol: no actors, no I/O, no clock.
#![allow(dead_code, reason = "the actors that use these values follow")]

pub(crate) mod delays;
pub(crate) mod endpoints;
pub(crate) mod excerpt;
mod message_type;
pub(crate) mod queue;
mod retry;
pub(crate) mod route;
pub(crate) mod time;

pub use endpoints::{Address, Endpoints};
pub use message_type::MessageType;
pub use retry::RetryPolicy;
