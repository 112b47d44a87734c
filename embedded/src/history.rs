//! What was delivered and what was settled.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// One delivery of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub message_id: String,
    /// Its topic.
    pub topic: String,
    /// Whom it was delivered to.
    pub group: String,
    /// The client that got it.
    pub client_id: String,
    /// The node whose broker has it.
    pub node: usize,
    /// 1 for the first delivery.
    pub attempt: u32,
    /// When it was taken.
    pub at: Instant,
    /// The handle it was delivered with.
    pub receipt_handle: String,
}

/// One message settled by an acknowledgement that took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The message.
    pub message_id: String,
    /// Its topic.
    pub topic: String,
    /// Whose it was.
    pub group: String,
    /// The client that acknowledged it.
    pub client_id: String,
    /// The node whose broker has it.
    pub node: usize,
    /// When.
    pub at: Instant,
    /// The handle that was given.
    pub receipt_handle: String,
}

#[derive(Debug)]
pub(crate) struct History {
    limit: usize,
    deliveries: Mutex<VecDeque<Delivery>>,
    acks: Mutex<VecDeque<Acknowledged>>,
}

impl History {
    pub(crate) fn keeping(limit: usize) -> Self {
        Self {
            limit,
            deliveries: Mutex::default(),
            acks: Mutex::default(),
        }
    }

    pub(crate) fn enabled(&self) -> bool {
        self.limit > 0
    }

    pub(crate) fn delivered(&self, new: impl Iterator<Item = Delivery>) {
        self.keep(&self.deliveries, new);
    }

    pub(crate) fn acknowledged(&self, new: impl Iterator<Item = Acknowledged>) {
        self.keep(&self.acks, new);
    }

    fn keep<T>(&self, all: &Mutex<VecDeque<T>>, new: impl Iterator<Item = T>) {
        if !self.enabled() {
            return;
        }
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        for one in new {
            if all.len() >= self.limit {
                all.pop_front();
            }
            all.push_back(one);
        }
    }

    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        let all = self
            .deliveries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.iter().cloned().collect()
    }

    pub(crate) fn acks(&self) -> Vec<Acknowledged> {
        let all = self.acks.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().cloned().collect()
    }
}
