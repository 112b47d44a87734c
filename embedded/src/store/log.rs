//! Stored messages and the logs they are in.

use std::collections::VecDeque;
use std::sync::Arc;

use rocketmq_proto::v2 as pb;

/// A message as it was stored: a template for its deliveries.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) message: pb::Message,
    pub(crate) commit_log: i64,
    pub(crate) stored_at: i64,
}

impl Stored {
    pub(crate) fn properties(&self) -> Option<&pb::SystemProperties> {
        self.message.system_properties.as_ref()
    }

    pub(crate) fn id(&self) -> &str {
        self.properties()
            .map(|properties| properties.message_id.as_str())
            .unwrap_or_default()
    }

    pub(crate) fn tag(&self) -> Option<&str> {
        self.properties()?.tag.as_deref()
    }

    pub(crate) fn topic(&self) -> &str {
        self.message
            .topic
            .as_ref()
            .map(|topic| topic.name.as_str())
            .unwrap_or_default()
    }
}

/// A message in a log, with how often its delivery failed.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) stored: Arc<Stored>,
    pub(crate) reconsume: u32,
}

/// A queue's messages by offset. Only the newest are kept.
#[derive(Debug, Default)]
pub(crate) struct Log {
    first: i64,
    entries: VecDeque<Entry>,
}

impl Log {
    pub(crate) fn append(&mut self, entry: Entry, retention: usize) -> i64 {
        let offset = self.end();
        self.entries.push_back(entry);
        if self.entries.len() > retention {
            self.entries.pop_front();
            self.first += 1;
        }
        offset
    }

    pub(crate) fn get(&self, offset: i64) -> Option<&Entry> {
        let index = usize::try_from(offset.checked_sub(self.first)?).ok()?;
        self.entries.get(index)
    }

    pub(crate) fn first(&self) -> i64 {
        self.first
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The offset of the next message.
    pub(crate) fn end(&self) -> i64 {
        self.first + i64::try_from(self.entries.len()).unwrap_or(i64::MAX)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &Entry)> {
        (self.first..).zip(&self.entries)
    }
}
