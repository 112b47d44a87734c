//! Apache RocketMQ 5 clients as an actor system: producers and consumers are small supervised
//! trees of [actix] actors that live beside your own.
//!
//! A tour:
//!
//! - [`Client`] holds configuration ([`ClientConfig`]), connections and threads; producers and
//!   consumers are started on it.
//! - [`PushConsumerSpec`] says what a consumer shall be, [`PushConsumer`] is one that runs. Its
//!   handler is an async closure over [`Delivery`], or an actor that takes [`Deliver`]; what it
//!   returns becomes an [`Outcome`].
//! - [`ProducerSpec`] and [`Producer`] are the same for sending [`Message`]s; an actor sends by
//!   [`SendMessage`].
//! - [`Topology`] supervises them together with your own actors: [`Restart`] policies, a
//!   [`Strategy`], [`Backoff`] and [`Intensity`].
//! - [`Error`] says by its [`ErrorKind`] what to do, and whether a send may have been stored.
//!
//! What can be relied on (delivery, order, restarts, back-pressure, shutdown) is written down in
//! `docs/semantics.md`, how it works in `ARCHITECTURE.md`.
//!
//! Features: `tls` (default) for TLS by rustls. With `panic = "abort"` no restart policy works.

mod actors;
mod client;
mod config;
mod consume;
mod environment;
mod error;
mod gate;
mod health;
mod member;
mod messages;
mod model;
mod produce;
mod rpc;
mod topology;

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use client::{Client, Startable};
pub use config::{ClientConfig, ClientConfigBuilder, Intervals, Tls, TlsOptions};
pub use consume::{
    ByActor, ByFunction, Codec, ConsumerStats, Deliver, Delivery, DeliveryHandler, IntoHandler,
    IntoOutcome, Made, Outcome, PushConsumer, PushConsumerBuilder, PushConsumerSpec, Raw,
    ShutdownReport, Text,
};
pub use environment::{Connector, Io, SystemClock, WallClock};
pub use error::{Error, ErrorKind, Result};
pub use health::{Health, Reason};
pub use messages::producer::SendMessage;
pub use model::{
    Address, Credentials, CredentialsProvider, Endpoints, Filter, Message, MessageBuilder,
    MessageType, RetryPolicy,
};
pub use produce::{
    Batching, Producer, ProducerBuilder, ProducerShutdownReport, ProducerSpec, ProducerStats,
    SendReceipt, WhenFull,
};
pub use topology::{
    ActorDetails, Backoff, ChildRef, ChildSpec, ChildState, ConsumerDetails, Details, Event,
    EventKind, Exit, Intensity, Liveness, MemberRef, MemberReport, Ping, Place, ProducerDetails,
    QueueDetails, Reference, Restart, Scope, SessionDetails, Stop, StopReport, Strategy, Topology,
    TopologyHandle, TreeNode,
};
