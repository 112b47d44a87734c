//! Groups whose queues are consumed in order: one batch per queue at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::group::GroupStore;
use super::leases::Abnormal;
use super::pop::{Pop, Popped, RENEWED_AT_MOST, deliver};
use super::timers::{Event, TimerKey};
use super::{Holder, Position, Store};
use crate::clock::millis_of;
use crate::receipt::{ORDERED, Receipt};

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

    /// How often the delivery of `offset` failed, were it delivered now.
    fn failed(&self, offset: i64, same_attempt: bool) -> u32 {
        self.batch
            .iter()
            .find(|held| held.offset == offset)
            .map_or(0, |held| {
                if same_attempt || held.suspended {
                    held.failed
                } else {
                    held.failed.saturating_add(1)
                }
            })
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
    /// Takes the next batch of every queue that is not blocked, up to a batch in all.
    pub(crate) fn pop_ordered(&mut self, pop: &Pop<'_>) -> Popped {
        let mut popped = Popped::default();
        let turn = {
            let group = self.topic(pop.topic, pop.queues).group(pop.group);
            group.pops += 1;
            group.pops - 1
        };
        for queue in self.scan_order(pop, turn) {
            if popped.messages.len() >= pop.batch {
                break;
            }
            self.pop_queue(pop, queue, &mut popped);
        }
        popped
    }

    fn pop_queue(&mut self, pop: &Pop<'_>, queue: usize, popped: &mut Popped) {
        let now = Instant::now();
        let broker = self.broker.clone();
        let Some(topic) = self.topics.get_mut(pop.topic) else {
            return;
        };
        let (Some(log), Some(group)) = (topic.queues.get(queue), topic.groups.get_mut(pop.group))
        else {
            return;
        };
        let before = group.orders.get(&queue);
        let blocked = before.is_some_and(|order| order.blocked(now));
        let same_attempt = blocked
            && before.is_some_and(|order| {
                order.attempt_id.is_some() && order.attempt_id.as_deref() == pop.attempt_id
            });
        if blocked && !same_attempt {
            return;
        }
        let again: Vec<i64> = before
            .filter(|_| same_attempt)
            .map(|order| {
                let open = order.batch.iter().filter(|held| !held.settled);
                open.map(|held| held.offset).collect()
            })
            .unwrap_or_default();
        let stays = if pop.renew.is_some() {
            RENEWED_AT_MOST
        } else {
            pop.invisible
        };
        let mut offset = group
            .next
            .get(queue)
            .copied()
            .unwrap_or_default()
            .max(log.first());
        let mut batch = Vec::new();
        while popped.messages.len() < pop.batch {
            let Some(entry) = log.get(offset) else { break };
            if same_attempt && !again.contains(&offset) {
                if offset > again.last().copied().unwrap_or_default() {
                    break;
                }
                batch.push(Held {
                    offset,
                    settled: true,
                    visible_at: now,
                    failed: 0,
                    suspended: false,
                });
                offset += 1;
                continue;
            }
            let failed = entry
                .reconsume
                .saturating_add(before.map_or(0, |order| order.failed(offset, same_attempt)));
            let mut settled = true;
            if !pop.filter.matches(&entry.stored) {
                popped.filtered += 1;
            } else if failed >= pop.max_attempts {
                let mut entry = entry.clone();
                entry.reconsume = failed;
                popped.exhausted.push(entry);
            } else {
                settled = false;
                let receipt = Receipt {
                    start_offset: offset,
                    popped_at: pop.now,
                    invisible: millis_of(pop.invisible),
                    revive_queue: ORDERED,
                    broker: broker.clone(),
                    position: Position {
                        retry: false,
                        queue: u32::try_from(queue).unwrap_or_default(),
                        offset,
                    },
                    commit_log: Some(entry.stored.commit_log),
                };
                popped.messages.push(deliver(entry, failed, &receipt));
            }
            batch.push(Held {
                offset,
                settled,
                visible_at: now + stays,
                failed: failed.saturating_sub(entry.reconsume),
                suspended: false,
            });
            offset += 1;
        }
        if batch.is_empty() {
            return;
        }
        let timer = before.and_then(|order| order.timer);
        group.orders.insert(
            queue,
            Order {
                batch,
                attempt_id: pop.attempt_id.map(str::to_owned),
                popped_at: pop.now,
                renew: pop.renew.clone(),
                timer,
            },
        );
        self.order_changed(pop.topic, pop.group, queue);
    }

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

    /// Settles one message of an ordered queue. Handles of older batches and of messages that
    /// are passed already do nothing. Says whether it was settled now.
    pub(crate) fn settle_ordered(
        &mut self,
        topic: &str,
        group: &str,
        receipt: &Receipt,
    ) -> Result<bool, Abnormal> {
        let offset = receipt.position.offset;
        let settled = self.with_held(topic, group, receipt, |held| {
            !std::mem::replace(&mut held.settled, true)
        })?;
        let Some(queue) = queue_of(receipt) else {
            return Err(Abnormal);
        };
        let store = self
            .topics
            .get_mut(topic)
            .and_then(|topic| topic.groups.get_mut(group));
        if let Some(store) = store {
            store.acked += u64::from(settled == Some(true));
            let unordered = !store.orders.contains_key(&queue);
            if let Some(next) = store.next.get_mut(queue)
                && unordered
                && offset >= *next
            {
                *next = offset + 1;
                return Ok(true);
            }
        }
        if settled.is_some() {
            self.order_changed(topic, group, queue);
        }
        Ok(settled.unwrap_or_default())
    }

    /// Sets when one message of an ordered queue is visible again.
    pub(crate) fn change_ordered(
        &mut self,
        topic: &str,
        group: &str,
        receipt: &Receipt,
        invisible: Duration,
        suspended: bool,
        now: i64,
    ) -> Result<Receipt, Abnormal> {
        let visible_at = Instant::now() + invisible;
        let changed = self.with_held(topic, group, receipt, |held| {
            held.visible_at = visible_at;
            held.suspended = suspended;
        })?;
        if let (Some(()), Some(queue)) = (changed, queue_of(receipt)) {
            self.order_changed(topic, group, queue);
        }
        Ok(Receipt {
            invisible: now + millis_of(invisible) - receipt.popped_at,
            ..receipt.clone()
        })
    }

    /// Nothing for a message that is passed, of an older batch or of no batch.
    fn with_held<T>(
        &mut self,
        topic: &str,
        group: &str,
        receipt: &Receipt,
        act: impl FnOnce(&mut Held) -> T,
    ) -> Result<Option<T>, Abnormal> {
        let offset = receipt.position.offset;
        let queue = queue_of(receipt).ok_or(Abnormal)?;
        let Some(store) = self
            .topics
            .get_mut(topic)
            .and_then(|topic| topic.groups.get_mut(group))
        else {
            return Ok(None);
        };
        if offset < *store.next.get(queue).ok_or(Abnormal)? {
            return Ok(None);
        }
        let Some(order) = store.orders.get_mut(&queue) else {
            return Ok(None);
        };
        if order.popped_at != receipt.popped_at {
            return Ok(None);
        }
        let held = order.batch.iter_mut().find(|held| held.offset == offset);
        held.map(act).map(Some).ok_or(Abnormal)
    }

    pub(crate) fn release_orders(&mut self, holder: &Holder, delay: Duration) {
        let visible_at = Instant::now() + delay;
        let mut released = Vec::new();
        for topic in self.topics.values_mut() {
            for (group, store) in &mut topic.groups {
                for (queue, order) in &mut store.orders {
                    if order.renew.as_ref() == Some(holder) {
                        order.renew = None;
                        for held in &mut order.batch {
                            held.visible_at = visible_at;
                        }
                        released.push((topic.name.clone(), group.clone(), *queue));
                    }
                }
            }
        }
        for (topic, group, queue) in released {
            self.order_changed(&topic, &group, queue);
        }
    }

    /// Delivered to nobody: visible again after `delay`, which counts as no attempt.
    pub(crate) fn return_ordered(
        &mut self,
        topic: &str,
        group: &str,
        receipt: &Receipt,
        delay: Duration,
    ) {
        let visible_at = Instant::now() + delay;
        let returned = self.with_held(topic, group, receipt, |held| {
            held.visible_at = visible_at;
            held.suspended = true;
        });
        if let (Ok(Some(())), Some(queue)) = (returned, queue_of(receipt)) {
            self.order_changed(topic, group, queue);
        }
    }
}

fn queue_of(receipt: &Receipt) -> Option<usize> {
    usize::try_from(receipt.position.queue).ok()
}
