//! What one group has taken of one topic on one node.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::log::{Entry, Log};
use super::order::Order;
use super::timers::TimerKey;
use super::{Holder, Position};

/// A message that was delivered and is invisible until it is settled or its time is over.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) entry: Entry,
    pub(crate) popped_at: i64,
    pub(crate) invisible: i64,
    /// Set while the node keeps the message invisible for a living client.
    pub(crate) renew: Option<Holder>,
    /// Whether its next delivery counts as no new attempt.
    pub(crate) suspended: bool,
    pub(crate) timer: TimerKey,
}

#[derive(Debug, Default)]
pub(crate) struct GroupStore {
    /// The next offset by queue; in an ordered group, the first that is not settled.
    pub(crate) next: Vec<i64>,
    /// Messages that became visible again.
    pub(crate) retry: Log,
    pub(crate) retry_next: i64,
    pub(crate) leases: HashMap<Position, Lease>,
    pub(crate) orders: HashMap<usize, Order>,
    /// Wakes one waiting receive per arrival.
    pub(crate) notify: Arc<Notify>,
    /// Counts receives: where the next one starts.
    pops: usize,
    pub(crate) acked: u64,
    /// What pulling clients have noted, by queue.
    pub(crate) pull_offsets: HashMap<usize, i64>,
}

impl GroupStore {
    pub(crate) fn new(next: Vec<i64>) -> Self {
        Self {
            next,
            ..Self::default()
        }
    }

    /// Counts a receive, and says how many there were before.
    pub(crate) fn turn(&mut self) -> usize {
        self.pops = self.pops.wrapping_add(1);
        self.pops - 1
    }

    /// Messages that a receive would get.
    pub(crate) fn ready(&self, queues: &[Log], now: Instant) -> usize {
        let fresh: i64 = queues
            .iter()
            .enumerate()
            .map(|(index, log)| {
                let next = self.next.get(index).copied().unwrap_or_default();
                let blocked = self
                    .orders
                    .get(&index)
                    .is_some_and(|order| order.blocked(now));
                if blocked {
                    0
                } else {
                    (log.end() - next.max(log.first())).max(0)
                }
            })
            .sum();
        let again = (self.retry.end() - self.retry_next).max(0);
        usize::try_from(fresh + again).unwrap_or_default()
    }

    /// Messages that were delivered and are neither settled nor visible again.
    pub(crate) fn in_flight(&self, now: Instant) -> usize {
        let ordered: usize = self.orders.values().map(|order| order.held(now)).sum();
        self.leases.len() + ordered
    }
}
