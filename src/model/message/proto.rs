//! A message as it goes to the server.

use std::time::SystemTime;

use rocketmq_proto::v2 as pb;

use super::Message;
use crate::model::{MessageType, time};

/// What one send adds to a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) message_id: &'a str,
    pub(crate) born_host: &'a str,
    pub(crate) now: SystemTime,
    pub(crate) transactional: bool,
}

impl Message {
    pub(crate) fn to_proto(&self, stamp: &Stamp<'_>) -> pb::Message {
        let kind = if stamp.transactional {
            MessageType::Transaction
        } else {
            self.message_type()
        };
        let delivery = self
            .delivery_time(stamp.now)
            .map(|time| time.max(SystemTime::UNIX_EPOCH));
        let system_properties = pb::SystemProperties {
            tag: self.tag.clone(),
            keys: self.keys.clone(),
            message_id: stamp.message_id.to_owned(),
            body_encoding: pb::Encoding::Identity.into(),
            message_type: kind.to_proto().into(),
            born_timestamp: Some(time::to_timestamp(stamp.now)),
            born_host: stamp.born_host.to_owned(),
            delivery_timestamp: delivery.map(time::to_timestamp),
            message_group: self.group().map(str::to_owned),
            lite_topic: self.lite_topic().map(str::to_owned),
            priority: self.priority(),
            ..pb::SystemProperties::default()
        };
        pb::Message {
            topic: Some(pb::Resource {
                resource_namespace: stamp.namespace.to_owned(),
                name: self.topic.clone(),
            }),
            user_properties: self.properties.clone(),
            system_properties: Some(system_properties),
            body: self.body.clone(),
        }
    }
}
