//! What is to happen later on a node, in order of time.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::Position;
use super::log::Stored;

/// Something that is due at a moment.
#[derive(Debug)]
pub(crate) enum Event {
    /// A message may become visible again.
    Lease {
        topic: Arc<str>,
        group: Arc<str>,
        position: Position,
    },
    /// An ordered queue may be unblocked.
    Order {
        topic: Arc<str>,
        group: Arc<str>,
        queue: usize,
    },
    /// A delayed message is to be delivered.
    Due {
        topic: Arc<str>,
        stored: Arc<Stored>,
    },
    /// A half message is to be checked.
    Check { topic: Arc<str>, id: Arc<str> },
    /// A client may have been silent for too long.
    Client { id: Arc<str> },
}

/// Names one entry, to take it back.
pub(crate) type TimerKey = (Instant, u64);

#[derive(Debug, Default)]
pub(crate) struct Timers {
    events: BTreeMap<TimerKey, Event>,
    count: u64,
    earlier: Arc<Notify>,
}

impl Timers {
    /// Told whenever there is a new first entry.
    pub(crate) fn earlier(&self) -> Arc<Notify> {
        Arc::clone(&self.earlier)
    }

    pub(crate) fn insert(&mut self, at: Instant, event: Event) -> TimerKey {
        let key = (at, self.count);
        self.count += 1;
        if self.first().is_none_or(|first| at < first) {
            self.earlier.notify_one();
        }
        self.events.insert(key, event);
        key
    }

    pub(crate) fn remove(&mut self, key: TimerKey) {
        self.events.remove(&key);
    }

    pub(crate) fn first(&self) -> Option<Instant> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Event> {
        let entry = self.events.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    /// Takes back a delayed message, if it is there.
    pub(crate) fn recall(&mut self, of: &str, id: &str) {
        self.events.retain(|_, event| {
            !matches!(event, Event::Due { topic, stored }
                if topic.as_ref() == of && stored.id() == id)
        });
    }

    /// Delayed messages that are not delivered yet.
    pub(crate) fn pending_deliveries(&self, of: &str) -> usize {
        self.events
            .values()
            .filter(|event| matches!(event, Event::Due { topic, .. } if topic.as_ref() == of))
            .count()
    }
}
