//! A RocketMQ 5 broker inside your process, for tests and first steps.
//!
//! It speaks the gRPC protocol of a real proxy (`apache.rocketmq.v2`) and keeps everything in
//! memory. Any client of that protocol can use it over a loopback port:
//!
//! ```
//! use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let broker = EmbeddedBroker::start().await?;
//! broker.create_topic("orders", TopicConfig::normal(4));
//!
//! println!("access point: {}", broker.endpoints()); // 127.0.0.1:43211
//! // … run clients …
//! assert!(broker.dead_letters("billing").is_empty());
//! broker.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # In virtual time
//!
//! With [`Builder::in_memory`] there are no sockets: clients connect through pipes
//! ([`EmbeddedBroker::connect`]), and all time is tokio's, the wall clock included. Under a
//! paused clock a day of redelivery passes in moments and every run is the same:
//!
//! ```
//! use std::time::Duration;
//! use rocketmq_embedded::EmbeddedBroker;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let broker = EmbeddedBroker::builder()
//!     .nodes(2)
//!     .in_memory()
//!     .client_expiry(Duration::from_secs(30))
//!     .start()
//!     .await?;
//! assert_eq!(broker.node_endpoints(1), "10.0.0.2:8081");
//! let pipe = broker.connect("10.0.0.2", 8081).await?;
//! # drop(pipe);
//! # Ok(())
//! # }
//! ```
//!
//! # Making things go wrong
//!
//! A [`Fault`] says which calls go wrong and how: refused, failed, never answered, late, done
//! with the reply lost, cut after some items, or answered with hostile values. Nodes can be
//! [stopped](EmbeddedBroker::stop_node) and started, become
//! [black holes](EmbeddedBroker::black_hole), [forget](EmbeddedBroker::forget_settings) clients
//! and [close](EmbeddedBroker::close_telemetry) their streams; [routes](EmbeddedBroker::set_route)
//! and assignments can be scripted.
//!
//! ```
//! use rocketmq_embedded::{EmbeddedBroker, Fault, Rpc, proto::Code};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! # let broker = EmbeddedBroker::start().await?;
//! broker.fault(Fault::on(Rpc::AckMessage).node(0).times(2).status(Code::TooManyRequests, "busy"));
//! let lost = broker.fault(Fault::on(Rpc::SendMessage).topic("orders").lose_reply());
//! // … run clients …
//! assert_eq!(lost.hits(), 0);
//! broker.clear_faults();
//! # Ok(())
//! # }
//! ```
//!
//! # Seeing what happened
//!
//! [`record`](EmbeddedBroker::record) has every call with its time, caller, request and outcome;
//! [`wait_for`](EmbeddedBroker::wait_for) waits until it shows something. What was delivered,
//! acknowledged and given up is in [`deliveries`](EmbeddedBroker::deliveries),
//! [`acks`](EmbeddedBroker::acks) and [`dead_letters`](EmbeddedBroker::dead_letters);
//! [`inspect`](EmbeddedBroker::inspect) counts what is where.
//! [`assert_settings_first`](EmbeddedBroker::assert_settings_first) checks the rule that every
//! client owes a node: settings are answered before anything else is asked.
//!
//! # What is like a real broker, and what is not
//!
//! Codes, texts, limits and quirks are those of RocketMQ 5.5: acknowledgements that are OK
//! though they settle nothing, messages that come back to life when their invisible time is
//! changed after they were acknowledged, queues that block as a whole in ordered groups.
//!
//! It differs in this:
//!
//! - Messages become visible again almost at once after their invisible time, not two seconds
//!   later ([`Builder::redelivery_slack`]), and delayed ones on the millisecond.
//! - A receive whose client goes away takes no message any more; a real broker takes one and
//!   gives it back a second later.
//! - Topics and routes are not cached: what is made is there at once.
//! - Lite topics are not served.
//! - Pulling can be [had](Builder::pull_rpcs), which no real proxy serves.
//! - Every node is a proxy with a broker of its own: messages sent to a node stay there.

mod admission;
mod auth;
mod backoff;
mod broker;
mod builder;
mod clock;
mod cluster;
mod config;
mod connector;
mod control;
mod delivery;
mod fault;
mod headers;
mod history;
mod inspect;
mod live;
mod names;
mod node;
mod receipt;
mod record;
mod rpc;
mod script;
mod serve;
mod service;
mod settings;
mod sql;
mod standing;
mod store;
mod wire;

pub use backoff::Backoff;
pub use broker::EmbeddedBroker;
pub use builder::Builder;
pub use config::{GroupConfig, TopicConfig, TopicType};
pub use connector::Connector;
pub use control::Close;
pub use fault::{Fault, FaultHandle};
pub use headers::Headers;
pub use history::{Acknowledged, Delivery};
pub use inspect::{Counts, StoredMessage};
pub use live::Live;
pub use record::{Call, Outcome, Record};
pub use rocketmq_proto::v2 as proto;
pub use rpc::{Reply, RequestBody, Rpc};
