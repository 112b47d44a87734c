//! What a producer sends.

mod builder;
pub(crate) mod encoded;
pub(crate) mod proto;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;

pub use builder::MessageBuilder;

use super::{MessageType, time};
use crate::{Error, ErrorKind, Result};

/// A message that keeps all rules of the server, ready to be sent any number of times.
///
/// The body is shared, never copied: clones are cheap as far as it goes.
///
/// ```
/// use rocketmq_actors::Message;
///
/// let message = Message::builder("orders")
///     .body(r#"{"order":7}"#)
///     .tag("paid")
///     .key("order-7")
///     .property("region", "EU")
///     .build()?;
/// assert_eq!(message.tag(), Some("paid"));
///
/// let late_and_in_order = Message::builder("orders")
///     .body("x")
///     .group("order-7")
///     .delay(std::time::Duration::from_secs(60))
///     .build();
/// assert!(late_and_in_order.is_err(), "a message is one or the other");
/// # Ok::<(), rocketmq_actors::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    topic: String,
    body: Bytes,
    tag: Option<String>,
    keys: Vec<String>,
    properties: HashMap<String, String>,
    special: Special,
}

/// What makes a message more than a normal one; only one of them is possible.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Special {
    Nothing,
    Group(String),
    DeliverAt(SystemTime),
    Delay(Duration),
    Priority(i32),
    LiteTopic(String),
}

impl Message {
    /// Starts a message for `topic`.
    pub fn builder(topic: impl Into<String>) -> MessageBuilder {
        MessageBuilder::new(topic.into())
    }

    /// Where it goes.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// What it carries; never empty.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// What consumers select it by.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// What operators find it by.
    #[must_use]
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The value of one property.
    #[must_use]
    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.get(key).map(String::as_str)
    }

    /// All properties, in no particular order.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        self.properties
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Messages of one group are delivered in order.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        match &self.special {
            Special::Group(group) => Some(group),
            _ => None,
        }
    }

    /// The lite topic within the topic.
    #[must_use]
    pub fn lite_topic(&self) -> Option<&str> {
        match &self.special {
            Special::LiteTopic(lite_topic) => Some(lite_topic),
            _ => None,
        }
    }

    /// The greater, the earlier.
    #[must_use]
    pub fn priority(&self) -> Option<i32> {
        match self.special {
            Special::Priority(priority) => Some(priority),
            _ => None,
        }
    }

    /// When it is to be delivered if it is sent at `now`. Nothing: at once.
    #[must_use]
    pub fn delivery_time(&self, now: SystemTime) -> Option<SystemTime> {
        match self.special {
            Special::DeliverAt(time) => Some(time),
            Special::Delay(delay) => Some(time::later(now, delay)),
            _ => None,
        }
    }

    /// What it is to the server, unless it is sent within a transaction.
    #[must_use]
    pub fn message_type(&self) -> MessageType {
        match self.special {
            Special::Nothing => MessageType::Normal,
            Special::Group(_) => MessageType::Fifo,
            Special::DeliverAt(_) | Special::Delay(_) => MessageType::Delay,
            Special::Priority(_) => MessageType::Priority,
            Special::LiteTopic(_) => MessageType::Lite,
        }
    }

    /// Checks the body against the limit the server gave, in bytes.
    pub(crate) fn check_size(&self, limit: usize) -> Result<()> {
        if self.body.len() <= limit {
            return Ok(());
        }
        let what = format!("the body has {} bytes, {limit} at most", self.body.len());
        Err(Error::new(ErrorKind::TooLarge, what))
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Message")
            .field("topic", &self.topic)
            .field("tag", &self.tag)
            .field("keys", &self.keys)
            .field("properties", &self.properties.len())
            .field("special", &self.special)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish()
    }
}
