//! Looking at messages.

use std::collections::HashMap;

use bytes::Bytes;
use rocketmq_proto::v2 as pb;
use tokio::time::Instant;

use crate::broker::EmbeddedBroker;
use crate::history::{Acknowledged, Delivery};
use crate::store::dead_letters::dead_letter_topic;
use crate::store::log::{Entry, Log};

/// How many messages of a topic are where, for one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Messages of the topic, consumed or not.
    pub stored: usize,
    /// Messages a receive would get now. Some may not match its filter.
    pub ready: usize,
    /// Messages delivered, neither acknowledged nor visible again.
    pub in_flight: usize,
    /// Messages acknowledged.
    pub acked: u64,
    /// Delayed messages that are not due yet.
    pub delayed: usize,
    /// Half messages whose transaction is open.
    pub pending_transactions: usize,
}

/// A message in the broker.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredMessage {
    /// The id the producer gave it.
    pub message_id: String,
    /// The topic it was sent to; of a dead letter, the dead letter topic.
    pub topic: String,
    /// Its body as it was sent, compressed or not.
    pub body: Bytes,
    /// Its tag.
    pub tag: Option<String>,
    /// Its keys.
    pub keys: Vec<String>,
    /// Its user properties.
    pub properties: HashMap<String, String>,
    /// Its message group.
    pub message_group: Option<String>,
    /// What its next delivery says of attempts, in a group that never had it.
    pub attempt: u32,
    /// The node that has it.
    pub node: usize,
    /// The queue that has it.
    pub queue: usize,
    /// Its place there.
    pub offset: i64,
    /// All that is stored.
    pub message: pb::Message,
}

impl StoredMessage {
    fn of(node: usize, queue: usize, offset: i64, entry: &Entry) -> Self {
        let message = entry.stored.message.clone();
        let properties = message.system_properties.clone().unwrap_or_default();
        Self {
            message_id: properties.message_id,
            topic: entry.stored.topic().to_owned(),
            body: message.body.clone(),
            tag: properties.tag,
            keys: properties.keys,
            properties: message.user_properties.clone(),
            message_group: properties.message_group,
            attempt: entry.reconsume.saturating_add(1),
            node,
            queue,
            offset,
            message,
        }
    }
}

impl EmbeddedBroker {
    /// Counts a group's messages of a topic, over all nodes.
    #[must_use]
    pub fn inspect(&self, topic: &str, group: &str) -> Counts {
        let now = Instant::now();
        let mut counts = Counts::default();
        for node in &self.cluster().nodes {
            let state = node.state();
            counts.delayed += state.store.timers.pending_deliveries(topic);
            counts.pending_transactions += state.store.pending_transactions(topic);
            let Some(topic) = state.store.topics.get(topic) else {
                continue;
            };
            let stored: usize = topic.queues.iter().map(Log::len).sum();
            counts.stored += stored;
            match topic.groups.get(group) {
                Some(group) => {
                    counts.ready += group.ready(&topic.queues, now);
                    counts.in_flight += group.in_flight(now);
                    counts.acked += group.acked;
                }
                None => counts.ready += stored,
            }
        }
        counts
    }

    /// The messages of a topic, by node, queue and offset.
    #[must_use]
    pub fn messages(&self, topic: &str) -> Vec<StoredMessage> {
        let mut all = Vec::new();
        for node in &self.cluster().nodes {
            let state = node.state();
            let Some(topic) = state.store.topics.get(topic) else {
                continue;
            };
            for (queue, log) in topic.queues.iter().enumerate() {
                let messages = log.iter();
                all.extend(
                    messages
                        .map(|(offset, entry)| StoredMessage::of(node.index, queue, offset, entry)),
                );
            }
        }
        all
    }

    /// The dead letters of a group, whatever topic they came from.
    #[must_use]
    pub fn dead_letters(&self, group: &str) -> Vec<StoredMessage> {
        self.messages(&dead_letter_topic(group))
    }

    /// All deliveries in order, as far as they are remembered.
    #[must_use]
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.cluster().history.deliveries()
    }

    /// All acknowledgements that took effect, in order, as far as they are remembered.
    #[must_use]
    pub fn acks(&self) -> Vec<Acknowledged> {
        self.cluster().history.acks()
    }
}
