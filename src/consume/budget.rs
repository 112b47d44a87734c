//! The cache of a consumer: how many messages and bytes it may hold, over all its queues.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Most messages of one receive, as the server has it.
const LARGEST_BATCH: usize = 32;

/// Counts what is cached. A poll reserves nothing; what arrives is counted until it is settled.
///
/// Always: cached ≤ limit + one message for each active receive, in count and in bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    max_count: usize,
    max_bytes: usize,
    usage: Mutex<Usage>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Usage {
    count: usize,
    bytes: usize,
    polls: usize,
    /// Smoothed size of a body.
    average: usize,
}

impl Budget {
    pub(crate) fn new(max_count: usize, max_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            max_count,
            max_bytes,
            usage: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Cached messages and bytes.
    pub(crate) fn used(&self) -> (usize, usize) {
        let usage = self.lock();
        (usage.count, usage.bytes)
    }

    /// Receives under way.
    pub(super) fn polls(&self) -> usize {
        self.lock().polls
    }

    /// Whether a limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        !self.lock().has_room(self)
    }

    /// Waits until neither limit is reached. Cancel safe.
    pub(crate) async fn has_room(&self) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Registered before looking, so that no wake-up between the two is missed.
            freed.as_mut().enable();
            if self.lock().has_room(self) {
                return;
            }
            freed.await;
        }
    }

    /// Counts a poll and says how many messages it may ask for (1 to `most`).
    pub(crate) fn poll(self: &Arc<Self>, most: usize) -> Poll {
        let mut usage = self.lock();
        usage.polls += 1;
        let by_count = self.max_count.saturating_sub(usage.count) / usage.polls;
        let bytes = self.max_bytes.saturating_sub(usage.bytes) / usage.polls;
        let by_bytes = bytes / usage.average.max(1);
        let most = most.clamp(1, LARGEST_BATCH);
        Poll {
            batch: by_count.min(by_bytes).clamp(1, most),
            budget: self.clone(),
        }
    }

    /// Counts a message that arrived, whether there is room or not.
    pub(crate) fn admit(self: &Arc<Self>, bytes: usize) -> Permit {
        let mut usage = self.lock();
        usage.count += 1;
        usage.bytes += bytes;
        usage.average = (usage.average * 7 + bytes) / 8;
        Permit {
            bytes,
            budget: self.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Usage)) {
        let mut usage = self.lock();
        let full = !usage.has_room(self);
        change(&mut usage);
        let room = usage.has_room(self);
        drop(usage);
        if full && room {
            self.freed.notify_waiters();
        }
    }
}

impl Usage {
    fn has_room(&self, limits: &Budget) -> bool {
        self.count < limits.max_count && self.bytes < limits.max_bytes
    }
}

/// An active receive.
#[derive(Debug)]
pub(crate) struct Poll {
    /// How many messages to ask for.
    pub(crate) batch: usize,
    budget: Arc<Budget>,
}

impl Drop for Poll {
    fn drop(&mut self) {
        self.budget.change(|usage| usage.polls -= 1);
    }
}

/// One cached message; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    bytes: usize,
    budget: Arc<Budget>,
}

impl Permit {
    /// The message turned out to have this size.
    pub(crate) fn resize(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.budget
            .change(|usage| usage.bytes = usage.bytes - before + bytes);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.change(|usage| {
            usage.count -= 1;
            usage.bytes -= self.bytes;
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_batch_fits_into_what_is_free_shared_by_the_active_polls() {
        let budget = Budget::new(40, 1_000_000);
        let first = budget.poll(32);
        assert_eq!(first.batch, 32);
        let second = budget.poll(32);
        assert_eq!(second.batch, 20, "half of what is free");
        let held: Vec<_> = (0..39).map(|_| budget.admit(100)).collect();
        assert_eq!(budget.poll(32).batch, 1, "never less than one");
        drop((first, second, held));
        assert_eq!(budget.used(), (0, 0));
        assert_eq!(budget.poll(4).batch, 4, "never more than the server wants");
    }

    #[test]
    fn a_batch_is_small_where_bodies_are_large() {
        let budget = Budget::new(4096, 64 * 1024);
        for _ in 0..50 {
            budget.admit(16 * 1024);
        }
        assert!(
            (1..=5).contains(&budget.poll(32).batch),
            "about four bodies fit"
        );
    }

    #[test]
    fn a_full_cache_wakes_who_waits_when_space_frees() {
        let budget = Budget::new(1, 100);
        let mut held = budget.admit(10);
        let mut waiting = Box::pin(budget.has_room());
        assert!((&mut waiting).now_or_never().is_none(), "full by count");
        drop(held);
        assert!((&mut waiting).now_or_never().is_some());
        held = budget.admit(1);
        held.resize(500);
        drop(waiting);
        assert!(budget.has_room().now_or_never().is_none(), "full by bytes");
        held.resize(2);
        assert_eq!(budget.used(), (1, 2));
    }

    proptest! {
        #[test]
        fn accounting_equals_a_recount(sizes in prop::collection::vec((0usize..5000, any::<bool>()), 1..200)) {
            let budget = Budget::new(64, 100_000);
            let mut held = Vec::new();
            for (size, release) in sizes {
                if release && !held.is_empty() {
                    held.swap_remove(size % held.len());
                } else {
                    held.push((size, budget.admit(size)));
                }
                let bytes: usize = held.iter().map(|(size, _)| size).sum();
                prop_assert_eq!(budget.used(), (held.len(), bytes));
                let batch = budget.poll(32).batch;
                prop_assert!((1..=32).contains(&batch));
            }
            drop(held);
            prop_assert_eq!(budget.used(), (0, 0));
        }
    }
}
