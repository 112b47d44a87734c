//! RocketMQ 5 clients as actix actors.

mod error;
mod model;
mod rpc;
mod topology;

pub use error::{Error, ErrorKind, Result};
pub use model::{
    Address, Credentials, CredentialsProvider, Endpoints, Filter, Message, MessageBuilder,
    MessageType, RetryPolicy,
};
