//! Builds messages and checks them, all at once, at the end.

use std::{
    collections::HashMap,
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;

use super::{Message, Special};
use crate::{
    Error, ErrorKind, Result,
    model::{
        name,
        property::{self, MAX_PROPERTIES, MAX_PROPERTY_BYTES},
    },
};

/// Collects what a [`Message`] is made of. Nothing is checked before [`build`](Self::build).
#[must_use]
pub struct MessageBuilder {
    topic: String,
    body: Bytes,
    tag: Option<String>,
    keys: Vec<String>,
    properties: HashMap<String, String>,
    special: Special,
    conflict: Option<(&'static str, &'static str)>,
}

impl MessageBuilder {
    pub(super) fn new(topic: String) -> Self {
        Self {
            topic,
            body: Bytes::new(),
            tag: None,
            keys: Vec::new(),
            properties: HashMap::new(),
            special: Special::Nothing,
            conflict: None,
        }
    }

    /// The body; it must not be empty. Servers take 4 MiB unless set otherwise, which is checked
    /// when the message is sent.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// The tag consumers select messages by. It has no `|` in it.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// Adds a key to find the message by, an order number for instance. A key with a blank in it
    /// comes back from the server as two.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// Adds several keys.
    pub fn keys<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.keys.extend(keys.into_iter().map(Into::into));
        self
    }

    /// Sets a property. There are 128 at most; the bytes of their keys and values, of the tag and
    /// of the keys are 16 KiB at most; the keys the server uses itself (`TAGS`, `KEYS`, `DELAY`
    /// and so on) are refused.
    pub fn property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(key.into(), value.into());
        self
    }

    /// Delivers the messages of a group in order. 63 bytes at most.
    ///
    /// A message has a group, a delivery time, a priority or a lite topic, never two of them.
    pub fn group(self, group: impl Into<String>) -> Self {
        self.special(Special::Group(group.into()))
    }

    /// Delivers the message at a time; at once if that is past. Servers refuse more than 24 hours
    /// ahead unless set otherwise.
    pub fn deliver_at(self, time: SystemTime) -> Self {
        self.special(Special::DeliverAt(time))
    }

    /// Delivers the message some time after it is sent; at once for zero.
    ///
    /// The server is told a time by this machine's clock, so a clock that is wrong shifts the
    /// delivery. Servers refuse more than 24 hours unless set otherwise.
    pub fn delay(self, delay: Duration) -> Self {
        self.special(Special::Delay(delay))
    }

    /// Delivers messages of greater priority first; 0 or more. Servers from 5.4 on.
    pub fn priority(self, priority: i32) -> Self {
        self.special(Special::Priority(priority))
    }

    /// Sends to a lite topic within the topic. 64 bytes of `a-z A-Z 0-9 _ -`. Servers from 5.5 on.
    pub fn lite_topic(self, lite_topic: impl Into<String>) -> Self {
        self.special(Special::LiteTopic(lite_topic.into()))
    }

    fn special(mut self, special: Special) -> Self {
        let (earlier, later) = (label(&self.special), label(&special));
        if self.special != Special::Nothing && earlier != later && self.conflict.is_none() {
            self.conflict = Some((earlier, later));
        }
        self.special = special;
        self
    }

    /// Checks everything and makes the message.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] names the first field that breaks a rule;
    /// [`ErrorKind::TooLarge`] stands for too many or too large properties.
    pub fn build(self) -> Result<Message> {
        self.check()
            .map_err(|error| error.operation("Message::build"))?;
        let Self {
            topic,
            body,
            tag,
            keys,
            properties,
            special,
            conflict: _,
        } = self;
        Ok(Message {
            topic,
            body,
            tag,
            keys,
            properties,
            special,
        })
    }

    fn check(&self) -> Result<()> {
        name::validate_topic(&self.topic)?;
        if self.body.is_empty() {
            return Err(Error::invalid("the body is empty"));
        }
        self.tag.as_deref().map_or(Ok(()), name::validate_tag)?;
        self.keys
            .iter()
            .try_for_each(|key| name::validate_key(key))?;
        self.properties
            .iter()
            .try_for_each(|(key, value)| property::validate(key, value))?;
        self.check_properties_size()?;
        if let Some((one, other)) = self.conflict {
            return Err(Error::invalid(format!(
                "a message has a {one} or a {other}, not both"
            )));
        }
        match &self.special {
            Special::Group(group) => name::validate_message_group(group),
            Special::LiteTopic(lite_topic) => name::validate_lite_topic(lite_topic),
            Special::Priority(priority) if *priority < 0 => {
                Err(Error::invalid(format!("priority {priority} is below 0")))
            }
            _ => Ok(()),
        }
    }

    fn check_properties_size(&self) -> Result<()> {
        let count = self.properties.len();
        if count > MAX_PROPERTIES {
            let what = format!("{count} properties, {MAX_PROPERTIES} at most");
            return Err(Error::new(ErrorKind::TooLarge, what));
        }
        let bytes = self
            .properties
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .chain(self.keys.iter().map(String::len))
            .chain(self.tag.iter().map(String::len))
            .sum::<usize>();
        if bytes > MAX_PROPERTY_BYTES {
            let what = format!(
                "properties, tag and keys have {bytes} bytes, {MAX_PROPERTY_BYTES} at most"
            );
            return Err(Error::new(ErrorKind::TooLarge, what));
        }
        Ok(())
    }
}

fn label(special: &Special) -> &'static str {
    match special {
        Special::Nothing => "nothing",
        Special::Group(_) => "message group",
        Special::DeliverAt(_) | Special::Delay(_) => "delivery time",
        Special::Priority(_) => "priority",
        Special::LiteTopic(_) => "lite topic",
    }
}

impl fmt::Debug for MessageBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("MessageBuilder")
            .field("topic", &self.topic)
            .field("special", &self.special)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish_non_exhaustive()
    }
}
