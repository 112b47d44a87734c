//! The actors, one a file.

mod consumer;
mod process_queue;
mod producer;
mod route;
mod session;

pub(crate) use consumer::ConsumerActor;
pub(crate) use process_queue::ProcessQueueActor;
pub(crate) use producer::ProducerActor;
pub(crate) use route::RouteActor;
pub(crate) use session::{SessionActor, SessionLife, SettingsApplied};
