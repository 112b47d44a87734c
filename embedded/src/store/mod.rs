//! One node's messages: logs, what groups have taken of them, and what is to happen when.

pub(crate) mod dead_letters;
pub(crate) mod filter;
pub(crate) mod group;
pub(crate) mod half;
mod leases;
pub(crate) mod log;
pub(crate) mod order;
pub(crate) mod pop;
pub(crate) mod timers;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use group::GroupStore;
use half::{Checks, Half};
use log::{Entry, Log, Stored};
use timers::{Event, TimerKey, Timers};

/// Where a message was taken from: a queue of the topic, or the retry queue of topic and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Position {
    pub(crate) retry: bool,
    pub(crate) queue: u32,
    pub(crate) offset: i64,
}

/// The client that a message is kept invisible for, and the node it talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) node: usize,
    pub(crate) client: Arc<str>,
}

#[derive(Debug)]
pub(crate) struct TopicStore {
    pub(crate) name: Arc<str>,
    pub(crate) queues: Vec<Log>,
    pub(crate) groups: HashMap<Arc<str>, GroupStore>,
    /// Wakes all waiting pulls.
    pub(crate) arrivals: Arc<Notify>,
    next_queue: usize,
}

impl TopicStore {
    fn new(name: &str, queues: usize) -> Self {
        Self {
            name: name.into(),
            queues: (0..queues.max(1)).map(|_| Log::default()).collect(),
            groups: HashMap::new(),
            arrivals: Arc::default(),
            next_queue: 0,
        }
    }

    fn grow(&mut self, queues: usize) {
        if self.queues.len() < queues {
            self.queues.resize_with(queues, Log::default);
            for group in self.groups.values_mut() {
                group.next.resize(queues, 0);
            }
        }
    }

    /// The next in turn of the first `queues` queues.
    pub(crate) fn turn(&mut self, queues: usize) -> usize {
        let queue = self.next_queue % queues.clamp(1, self.queues.len());
        self.next_queue = queue + 1;
        queue
    }

    pub(crate) fn group(&mut self, group: &str) -> &mut GroupStore {
        if !self.groups.contains_key(group) {
            let starts = self.queues.iter().map(Log::first).collect();
            self.groups.insert(group.into(), GroupStore::new(starts));
        }
        self.groups.entry(group.into()).or_default()
    }
}

#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) broker: String,
    pub(crate) topics: HashMap<Arc<str>, TopicStore>,
    pub(crate) timers: Timers,
    /// Half messages by topic and transaction.
    halves: HashMap<(Arc<str>, Arc<str>), Half>,
    checks: Checks,
    retention: usize,
    redelivery_slack: Duration,
    commit_log: i64,
    revive_turn: u32,
}

impl Store {
    pub(crate) fn new(
        broker: String,
        retention: usize,
        redelivery_slack: Duration,
        checks: Checks,
    ) -> Self {
        Self {
            broker,
            topics: HashMap::new(),
            timers: Timers::default(),
            halves: HashMap::new(),
            checks,
            retention,
            redelivery_slack,
            commit_log: 0,
            revive_turn: 0,
        }
    }

    /// The topic's store, made when it is first used; queues can be added to it.
    pub(crate) fn topic(&mut self, name: &str, queues: usize) -> &mut TopicStore {
        let topic = self
            .topics
            .entry(name.into())
            .or_insert_with(|| TopicStore::new(name, queues));
        topic.grow(queues);
        topic
    }

    pub(crate) fn drop_topic(&mut self, name: &str) {
        if let Some(topic) = self.topics.remove(name) {
            for group in topic.groups.values() {
                group.notify.notify_waiters();
            }
        }
    }

    /// The place in the imagined commit log for a message of `size` bytes.
    pub(crate) fn claim(&mut self, size: usize) -> i64 {
        let place = self.commit_log;
        self.commit_log += i64::try_from(size).unwrap_or_default() + 128;
        place
    }

    /// Puts a message at the end of a queue and wakes one waiting receive of every group.
    pub(crate) fn append(
        &mut self,
        topic: &str,
        queue: usize,
        stored: Arc<Stored>,
        reconsume: u32,
    ) -> i64 {
        let retention = self.retention;
        let Some(topic) = self.topics.get_mut(topic) else {
            return 0;
        };
        let entry = Entry { stored, reconsume };
        let offset = match topic.queues.get_mut(queue) {
            Some(log) => log.append(entry, retention),
            None => return 0,
        };
        topic.arrivals.notify_waiters();
        for group in topic.groups.values() {
            group.notify.notify_one();
        }
        offset
    }

    /// Keeps a message until it is due.
    pub(crate) fn delay(&mut self, topic: &str, stored: Arc<Stored>, at: Instant) -> TimerKey {
        let topic = topic.into();
        self.timers.insert(at, Event::Due { topic, stored })
    }

    /// A delayed message arrives in the next queue in turn.
    pub(crate) fn deliver_due(&mut self, topic: &str, stored: Arc<Stored>) {
        if let Some(store) = self.topics.get_mut(topic) {
            let queue = store.turn(usize::MAX);
            self.append(topic, queue, stored, 0);
        }
    }

    fn next_revive_queue(&mut self) -> u32 {
        self.revive_turn = (self.revive_turn + 1) % 8;
        self.revive_turn
    }
}
