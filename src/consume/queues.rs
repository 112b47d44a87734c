//! The process queues of one consumer.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

use super::QueueFigures;
use crate::{model::queue::QueueKey, topology::ChildControl};

/// A process queue that runs.
#[derive(Debug, Clone)]
pub(crate) struct RunningQueue {
    pub(crate) control: ChildControl,
    pub(crate) figures: Arc<QueueFigures>,
    /// Cancelled when the queue is no longer assigned.
    pub(crate) dropped: CancellationToken,
    /// Tells apart queues of one key, of which the older may still be ending.
    pub(crate) serial: u64,
}

/// Assigned queues, and those that were dropped and settle what they have.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    assigned: BTreeMap<QueueKey, RunningQueue>,
    ending: Vec<RunningQueue>,
    serials: u64,
}

impl Queues {
    /// The serial of the next queue.
    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serials += 1;
        self.serials
    }

    pub(crate) fn insert(&mut self, key: QueueKey, queue: RunningQueue) {
        self.assigned.insert(key, queue);
    }

    /// Which queues of a topic run, and must not be started a second time.
    pub(crate) fn keys_of(&self, topic: &str) -> BTreeSet<QueueKey> {
        let keys = self.assigned.keys();
        keys.filter(|key| *key.topic == *topic).cloned().collect()
    }

    /// Has a queue end when it has settled what it has. One that is consumed in order keeps its
    /// place until then, so that order holds when it is assigned again meanwhile.
    pub(crate) fn drop_queue(&mut self, key: &QueueKey, in_order: bool) {
        if in_order {
            if let Some(queue) = self.assigned.get(key) {
                queue.dropped.cancel();
            }
        } else if let Some(queue) = self.assigned.remove(key) {
            queue.dropped.cancel();
            self.ending.push(queue);
        }
    }

    /// Forgets a queue that has ended.
    pub(crate) fn ended(&mut self, serial: u64) {
        self.ending.retain(|queue| queue.serial != serial);
        self.assigned.retain(|_, queue| queue.serial != serial);
    }

    /// Every queue with its key, those that are ending without one.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Option<&QueueKey>, &RunningQueue)> {
        let assigned = self.assigned.iter().map(|(key, queue)| (Some(key), queue));
        assigned.chain(self.ending.iter().map(|queue| (None, queue)))
    }

    /// How many are assigned.
    pub(crate) fn len(&self) -> usize {
        self.assigned.len()
    }

    pub(crate) fn clear(&mut self) {
        self.assigned.clear();
        self.ending.clear();
    }
}
