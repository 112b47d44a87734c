//! Messages to a [`ProcessQueueActor`](crate::actors::ProcessQueueActor).

use actix::Message;
use tokio::sync::OwnedSemaphorePermit;

use crate::consume::Leased;

/// From a receive loop of the queue: these came.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Received {
    pub(crate) batch: Vec<Leased>,
    /// Whether they are to be handled one after the other.
    pub(crate) fifo: bool,
}

/// From a receive loop, where the queue is consumed in order: answered when all it has is settled.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct AwaitLane;

/// From a task of the queue that panicked: without it the queue is of no use.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct TaskPanicked {
    pub(crate) panic: String,
}

/// From the queue's waiter: one more handler may run.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct PermitGranted {
    pub(crate) permit: OwnedSemaphorePermit,
}

/// From a handler's task, where the queue is consumed in order: the next may start.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct LaneFree;

/// From a receive loop: a full batch came, so another loop may help; or an empty one, so that
/// one loop is enough.
#[derive(Debug, Message)]
#[rtype(result = "bool")]
pub(crate) struct LoopReport {
    pub(crate) full: bool,
}

/// From the queue's watch over drain and re-assignment: start nothing more, and stop when all is
/// settled.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct DrainQueue;

/// From the queue's drain, when its polls have ended: give back what has not started.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct HandBackWaiting;

/// From the queue's drain, as its last message: everything is settled.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct EndQueue;
