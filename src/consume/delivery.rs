//! A message as a handler gets it.

use std::{fmt, sync::Arc, time::SystemTime};

use bytes::Bytes;
use rocketmq_proto::v2 as pb;

use super::budget::Permit;
use crate::model::time;

/// One delivery of a message. Cheap to clone.
///
/// As long as a clone is kept, the message counts against the cache limits of its consumer.
#[derive(Clone)]
pub struct Delivery {
    received: Arc<Received>,
    attempt: u32,
}

struct Received {
    topic: Arc<str>,
    body: Bytes,
    system: pb::SystemProperties,
    user: std::collections::HashMap<String, String>,
    _permit: Permit,
}

impl Delivery {
    pub(crate) fn new(topic: Arc<str>, message: pb::Message, body: Bytes, permit: Permit) -> Self {
        let system = message.system_properties.unwrap_or_default();
        let attempt = attempt_of(&system);
        let user = message.user_properties;
        let received = Arc::new(Received {
            topic,
            body,
            system,
            user,
            _permit: permit,
        });
        Self { received, attempt }
    }

    /// The topic, without its namespace.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.received.topic
    }

    /// The id its producer gave it; the same in every delivery, so fit to recognise repeats.
    #[must_use]
    pub fn message_id(&self) -> &str {
        &self.received.system.message_id
    }

    /// The body, decompressed.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.received.body
    }

    /// The tag, if it has one.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.received.system.tag.as_deref()
    }

    /// The keys it can be searched by.
    #[must_use]
    pub fn keys(&self) -> &[String] {
        &self.received.system.keys
    }

    /// A property its producer set.
    #[must_use]
    pub fn property(&self, key: &str) -> Option<&str> {
        self.received.user.get(key).map(String::as_str)
    }

    /// All properties its producer set, in no particular order.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        self.received
            .user
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The message group whose order it keeps, if it has one.
    #[must_use]
    pub fn message_group(&self) -> Option<&str> {
        self.received.system.message_group.as_deref()
    }

    /// Which delivery this is: 1 for the first.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When its producer made it, by the producer's clock.
    #[must_use]
    pub fn born_at(&self) -> Option<SystemTime> {
        self.received
            .system
            .born_timestamp
            .as_ref()
            .and_then(time::system_time)
    }

    /// The host of its producer, as that one said.
    #[must_use]
    pub fn born_host(&self) -> &str {
        &self.received.system.born_host
    }

    /// When it was due, for a delayed message.
    #[must_use]
    pub fn delivery_time(&self) -> Option<SystemTime> {
        self.received
            .system
            .delivery_timestamp
            .as_ref()
            .and_then(time::system_time)
    }

    /// Its place in its queue.
    #[must_use]
    pub fn queue_offset(&self) -> Option<i64> {
        self.received.system.queue_offset
    }

    /// The same message as the next attempt, for redelivery within the consumer.
    pub(crate) fn again(&self) -> Self {
        Self {
            received: self.received.clone(),
            attempt: self.attempt.saturating_add(1),
        }
    }
}

/// The attempt a message says it is; never less than 1.
pub(crate) fn attempt_of(system: &pb::SystemProperties) -> u32 {
    system
        .delivery_attempt
        .and_then(|attempt| u32::try_from(attempt).ok())
        .unwrap_or(1)
        .max(1)
}

impl fmt::Debug for Delivery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Delivery")
            .field("topic", &self.topic())
            .field("message_id", &self.message_id())
            .field("attempt", &self.attempt())
            .field("body_len", &self.body().len())
            .finish_non_exhaustive()
    }
}
