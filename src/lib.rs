//! RocketMQ 5 clients as actix actors.

mod actors;
mod client;
mod config;
mod consume;
mod environment;
mod error;
mod gate;
mod member;
mod messages;
mod model;
mod produce;
mod rpc;
mod topology;

pub use client::{Client, Startable};
pub use config::{ClientConfig, ClientConfigBuilder, Intervals, Tls, TlsOptions};
pub use consume::{
    ByActor, ByFunction, Codec, ConsumerStats, Deliver, Delivery, DeliveryHandler, IntoHandler,
    IntoOutcome, Made, Outcome, PushConsumer, PushConsumerBuilder, PushConsumerSpec, Raw,
    ShutdownReport, Text,
};
pub use environment::{Connector, Io, SystemClock, WallClock};
pub use error::{Error, ErrorKind, Result};
pub use messages::producer::SendMessage;
pub use model::{
    Address, Credentials, CredentialsProvider, Endpoints, Filter, Message, MessageBuilder,
    MessageType, RetryPolicy,
};
pub use produce::{
    Producer, ProducerBuilder, ProducerShutdownReport, ProducerSpec, ProducerStats, SendReceipt,
    WhenFull,
};
pub use topology::{
    Backoff, ChildRef, ChildSpec, ChildState, Exit, Intensity, LifeEvent, LifeEventKind, Liveness,
    MemberRef, MemberReport, Ping, Place, Restart, Scope, Stop, StopReport, Strategy, Topology,
    TopologyHandle, TreeNode,
};
