//! Counters of a push consumer.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start of the consumer.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) received: Counter,
    pub(crate) handled: Counter,
    pub(crate) failed: Counter,
    pub(crate) acked: Counter,
    pub(crate) retried: Counter,
    pub(crate) dead_lettered: Counter,
    pub(crate) handed_back: Counter,
    pub(crate) expired: Counter,
    pub(crate) abandoned: Counter,
    pub(crate) cancelled_polls: Counter,
    pub(crate) corrupted: Counter,
    pub(crate) queue_failures: Counter,
}

/// One counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: usize) {
        self.0
            .fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
