//! SendMessage.

use std::sync::Arc;

use md5::{Digest, Md5};
use prost::Message;
use rocketmq_proto::v2 as pb;
use tokio::time::Instant;

use super::ticket::Caller;
use super::{Port, name};
use crate::admission::{self, Shape};
use crate::clock::{timestamp, timestamp_millis};
use crate::config::{TopicConfig, TopicType};
use crate::names;
use crate::rpc::{Checked, ok, refuse};
use crate::settings::MAX_BODY;
use crate::store::log::Stored;

impl Port {
    pub(super) fn send(
        &self,
        _caller: &Caller,
        request: pb::SendMessageRequest,
    ) -> Checked<pb::SendMessageResponse> {
        self.take_in(request)
    }

    /// Checks messages and stores them.
    pub(crate) fn take_in(
        &self,
        request: pb::SendMessageRequest,
    ) -> Checked<pb::SendMessageResponse> {
        let Some(first) = request.messages.first() else {
            return refuse(pb::Code::MessageCorrupted, "no message to send");
        };
        let resource = first.topic.clone();
        let topic = names::topic(name(resource.as_ref()))?;
        if request.messages.iter().any(|m| m.topic != resource) {
            return refuse(pb::Code::MessageCorrupted, "topic in message is not same");
        }
        let now = self.cluster.clock.millis();
        let mut shape = Shape::Normal;
        for (index, message) in request.messages.iter().enumerate() {
            let own = admission::check(message, now)?;
            if index == 0 {
                shape = own;
            }
        }
        let config = self.cluster.topic(topic);
        admission::match_type(topic, config.as_ref(), shape)?;
        let Some(config) = config.filter(TopicConfig::writable) else {
            return refuse(pb::Code::Forbidden, "no writable queue");
        };
        let bytes = || {
            request
                .messages
                .iter()
                .map(Message::encoded_len)
                .sum::<usize>()
        };
        if request.messages.len() > 1 && bytes() > MAX_BODY {
            return refuse(
                pb::Code::InternalServerError,
                "the message is illegal, its size exceeds the max",
            );
        }
        Ok(self.store(topic, &config, request.messages, shape, now))
    }

    fn store(
        &self,
        topic: &str,
        config: &TopicConfig,
        messages: Vec<pb::Message>,
        shape: Shape,
        now: i64,
    ) -> pb::SendMessageResponse {
        let single = messages.len() == 1;
        let messages = self.templates(messages, shape);
        let first = messages.first();
        let id = first.map(id_of).unwrap_or_default();
        let due = first
            .and_then(due_of)
            .filter(|due| *due > now && shape != Shape::Transaction);
        let named = first.filter(|_| single).and_then(|m| place(m, config));
        let mut state = self.node.state();
        let store = &mut state.store;
        let turn = store.topic(topic, config.queues);
        let queue = named.unwrap_or_else(|| turn.turn(config.queues));
        let mut offset = None;
        for message in messages {
            let stored = Stored {
                commit_log: store.claim(message.body.len()),
                stored_at: now,
                message,
            };
            if shape == Shape::Transaction {
                store.begin(topic, queue, stored);
            } else if let Some(due) = due {
                let at = Instant::now() + self.cluster.clock.until(due);
                store.delay(topic, Arc::new(stored), at);
            } else {
                let place = store.append(topic, queue, Arc::new(stored), 0);
                offset.get_or_insert(place);
            }
        }
        drop(state);
        self.cluster.recorder.touch();
        let recall_handle = due.map_or_else(String::new, |due| self.recall_handle(topic, due, &id));
        let (message_id, transaction_id) = if single {
            (id.clone(), id)
        } else {
            (self.batch_id(), String::new())
        };
        pb::SendMessageResponse {
            status: Some(ok()),
            entries: vec![pb::SendResultEntry {
                status: Some(ok()),
                message_id,
                transaction_id,
                offset: offset.unwrap_or_default(),
                recall_handle,
            }],
        }
    }

    /// The messages as they are stored. The broker reads the encoding of a whole batch from its
    /// first message.
    fn templates(&self, messages: Vec<pb::Message>, shape: Shape) -> Vec<pb::Message> {
        let mut messages: Vec<pb::Message> = messages
            .into_iter()
            .map(|message| self.template(message, shape))
            .collect();
        if let Some(encoding) = messages.first().and_then(encoding_of) {
            for properties in messages.iter_mut().filter_map(properties_mut) {
                properties.body_encoding = encoding;
            }
        }
        if self.cluster.options.legacy_batch {
            spread_first(&mut messages);
        }
        messages
    }

    /// What deliveries of the message have in common.
    fn template(&self, mut message: pb::Message, shape: Shape) -> pb::Message {
        let digest = data_encoding::HEXUPPER.encode(&Md5::digest(&message.body));
        if let Some(topic) = &mut message.topic {
            topic.resource_namespace.clear();
        }
        if let Some(properties) = properties_mut(&mut message) {
            properties.body_digest = Some(pb::Digest {
                r#type: pb::DigestType::Md5.into(),
                checksum: digest,
            });
            if properties.body_encoding() != pb::Encoding::Gzip {
                properties.set_body_encoding(pb::Encoding::Identity);
            }
            properties.set_message_type(shape.message_type());
            properties.store_host = format!("{}:{}", self.node.host, self.node.port);
            properties.receipt_handle = None;
            properties.invisible_duration = None;
            if properties.born_timestamp.is_none() {
                properties.born_timestamp = Some(timestamp(self.cluster.clock.millis()));
            }
            // Keys are stored joined by blanks.
            properties.keys = properties
                .keys
                .iter()
                .flat_map(|key| key.split_whitespace())
                .map(str::to_owned)
                .collect();
        }
        message
    }

    /// One id for a whole batch, which none of its messages has.
    fn batch_id(&self) -> String {
        format!("FD00{:052X}", self.cluster.number())
    }
}

/// Gives all messages what the first has.
fn spread_first(messages: &mut [pb::Message]) {
    let Some((first, others)) = messages.split_first_mut() else {
        return;
    };
    let Some(spread) = first.system_properties.as_ref() else {
        return;
    };
    for message in others {
        message
            .user_properties
            .extend(first.user_properties.clone());
        if let Some(own) = properties_mut(message) {
            own.message_id.clone_from(&spread.message_id);
            if spread.tag.is_some() {
                own.tag.clone_from(&spread.tag);
            }
            if !spread.keys.is_empty() {
                own.keys.clone_from(&spread.keys);
            }
        }
    }
}

fn properties_mut(message: &mut pb::Message) -> Option<&mut pb::SystemProperties> {
    message.system_properties.as_mut()
}

fn encoding_of(message: &pb::Message) -> Option<i32> {
    Some(message.system_properties.as_ref()?.body_encoding)
}

fn id_of(message: &pb::Message) -> String {
    message
        .system_properties
        .as_ref()
        .map(|properties| properties.message_id.clone())
        .unwrap_or_default()
}

fn due_of(message: &pb::Message) -> Option<i64> {
    let properties = message.system_properties.as_ref()?;
    properties.delivery_timestamp.as_ref().map(timestamp_millis)
}

/// The queue that a message's group or priority names.
fn place(message: &pb::Message, config: &TopicConfig) -> Option<usize> {
    let properties = message.system_properties.as_ref()?;
    if let Some(group) = properties
        .message_group
        .as_deref()
        .filter(|g| !g.is_empty())
    {
        return Some(stable_hash(group) % config.queues);
    }
    let priority = properties.priority?;
    (config.kind == TopicType::Priority).then(|| {
        usize::try_from(priority)
            .unwrap_or_default()
            .min(config.queues - 1)
    })
}

/// FNV-1a with a final mix: the same in every run and on every platform.
fn stable_hash(text: &str) -> usize {
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    // The lowest bits of FNV depend on the lowest bits of the text only.
    let mixed = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    usize::try_from(mixed ^ (mixed >> 13)).unwrap_or_default()
}
