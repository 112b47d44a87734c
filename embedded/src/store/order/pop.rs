//! Taking the next batch of an ordered queue.

use tokio::time::Instant;

use super::{Held, Order};
use crate::receipt::ORDERED;
use crate::store::log::{Entry, Log};
use crate::store::pop::{Pop, Popped, deliver};
use crate::store::{Position, Store};

impl Store {
    /// Takes the next batch of every queue that is not blocked, up to a batch in all.
    pub(crate) fn pop_ordered(&mut self, pop: &Pop<'_>) -> Popped {
        let mut popped = Popped::default();
        let turn = self.topic(pop.topic, pop.queues).group(pop.group).turn();
        for queue in self.scan_order(pop, turn) {
            if popped.messages.len() >= pop.batch {
                break;
            }
            self.pop_queue(pop, queue, &mut popped);
        }
        popped
    }

    fn pop_queue(&mut self, pop: &Pop<'_>, queue: usize, popped: &mut Popped) {
        let Some(topic) = self.topics.get_mut(pop.topic) else {
            return;
        };
        let (Some(log), Some(group)) = (topic.queues.get(queue), topic.groups.get_mut(pop.group))
        else {
            return;
        };
        let now = Instant::now();
        let before = group.orders.get(&queue);
        let repeated = before.filter(|order| order.blocked(now));
        if repeated.is_some_and(|order| !order.is_attempt(pop.attempt_id)) {
            return;
        }
        let reader = Reader {
            pop,
            broker: &self.broker,
            queue: u32::try_from(queue).unwrap_or_default(),
            before,
            repeats: repeated.is_some(),
            now,
        };
        let committed = group.next.get(queue).copied().unwrap_or_default();
        let batch = reader.read(log, committed.max(log.first()), popped);
        if batch.is_empty() {
            return;
        }
        let order = Order {
            batch,
            attempt_id: pop.attempt_id.map(str::to_owned),
            popped_at: pop.now,
            renew: pop.renew.clone(),
            timer: before.and_then(|order| order.timer),
        };
        group.orders.insert(queue, order);
        self.order_changed(pop.topic, pop.group, queue);
    }
}

/// Reads one queue for one batch.
struct Reader<'a> {
    pop: &'a Pop<'a>,
    broker: &'a str,
    queue: u32,
    before: Option<&'a Order>,
    /// Whether the batch before is delivered once more because its receive lost the answer.
    repeats: bool,
    now: Instant,
}

impl Reader<'_> {
    fn read(&self, log: &Log, from: i64, popped: &mut Popped) -> Vec<Held> {
        let mut batch = Vec::new();
        for offset in from.. {
            if popped.messages.len() >= self.pop.batch {
                break;
            }
            let Some(entry) = log.get(offset) else { break };
            let before = self.before.and_then(|order| order.find(offset));
            if self.repeats && before.is_none() {
                break;
            }
            batch.push(self.take(offset, entry, before, popped));
        }
        batch
    }

    fn take(&self, offset: i64, entry: &Entry, before: Option<&Held>, popped: &mut Popped) -> Held {
        let failed = self.failed(before);
        let mut held = Held {
            offset,
            settled: true,
            visible_at: self.now + self.pop.stays(),
            failed,
            suspended: false,
        };
        if self.repeats && before.is_some_and(|held| held.settled) {
            return held;
        }
        let failed = failed.saturating_add(entry.reconsume);
        if !self.pop.filter.matches(&entry.stored) {
            popped.filtered += 1;
        } else if failed >= self.pop.max_attempts {
            popped.exhausted.push(Entry {
                reconsume: failed,
                ..entry.clone()
            });
        } else {
            let position = Position {
                retry: false,
                queue: self.queue,
                offset,
            };
            let receipt = self.pop.receipt(self.broker, ORDERED, position, entry);
            popped.messages.push(deliver(entry, failed, &receipt));
            held.settled = false;
        }
        held
    }

    /// How often deliveries failed to this group, before this one.
    fn failed(&self, before: Option<&Held>) -> u32 {
        before.map_or(0, |held| {
            if self.repeats || held.suspended {
                held.failed
            } else {
                held.failed.saturating_add(1)
            }
        })
    }
}
