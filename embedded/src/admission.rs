//! Which messages the proxy takes.

use rocketmq_proto::v2 as pb;

use crate::clock::{proto_millis, timestamp_millis};
use crate::config::{TopicConfig, TopicType};
use crate::names;
use crate::rpc::{Checked, refuse};
use crate::settings::MAX_BODY;

const MAX_PROPERTIES: usize = 128;
const MAX_PROPERTY_BYTES: usize = 16 * 1024;
const MAX_DELAY: i64 = 24 * 3600 * 1000;
const MAX_RECOVERY: i64 = 3600 * 1000;

/// What a message is by its properties, whatever its declared type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Normal,
    Fifo,
    Delay,
    Transaction,
    Priority,
    Lite,
}

impl Shape {
    fn of(properties: &pb::SystemProperties) -> Self {
        let group = properties.message_group.as_deref().unwrap_or_default();
        if properties.message_type() == pb::MessageType::Transaction {
            Self::Transaction
        } else if properties.delivery_timestamp.is_some() {
            Self::Delay
        } else if !group.is_empty() {
            Self::Fifo
        } else if properties.priority.is_some() {
            Self::Priority
        } else if properties.lite_topic.is_some() {
            Self::Lite
        } else {
            Self::Normal
        }
    }

    pub(crate) fn message_type(self) -> pb::MessageType {
        match self {
            Self::Normal => pb::MessageType::Normal,
            Self::Fifo => pb::MessageType::Fifo,
            Self::Delay => pb::MessageType::Delay,
            Self::Transaction => pb::MessageType::Transaction,
            Self::Priority => pb::MessageType::Priority,
            Self::Lite => pb::MessageType::Lite,
        }
    }

    fn name(self) -> &'static str {
        self.message_type().as_str_name()
    }

    fn fits(self, topic: TopicType) -> bool {
        match topic {
            TopicType::Mixed => true,
            TopicType::Normal => self == Self::Normal,
            TopicType::Fifo => self == Self::Fifo,
            TopicType::Delay => self == Self::Delay,
            TopicType::Transaction => self == Self::Transaction,
            TopicType::Priority => self == Self::Priority,
        }
    }
}

/// Checks one message in the order the proxy does.
pub(crate) fn check(message: &pb::Message, now: i64) -> Checked<Shape> {
    let none = pb::SystemProperties::default();
    let properties = message.system_properties.as_ref().unwrap_or(&none);
    check_body(message)?;
    check_properties(message, properties)?;
    if properties.message_id.trim().is_empty() {
        return refuse(pb::Code::IllegalMessageId, "message id cannot be empty");
    }
    check_times(properties, now)?;
    if properties.priority.is_some_and(|priority| priority < 0) {
        return refuse(
            pb::Code::InternalServerError,
            "The priority must be greater than or equal to 0",
        );
    }
    if let Some(group) = &properties.message_group {
        names::message_group(group)?;
    }
    Ok(Shape::of(properties))
}

fn check_body(message: &pb::Message) -> Checked<()> {
    if message.body.is_empty() {
        return refuse(pb::Code::MessageBodyEmpty, "message body cannot be empty");
    }
    if message.body.len() > MAX_BODY {
        return refuse(
            pb::Code::MessageBodyTooLarge,
            format!("message body cannot exceed the max {MAX_BODY}"),
        );
    }
    Ok(())
}

fn check_properties(message: &pb::Message, properties: &pb::SystemProperties) -> Checked<()> {
    if message.user_properties.len() > MAX_PROPERTIES {
        return refuse(
            pb::Code::MessagePropertiesTooLarge,
            format!("too many user properties, max is {MAX_PROPERTIES}"),
        );
    }
    let mut bytes = 0;
    for (key, value) in &message.user_properties {
        names::property(key, value)?;
        bytes += key.len() + value.len();
    }
    if let Some(tag) = &properties.tag {
        names::tag(tag)?;
        bytes += tag.len();
    }
    for key in &properties.keys {
        names::key(key)?;
        bytes += key.len();
    }
    if bytes > MAX_PROPERTY_BYTES {
        return refuse(
            pb::Code::MessagePropertiesTooLarge,
            format!("the total size of user property is too large, max is {MAX_PROPERTY_BYTES}"),
        );
    }
    Ok(())
}

fn check_times(properties: &pb::SystemProperties, now: i64) -> Checked<()> {
    let recovery = properties.orphaned_transaction_recovery_duration.as_ref();
    if properties.message_type() == pb::MessageType::Transaction
        && recovery.is_some_and(|recovery| proto_millis(recovery) > MAX_RECOVERY)
    {
        return refuse(
            pb::Code::BadRequest,
            "transaction recovery time is too large, max is 3600 s",
        );
    }
    let due = properties.delivery_timestamp.as_ref().map(timestamp_millis);
    if due.is_some_and(|due| due.saturating_sub(now) > MAX_DELAY) {
        return refuse(
            pb::Code::IllegalDeliveryTime,
            format!("the max delay time of message is too large, max is {MAX_DELAY}"),
        );
    }
    Ok(())
}

/// Checks that the topic takes such messages; retry and dead letter topics take any. An unknown
/// topic takes none.
pub(crate) fn match_type(topic: &str, config: Option<&TopicConfig>, shape: Shape) -> Checked<()> {
    let internal = topic.starts_with("%RETRY%") || topic.starts_with("%DLQ%");
    let expected = match config {
        Some(config) if internal || shape.fits(config.kind) => return Ok(()),
        Some(config) => config.kind.name(),
        None if internal => return refuse(pb::Code::TopicNotFound, "topic not found"),
        None => "UNSPECIFIED",
    };
    refuse(
        pb::Code::MessagePropertyConflictWithType,
        format!(
            "org.apache.rocketmq.proxy.common.ProxyException: TopicMessageType validate failed, \
             the expected type is {expected}, but actual type is {}",
            shape.name()
        ),
    )
}
