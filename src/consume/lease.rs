//! The duty to settle a delivery: to acknowledge it, or to give it back.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Delivery;
use crate::model::Endpoints;

/// What names a delivery towards the server.
#[derive(Debug, Clone)]
pub(crate) struct Receipt {
    pub(crate) topic: Arc<str>,
    pub(crate) endpoints: Endpoints,
    /// Opaque; passed back as it came.
    pub(crate) handle: String,
    pub(crate) message_id: String,
    pub(crate) attempt: u32,
}

/// What is to become of a delivery once its handler has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Ack,
    Retry(Duration),
    DeadLetter(String),
}

/// Holds a delivery until it is settled. Dropped before that, by a cancelled handler or a crash,
/// it goes to the [`Leases`]: what was decided is then done once more, and what was not decided
/// goes back to the server. To take back what may be acknowledged already would resurrect it.
#[derive(Debug)]
pub(crate) struct Lease {
    /// Empty only once it is settled.
    receipt: Option<Receipt>,
    decision: Option<Decision>,
    /// Keeps the message counted as cached.
    held: Option<Delivery>,
    /// Keeps its process queue from ending.
    queue: Option<TaskTrackerToken>,
    leases: Arc<Leases>,
}

impl Lease {
    /// Has the message count as cached, and its queue as busy, until it is settled.
    pub(crate) fn hold(&mut self, delivery: Delivery, queue: TaskTrackerToken) {
        self.held = Some(delivery);
        self.queue = Some(queue);
    }

    /// The handler has ended; from here on nothing else may be done with the delivery.
    pub(crate) fn decide(&mut self, decision: Decision) {
        self.decision = Some(decision);
    }

    pub(crate) fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// `None` once it is settled.
    pub(crate) fn receipt(&self) -> Option<&Receipt> {
        self.receipt.as_ref()
    }

    /// The server knows what became of it, or never will: nothing more is to be done.
    pub(crate) fn settled(mut self) {
        if self.receipt.take().is_some() {
            self.leases.end();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            self.leases.give_back(Returned {
                receipt,
                decision: self.decision.take(),
                held: self.held.take(),
            });
        }
    }
}

/// What was in a lease that was dropped.
#[derive(Debug)]
struct Returned {
    receipt: Receipt,
    decision: Option<Decision>,
    held: Option<Delivery>,
}

/// The leases of one consumer. Outlives restarts of its actors, so that no crash loses one.
///
/// As many as the cache holds messages, for each keeps its permit until it is settled.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    open: AtomicUsize,
    returned: Mutex<Vec<Returned>>,
    changed: Notify,
    /// Handlers that wait for the shutdown of their own consumer.
    callers: AtomicUsize,
}

impl Leases {
    pub(crate) fn lease(self: &Arc<Self>, receipt: Receipt) -> Lease {
        self.open.fetch_add(1, Ordering::AcqRel);
        Lease {
            receipt: Some(receipt),
            decision: None,
            held: None,
            queue: None,
            leases: self.clone(),
        }
    }

    /// How many deliveries are neither settled nor given back.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// The next leases to give back to the server; waits for the first. Dropped unsettled, they
    /// come again. Cancel safe.
    pub(crate) async fn returned(self: &Arc<Self>) -> Vec<Lease> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let returned = std::mem::take(&mut *self.lock());
            if !returned.is_empty() {
                let again = |returned: Returned| Lease {
                    receipt: Some(returned.receipt),
                    decision: returned.decision,
                    held: returned.held,
                    queue: None,
                    leases: self.clone(),
                };
                return returned.into_iter().map(again).collect();
            }
            changed.await;
        }
    }

    fn end(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Counts a handler that waits for the end of its own consumer, until dropped.
    pub(super) fn caller(&self) -> Caller<'_> {
        self.callers.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
        Caller(self)
    }

    /// Waits until every lease is settled or given back. Cancel safe.
    pub(crate) async fn all_ended(&self) {
        self.until(|| self.open() == 0).await;
    }

    /// The same but for those of handlers that wait for this very thing.
    pub(super) async fn all_others_ended(&self) {
        self.until(|| self.open() <= self.callers.load(Ordering::Acquire))
            .await;
    }

    async fn until(&self, reached: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if reached() {
                return;
            }
            changed.await;
        }
    }

    fn give_back(&self, returned: Returned) {
        self.lock().push(returned);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Returned>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Leases::caller`].
#[derive(Debug)]
pub(super) struct Caller<'a>(&'a Leases);

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.0.callers.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

    use futures::FutureExt;

    use super::*;

    fn receipt(handle: &str) -> Receipt {
        Receipt {
            topic: "t".into(),
            endpoints: Endpoints::parse("a:1").unwrap(),
            handle: handle.to_owned(),
            message_id: "m".to_owned(),
            attempt: 1,
        }
    }

    #[test]
    fn a_settled_lease_is_gone_and_a_dropped_one_comes_back() {
        let leases = Arc::<Leases>::default();
        let (one, two) = (leases.lease(receipt("1")), leases.lease(receipt("2")));
        let mut all = Box::pin(leases.all_ended());
        one.settled();
        drop(two);
        assert_eq!(
            leases.open(),
            1,
            "given back, but the server does not know yet"
        );
        assert!((&mut all).now_or_never().is_none());
        drop(leases.returned().now_or_never().unwrap());
        let mut returned = leases
            .returned()
            .now_or_never()
            .expect("dropped, it comes again");
        assert_eq!(returned.len(), 1);
        let again = returned.remove(0);
        assert_eq!(again.receipt().unwrap().handle, "2");
        again.settled();
        assert!(all.now_or_never().is_some());
        assert!(
            leases.returned().now_or_never().is_none(),
            "each comes back once"
        );
    }
}
