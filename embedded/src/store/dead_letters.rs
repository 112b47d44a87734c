//! Dead letters: copies in the topic `%DLQ%group`.

use std::sync::Arc;

use rocketmq_proto::v2 as pb;

use super::Store;
use super::log::{Entry, Stored};

/// The topic of a group's dead letters.
pub(crate) fn dead_letter_topic(group: &str) -> String {
    format!("%DLQ%{group}")
}

impl Store {
    /// Copies a message to the dead letters of `group`; the caller settles the original.
    pub(crate) fn bury(&mut self, group: &str, entry: &Entry, now: i64) {
        let topic = dead_letter_topic(group);
        self.topic(&topic, 1);
        let mut message = entry.stored.message.clone();
        message.topic = Some(pb::Resource {
            name: topic.clone(),
            ..pb::Resource::default()
        });
        if let Some(properties) = &mut message.system_properties {
            properties.set_message_type(pb::MessageType::Delay);
        }
        let stored = Stored {
            commit_log: self.claim(message.body.len()),
            stored_at: now,
            message,
        };
        self.append(
            &topic,
            0,
            Arc::new(stored),
            entry.reconsume.saturating_add(1),
        );
    }
}
