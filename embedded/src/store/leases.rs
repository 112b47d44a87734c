//! Settling messages of groups whose queues are not ordered.

use std::time::Duration;

use tokio::time::Instant;

use super::group::Lease;
use super::log::Entry;
use super::timers::Event;
use super::{Holder, Position, Store};
use crate::receipt::Receipt;

/// A handle names no message of this node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Abnormal;

impl Store {
    fn lease_mut(&mut self, topic: &str, group: &str, position: Position) -> Option<&mut Lease> {
        self.topics
            .get_mut(topic)?
            .groups
            .get_mut(group)?
            .leases
            .get_mut(&position)
    }

    /// Whether the node renews this message for `holder`: then the first handle stays good.
    pub(crate) fn renewed_for(
        &self,
        topic: &str,
        group: &str,
        receipt: &Receipt,
        holder: &Holder,
    ) -> bool {
        let Some(group) = self
            .topics
            .get(topic)
            .and_then(|topic| topic.groups.get(group))
        else {
            return false;
        };
        if receipt.ordered() {
            return group.order_renewed_for(receipt.position, holder);
        }
        group
            .leases
            .get(&receipt.position)
            .is_some_and(|lease| lease.renew.as_ref() == Some(holder))
    }

    /// Looks up what a handle names; the message may be settled already.
    pub(crate) fn find(
        &self,
        topic: &str,
        group: &str,
        position: Position,
    ) -> Result<Entry, Abnormal> {
        let topic = self.topics.get(topic).ok_or(Abnormal)?;
        let entry = if position.retry {
            topic
                .groups
                .get(group)
                .and_then(|group| group.retry.get(position.offset))
        } else {
            let queue = usize::try_from(position.queue).map_err(|_| Abnormal)?;
            topic
                .queues
                .get(queue)
                .and_then(|log| log.get(position.offset))
        };
        entry.cloned().ok_or(Abnormal)
    }

    /// Whether the handle names a place in the store at all; the end of a queue is one.
    pub(crate) fn in_range(&self, topic: &str, group: &str, position: Position) -> bool {
        let Some(topic) = self.topics.get(topic) else {
            return false;
        };
        let range = if position.retry {
            topic
                .groups
                .get(group)
                .map(|group| (group.retry.first(), group.retry.end()))
        } else {
            usize::try_from(position.queue)
                .ok()
                .and_then(|queue| topic.queues.get(queue))
                .map(|log| (log.first(), log.end()))
        };
        // Another group's retry queue is not known here, and such an ack does nothing.
        range.map_or(position.retry, |(first, end)| {
            (first..=end).contains(&position.offset)
        })
    }

    /// Settles the message, if the handle is its newest or is renewed; else does nothing.
    /// Says whether it was settled now.
    pub(crate) fn settle(
        &mut self,
        topic: &str,
        group: &str,
        receipt: &Receipt,
        renewed: bool,
    ) -> bool {
        let Some(store) = self
            .topics
            .get_mut(topic)
            .and_then(|topic| topic.groups.get_mut(group))
        else {
            return false;
        };
        let current = store.leases.get(&receipt.position).is_some_and(|lease| {
            renewed || (lease.popped_at, lease.invisible) == (receipt.popped_at, receipt.invisible)
        });
        if !current {
            return false;
        }
        if let Some(lease) = store.leases.remove(&receipt.position) {
            store.acked += 1;
            self.timers.remove(lease.timer);
        }
        true
    }

    /// Gives the message a new time of being invisible, and a new handle; the old one is dead.
    /// A message that was settled comes back to life: the real broker does not remember either.
    pub(crate) fn change(
        &mut self,
        topic: &str,
        group: &str,
        receipt: &Receipt,
        invisible: Duration,
        suspended: bool,
        now: i64,
    ) -> Result<Receipt, Abnormal> {
        let entry = match self.lease_mut(topic, group, receipt.position) {
            Some(lease) => lease.entry.clone(),
            None => self.find(topic, group, receipt.position)?,
        };
        let fresh = Receipt {
            start_offset: receipt.position.offset,
            popped_at: now,
            invisible: crate::clock::millis_of(invisible),
            ..receipt.clone()
        };
        let until = Instant::now() + invisible;
        self.hold(topic, group, receipt.position, until, |timer| Lease {
            entry,
            popped_at: fresh.popped_at,
            invisible: fresh.invisible,
            renew: None,
            suspended,
            timer,
        });
        Ok(fresh)
    }

    /// The time of a lease is over: the message is visible again.
    pub(crate) fn revive(&mut self, topic: &str, group: &str, position: Position) {
        let retention = self.retention;
        let Some(store) = self
            .topics
            .get_mut(topic)
            .and_then(|topic| topic.groups.get_mut(group))
        else {
            return;
        };
        let Some(lease) = store.leases.remove(&position) else {
            return;
        };
        let mut entry = lease.entry;
        if !lease.suspended {
            entry.reconsume = entry.reconsume.saturating_add(1);
        }
        store.retry.append(entry, retention);
        store.notify.notify_one();
    }

    /// The lease on `position`, when the node has renewed it for as long as it will.
    pub(crate) fn renewed_to_the_end(
        &self,
        topic: &str,
        group: &str,
        position: Position,
    ) -> Option<u32> {
        let lease = self
            .topics
            .get(topic)?
            .groups
            .get(group)?
            .leases
            .get(&position)?;
        lease.renew.as_ref()?;
        Some(lease.entry.reconsume)
    }

    /// Ends the renewal of one message: it stays invisible for `delay` only.
    pub(crate) fn shorten(
        &mut self,
        topic: &str,
        group: &str,
        position: Position,
        delay: Duration,
        suspended: bool,
    ) {
        let until = Instant::now() + delay + self.redelivery_slack;
        let Some(lease) = self.lease_mut(topic, group, position) else {
            return;
        };
        lease.renew = None;
        lease.suspended = suspended;
        let old = lease.timer;
        self.timers.remove(old);
        let timer = self.timers.insert(
            until,
            Event::Lease {
                topic: topic.into(),
                group: group.into(),
                position,
            },
        );
        if let Some(lease) = self.lease_mut(topic, group, position) {
            lease.timer = timer;
        }
    }

    /// A client is gone: what was renewed for it is visible again after `delay`.
    pub(crate) fn release(&mut self, holder: &Holder, delay: Duration) {
        let mut held = Vec::new();
        for topic in self.topics.values() {
            for (group, store) in &topic.groups {
                for (position, lease) in &store.leases {
                    if lease.renew.as_ref() == Some(holder) {
                        held.push((topic.name.clone(), group.clone(), *position));
                    }
                }
            }
        }
        for (topic, group, position) in held {
            self.shorten(&topic, &group, position, delay, false);
        }
        self.release_orders(holder, delay);
    }
}
