//! Settling messages of ordered queues.

use std::time::Duration;

use tokio::time::Instant;

use super::Held;
use crate::clock::millis_of;
use crate::receipt::Receipt;
use crate::store::leases::Abnormal;
use crate::store::{Holder, Store};

impl Store {
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
