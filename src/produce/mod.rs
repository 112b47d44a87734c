//! Producing: what a producer shall be, how a message is sent, and the parts between.

mod attempts;
mod batch;
mod handle;
mod lane;
mod limits;
mod publication;
mod receipt;
mod send;
mod settings;
mod shutdown;
mod spec;
mod start;

pub use batch::Batching;
pub use handle::{Producer, ProducerStats};
pub use receipt::SendReceipt;
pub use shutdown::ProducerShutdownReport;
pub use spec::{ProducerBuilder, ProducerSpec, WhenFull};

pub(crate) use publication::Publication;
