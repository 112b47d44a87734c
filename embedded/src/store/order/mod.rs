//! Groups whose queues are consumed in order: one batch per queue at a time.

mod pop;
mod settle;

use std::sync::Arc;

use tokio::time::Instant;

use super::group::GroupStore;
use super::timers::{Event, TimerKey};
use super::{Holder, Position, Store};

/// One message of the batch that was taken last.
#[derive(Clone, Debug)]
struct Held {
    offset: i64,
    settled: bool,
    visible_at: Instant,
    /// Deliveries that failed.
    failed: u32,
    suspended: bool,
}

/// The batch that was taken last from one queue.
#[derive(Debug)]
pub(crate) struct Order {
    batch: Vec<Held>,
    attempt_id: Option<String>,
    popped_at: i64,
    renew: Option<Holder>,
    timer: Option<TimerKey>,
}

impl Order {
    /// Whether any of the batch is neither settled nor out of time.
    pub(crate) fn blocked(&self, now: Instant) -> bool {
        self.held(now) > 0
    }

    pub(crate) fn held(&self, now: Instant) -> usize {
        self.batch
            .iter()
            .filter(|held| !held.settled && held.visible_at > now)
            .count()
    }

    fn is_attempt(&self, id: Option<&str>) -> bool {
        id.is_some() && self.attempt_id.as_deref() == id
    }

    fn find(&self, offset: i64) -> Option<&Held> {
        self.batch.iter().find(|held| held.offset == offset)
    }

    fn unblocked_at(&self) -> Option<Instant> {
        self.batch
            .iter()
            .filter(|held| !held.settled)
            .map(|held| held.visible_at)
            .max()
    }

    fn first_open(&self) -> Option<i64> {
        self.batch
            .iter()
            .find(|held| !held.settled)
            .map(|held| held.offset)
    }
}

impl GroupStore {
    pub(crate) fn order_renewed_for(&self, position: Position, holder: &Holder) -> bool {
        usize::try_from(position.queue)
            .ok()
            .and_then(|queue| self.orders.get(&queue))
            .is_some_and(|order| order.renew.as_ref() == Some(holder))
    }
}

impl Store {
    /// Moves the group on over what is settled, and arms the queue's timer anew.
    fn order_changed(&mut self, topic: &str, group: &str, queue: usize) {
        let now = Instant::now();
        let Some(topic_store) = self.topics.get_mut(topic) else {
            return;
        };
        let name = Arc::clone(&topic_store.name);
        let Some(store) = topic_store.groups.get_mut(group) else {
            return;
        };
        let Some(order) = store.orders.get_mut(&queue) else {
            return;
        };
        let last = order.batch.last().map(|held| held.offset + 1);
        let open = order.first_open();
        if let (Some(next), Some(committed)) = (store.next.get_mut(queue), open.or(last)) {
            *next = committed;
        }
        if let Some(old) = order.timer.take() {
            self.timers.remove(old);
        }
        match order.unblocked_at() {
            Some(at) if at > now => {
                order.timer = Some(self.timers.insert(
                    at,
                    Event::Order {
                        topic: name,
                        group: group.into(),
                        queue,
                    },
                ));
            }
            Some(_) => store.notify.notify_one(),
            None => {
                store.orders.remove(&queue);
                store.notify.notify_one();
            }
        }
    }

    /// An ordered queue's time is over: wakes a waiting receive.
    pub(crate) fn order_due(&mut self, topic: &str, group: &str, queue: usize) {
        if let Some(store) = self
            .topics
            .get_mut(topic)
            .and_then(|topic| topic.groups.get_mut(group))
        {
            if let Some(order) = store.orders.get_mut(&queue) {
                order.timer = None;
            }
            store.notify.notify_one();
        }
    }
}
