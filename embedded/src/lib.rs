//! An in-process RocketMQ 5 broker.

mod admission;
mod auth;
mod broker;
mod builder;
mod clock;
mod cluster;
mod config;
mod control;
mod delivery;
mod fault;
mod headers;
mod history;
mod inspect;
mod names;
mod node;
mod receipt;
mod record;
mod rpc;
mod serve;
mod service;
mod settings;
mod standing;
mod store;
mod wire;

pub use broker::{Connector, EmbeddedBroker};
pub use builder::Builder;
pub use config::{Backoff, GroupConfig, TopicConfig, TopicType};
pub use control::Close;
pub use fault::{Fault, FaultHandle};
pub use headers::Headers;
pub use history::{Acknowledged, Delivery};
pub use inspect::{Counts, StoredMessage};
pub use node::Live;
pub use record::{Call, Outcome, Record};
pub use rocketmq_proto::v2 as proto;
pub use rpc::{Reply, RequestBody, Rpc};
