//! Messages to a [`ConsumerActor`](crate::actors::ConsumerActor).

use std::sync::Arc;

use actix::Message;
use rocketmq_proto::v2 as pb;

use crate::{
    Result,
    model::queue::{MessageQueue, QueueKey},
};

/// From the start of the consumer, once its routes are committed: begin to consume.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Begin;

/// From the consumer actor's timer: ask for every assignment.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct ScanAssignments;

/// From the consumer actor's timer, after a process queue ended: ask for one assignment.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct ScanTopic {
    pub(crate) topic: Arc<str>,
}

/// From the consumer actor's query task: what a server answered.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct AssignmentAnswered {
    pub(crate) topic: Arc<str>,
    pub(crate) answer: Result<Vec<pb::Assignment>>,
}

/// From the consumer actor's gate task: the endpoints of an assigned queue may be used, or not.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct QueuePrepared {
    pub(crate) queue: MessageQueue,
    pub(crate) prepared: Result<()>,
}

/// From the consumer actor's watch over a process queue: it ended, for whatever reason.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct QueueEnded {
    /// `None` for one that was dropped before.
    pub(crate) key: Option<QueueKey>,
    pub(crate) serial: u64,
    /// Why, if it was not meant to.
    pub(crate) failure: Option<String>,
}
