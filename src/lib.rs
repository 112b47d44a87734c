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
pub use topology::{
    Backoff, ChildState, Exit, Intensity, LifeEvent, LifeEventKind, Place, Restart, Stop, Strategy,
    TreeNode,
};
