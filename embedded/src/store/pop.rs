//! Taking messages for a receive.

use std::sync::Arc;
use std::time::Duration;

use rocketmq_proto::v2 as pb;
use tokio::time::Instant;

use super::filter::Filter;
use super::group::Lease;
use super::log::Entry;
use super::timers::Event;
use super::{Holder, Position, Store};
use crate::clock::{millis_of, timestamp};
use crate::receipt::Receipt;

/// The node gives up renewing after this long.
const RENEWED_AT_MOST: Duration = Duration::from_secs(3 * 3600);

/// In one of this many receives the retry queue comes first; else it fills up what is left.
const RETRY_FIRST: usize = 5;

/// What a receive asks for.
#[derive(Debug)]
pub(crate) struct Pop<'a> {
    pub(crate) topic: &'a str,
    pub(crate) queues: usize,
    pub(crate) group: &'a str,
    pub(crate) filter: &'a Filter,
    pub(crate) batch: usize,
    pub(crate) invisible: Duration,
    pub(crate) renew: Option<Holder>,
    pub(crate) attempt_id: Option<&'a str>,
    pub(crate) max_attempts: u32,
    pub(crate) highest_queue_first: bool,
    pub(crate) now: i64,
}

impl Pop<'_> {
    /// How long what it takes stays with its client.
    pub(crate) fn stays(&self) -> Duration {
        if self.renew.is_some() {
            RENEWED_AT_MOST
        } else {
            self.invisible
        }
    }

    /// The handle of a message it takes.
    pub(crate) fn receipt(
        &self,
        broker: &str,
        revive_queue: u32,
        position: Position,
        entry: &Entry,
    ) -> Receipt {
        Receipt {
            start_offset: position.offset,
            popped_at: self.now,
            invisible: millis_of(self.invisible),
            revive_queue,
            broker: broker.to_owned(),
            position,
            commit_log: Some(entry.stored.commit_log),
        }
    }
}

/// A message on its way to a client.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) message: pb::Message,
    pub(crate) receipt: Receipt,
    pub(crate) attempt: u32,
}

impl Delivered {
    pub(crate) fn id(&self) -> &str {
        self.message
            .system_properties
            .as_ref()
            .map(|properties| properties.message_id.as_str())
            .unwrap_or_default()
    }
}

/// What a receive gets.
#[derive(Debug, Default)]
pub(crate) struct Popped {
    pub(crate) messages: Vec<Delivered>,
    /// Messages the group will never get: they did not match.
    pub(crate) filtered: usize,
    /// Messages that had their last attempt.
    pub(crate) exhausted: Vec<Entry>,
}

impl Popped {
    /// Whether there were messages, but none to deliver.
    pub(crate) fn only_dropped(&self) -> bool {
        self.messages.is_empty() && (self.filtered > 0 || !self.exhausted.is_empty())
    }
}

impl Store {
    /// Takes up to a batch of messages from all queues; a group's queues are not ordered.
    pub(crate) fn pop(&mut self, pop: &Pop<'_>) -> Popped {
        let mut popped = Popped::default();
        let turn = self.topic(pop.topic, pop.queues).group(pop.group).turn();
        if turn % RETRY_FIRST == RETRY_FIRST - 1 {
            self.pop_retry(pop, &mut popped);
        }
        for queue in self.scan_order(pop, turn) {
            while popped.messages.len() < pop.batch {
                let Some((offset, entry)) = self.advance(pop, queue) else {
                    break;
                };
                let position = Position {
                    retry: false,
                    queue: u32::try_from(queue).unwrap_or_default(),
                    offset,
                };
                self.take(pop, position, entry, &mut popped);
            }
        }
        self.pop_retry(pop, &mut popped);
        popped
    }

    /// The order in which a receive looks at the queues.
    pub(crate) fn scan_order(&self, pop: &Pop<'_>, turn: usize) -> Vec<usize> {
        let queues = self
            .topics
            .get(pop.topic)
            .map_or(0, |topic| topic.queues.len());
        if pop.highest_queue_first {
            (0..queues).rev().collect()
        } else {
            (0..queues).map(|index| (index + turn) % queues).collect()
        }
    }

    fn pop_retry(&mut self, pop: &Pop<'_>, popped: &mut Popped) {
        while popped.messages.len() < pop.batch {
            let group = self.topic(pop.topic, pop.queues).group(pop.group);
            let offset = group.retry_next.max(group.retry.first());
            let Some(entry) = group.retry.get(offset).cloned() else {
                return;
            };
            group.retry_next = offset + 1;
            let position = Position {
                retry: true,
                queue: 0,
                offset,
            };
            self.take(pop, position, entry, popped);
        }
    }

    fn advance(&mut self, pop: &Pop<'_>, queue: usize) -> Option<(i64, Entry)> {
        let topic = self.topics.get_mut(pop.topic)?;
        let log = topic.queues.get(queue)?;
        let next = topic.groups.get_mut(pop.group)?.next.get_mut(queue)?;
        let offset = (*next).max(log.first());
        let entry = log.get(offset)?.clone();
        *next = offset + 1;
        Some((offset, entry))
    }

    fn take(&mut self, pop: &Pop<'_>, position: Position, entry: Entry, popped: &mut Popped) {
        if !pop.filter.matches(&entry.stored) {
            popped.filtered += 1;
        } else if entry.reconsume >= pop.max_attempts {
            popped.exhausted.push(entry);
        } else {
            let revive_queue = self.next_revive_queue();
            let receipt = pop.receipt(&self.broker, revive_queue, position, &entry);
            popped
                .messages
                .push(deliver(&entry, entry.reconsume, &receipt));
            self.lease(pop, &receipt, entry);
        }
    }

    fn lease(&mut self, pop: &Pop<'_>, receipt: &Receipt, entry: Entry) {
        let until = Instant::now() + pop.stays();
        self.hold(pop.topic, pop.group, receipt.position, until, |timer| {
            Lease {
                entry,
                popped_at: receipt.popped_at,
                invisible: receipt.invisible,
                renew: pop.renew.clone(),
                suspended: false,
                timer,
            }
        });
    }

    /// Makes a message invisible until `until`.
    pub(crate) fn hold(
        &mut self,
        topic: &str,
        group: &str,
        position: Position,
        until: Instant,
        lease: impl FnOnce(super::TimerKey) -> Lease,
    ) {
        let topic: Arc<str> = topic.into();
        let group: Arc<str> = group.into();
        let timer = self.timers.insert(
            until + self.redelivery_slack,
            Event::Lease {
                topic: Arc::clone(&topic),
                group: Arc::clone(&group),
                position,
            },
        );
        if let Some(store) = self.topics.get_mut(&topic) {
            let old = store.group(&group).leases.insert(position, lease(timer));
            if let Some(old) = old {
                self.timers.remove(old.timer);
            }
        }
    }
}

/// The message as a client sees it.
pub(crate) fn deliver(entry: &Entry, failed: u32, receipt: &Receipt) -> Delivered {
    let mut message = entry.stored.message.clone();
    if let Some(properties) = &mut message.system_properties {
        properties.receipt_handle = Some(receipt.to_string());
        properties.queue_id = i32::try_from(receipt.position.queue).unwrap_or_default();
        properties.queue_offset = Some(receipt.position.offset);
        properties.delivery_attempt =
            Some(i32::try_from(failed).unwrap_or(i32::MAX).saturating_add(1));
        properties.store_timestamp = Some(timestamp(entry.stored.stored_at));
    }
    Delivered {
        message,
        receipt: receipt.clone(),
        attempt: failed.saturating_add(1),
    }
}
