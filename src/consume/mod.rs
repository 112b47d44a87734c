//! Consuming: what a consumer shall be, what a handler gets and returns, and the parts between.

mod acks;
mod budget;
mod codec;
mod consumption;
mod delivery;
mod dispatch;
mod figures;
mod freshness;
mod handle;
mod handler;
mod handling;
mod lease;
mod outcome;
mod pace;
mod pauses;
mod queues;
mod receive;
mod receive_loop;
mod returned;
mod running;
mod settings;
pub(crate) mod settle;
mod shutdown;
mod spec;
mod start;
mod stats;
mod sync_pool;
mod watch;

pub use codec::{Codec, Raw, Text};
pub use delivery::Delivery;
pub use handle::{ConsumerStats, PushConsumer};
pub use handler::{ByActor, ByFunction, Deliver, DeliveryHandler, IntoHandler, Made};
pub use outcome::{IntoOutcome, Outcome};
pub use shutdown::ShutdownReport;
pub use spec::{PushConsumerBuilder, PushConsumerSpec};

pub(crate) use acks::Acks;
pub(crate) use consumption::Consumption;
pub(crate) use dispatch::{handle, handle_in_order};
pub(crate) use figures::QueueFigures;
pub(crate) use freshness::watch_freshness;
pub(crate) use queues::RunningQueue;
pub(crate) use receive::{Leased, Receiver};
pub(crate) use receive_loop::receive_loop;
pub(crate) use returned::settle_returned;
pub(crate) use spec::Subscription;
