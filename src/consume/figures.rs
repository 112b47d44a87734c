//! What can be seen of a consumer and its queues from outside.

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicUsize, Ordering},
};

use tokio_util::task::TaskTracker;

use super::consumption::Consumption;
use crate::{ConsumerDetails, Details, QueueDetails, TreeNode, model::queue::QueueKey};

/// The figures of one process queue: written by its actor, read by whoever looks.
#[derive(Debug)]
pub(crate) struct QueueFigures {
    key: QueueKey,
    /// Has a token of each receive loop.
    loops: TaskTracker,
    /// Has a token of each delivery that is not settled.
    open: TaskTracker,
    waiting: AtomicUsize,
    received: AtomicI64,
    handed_out: AtomicI64,
}

/// No offset yet.
const NONE: i64 = i64::MIN;

impl QueueFigures {
    pub(crate) fn new(key: QueueKey, loops: TaskTracker, open: TaskTracker) -> Arc<Self> {
        Arc::new(Self {
            key,
            loops,
            open,
            waiting: AtomicUsize::new(0),
            received: AtomicI64::new(NONE),
            handed_out: AtomicI64::new(NONE),
        })
    }

    /// So many wait, of which the last that came has this offset.
    pub(crate) fn received(&self, waiting: usize, offset: Option<i64>) {
        self.waiting.store(waiting, Ordering::Relaxed);
        if let Some(offset) = offset {
            self.received.store(offset, Ordering::Relaxed);
        }
    }

    /// So many still wait, and a handler was started for this offset.
    pub(crate) fn handed_out(&self, waiting: usize, offset: Option<i64>) {
        self.waiting.store(waiting, Ordering::Relaxed);
        if let Some(offset) = offset {
            self.handed_out.store(offset, Ordering::Relaxed);
        }
    }

    fn details(&self, assigned: bool) -> QueueDetails {
        let offset = |offset: &AtomicI64| {
            let offset = offset.load(Ordering::Relaxed);
            (offset != NONE).then_some(offset)
        };
        QueueDetails {
            topic: self.key.topic.clone(),
            broker: self.key.broker.clone(),
            id: self.key.id,
            endpoint: self.key.endpoints.clone(),
            assigned,
            waiting: self.waiting.load(Ordering::Relaxed),
            unsettled: self.open.len(),
            receive_loops: self.loops.len(),
            received: offset(&self.received),
            handed_out: offset(&self.handed_out),
        }
    }
}

impl Consumption {
    /// The figures of the consumer, and its actors.
    pub(super) fn look(&self) -> (Details, Vec<TreeNode>) {
        let mut nodes = self.member.nodes();
        let queues = self.queues();
        nodes.extend(queues.all().map(|(_, queue)| {
            let details = queue.figures.details(!queue.dropped.is_cancelled());
            queue.control.node(Details::Queue(details), Vec::new())
        }));
        drop(queues);
        (Details::Consumer(self.details()), nodes)
    }

    fn details(&self) -> ConsumerDetails {
        let Self {
            options, budget, ..
        } = self;
        let (cached_messages, cached_bytes) = budget.used();
        let idle = self.handlers.available_permits();
        ConsumerDetails {
            group: self.role.group.clone(),
            paused: self.pauses.topics().into_iter().collect(),
            handlers: options.concurrency.saturating_sub(idle),
            concurrency: options.concurrency,
            cached_messages,
            max_cached_messages: options.max_cached_messages,
            cached_bytes,
            max_cached_bytes: options.max_cached_bytes,
            receives: budget.polls(),
            unsettled: self.leases.open(),
        }
    }
}
