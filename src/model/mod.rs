//! Values and rules of the protocol: no actors, no I/O, no clock.
pub(crate) mod assignment;
pub(crate) mod balancer;
pub(crate) mod body;
pub(crate) mod client_id;
mod credentials;
pub(crate) mod delays;
pub(crate) mod digest;
pub(crate) mod endpoints;
pub(crate) mod excerpt;
mod filter;
pub(crate) mod header;
pub(crate) mod message;
pub(crate) mod message_id;
mod message_type;
pub(crate) mod name;
mod property;
pub(crate) mod queue;
mod retry;
pub(crate) mod route;
pub(crate) mod time;

pub use credentials::{Credentials, CredentialsProvider};
pub use endpoints::{Address, Endpoints};
pub use filter::Filter;
pub use message::{Message, MessageBuilder};
pub use message_type::MessageType;
pub use retry::RetryPolicy;
