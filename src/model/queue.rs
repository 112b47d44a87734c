//! One queue of a topic, as a route or an assignment names it.

use std::sync::Arc;

use rocketmq_proto::v2 as pb;

use super::{Endpoints, MessageType, excerpt::Excerpt};
use crate::{Error, ErrorKind, Result};

const MASTER: i32 = 0;
const MAX_QUEUES: usize = 65_536;
/// Enough to see what is wrong; a server that sends nonsense sends it for every queue.
const MAX_WARNINGS: usize = 8;

/// What may be done with a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Permission {
    /// Unset, or of a newer server. Nothing is done with such a queue.
    Unknown,
    None,
    Read,
    Write,
    ReadWrite,
}

impl Permission {
    fn from_proto(value: i32) -> Self {
        match pb::Permission::try_from(value) {
            Err(_) | Ok(pb::Permission::Unspecified) => Self::Unknown,
            Ok(pb::Permission::None) => Self::None,
            Ok(pb::Permission::Read) => Self::Read,
            Ok(pb::Permission::Write) => Self::Write,
            Ok(pb::Permission::ReadWrite) => Self::ReadWrite,
        }
    }

    pub(crate) fn is_readable(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    pub(crate) fn is_writable(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

/// What tells queues apart, whatever else changes about them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct QueueKey {
    pub(crate) topic: Arc<str>,
    pub(crate) broker: Arc<str>,
    pub(crate) id: i32,
    pub(crate) endpoints: Endpoints,
}

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct MessageQueue {
    pub(crate) topic: Arc<str>,
    pub(crate) id: i32,
    pub(crate) broker_name: Arc<str>,
    pub(crate) broker_id: i32,
    pub(crate) endpoints: Endpoints,
    pub(crate) permission: Permission,
    /// Ascending, each once, the known ones only.
    pub(crate) accepts: Arc<[MessageType]>,
    /// Exactly what the server sent: a receive must name its queue so.
    pub(crate) proto: Arc<pb::MessageQueue>,
}

impl MessageQueue {
    /// Takes a queue of `topic`; an unknown permission or message type is no reason to refuse it.
    pub(crate) fn from_proto(topic: &Arc<str>, proto: pb::MessageQueue) -> Result<Self> {
        let refuse = |what: String| {
            Error::new(
                ErrorKind::Protocol,
                format!("queue {} of {topic}: {what}", proto.id),
            )
        };
        if let Some(named) = proto.topic.as_ref().filter(|named| *named.name != **topic) {
            return Err(refuse(format!("belongs to topic {}", Excerpt(&named.name))));
        }
        let Some(broker) = &proto.broker else {
            return Err(refuse("no broker".into()));
        };
        let Some(endpoints) = &broker.endpoints else {
            return Err(refuse(format!(
                "no endpoints of broker {}",
                Excerpt(&broker.name)
            )));
        };
        let endpoints = Endpoints::from_proto(endpoints)
            .map_err(|error| error.context(format!("queue {} of {topic}", proto.id)))?;
        let types = proto.accept_message_types.iter().copied();
        let mut accepts: Vec<_> = types.filter_map(MessageType::from_proto).collect();
        accepts.sort_unstable();
        accepts.dedup();
        Ok(Self {
            topic: Arc::clone(topic),
            id: proto.id,
            broker_name: broker.name.as_str().into(),
            broker_id: broker.id,
            endpoints,
            permission: Permission::from_proto(proto.permission),
            accepts: accepts.into(),
            proto: Arc::new(proto),
        })
    }

    pub(crate) fn key(&self) -> QueueKey {
        QueueKey {
            topic: Arc::clone(&self.topic),
            broker: Arc::clone(&self.broker_name),
            id: self.id,
            endpoints: self.endpoints.clone(),
        }
    }

    pub(crate) fn is_master(&self) -> bool {
        self.broker_id == MASTER
    }

    /// Whether the server said what it takes. Without, it is not for a client to refuse anything.
    pub(crate) fn is_typed(&self) -> bool {
        !self.accepts.is_empty()
    }

    pub(crate) fn accepts_type(&self, kind: MessageType) -> bool {
        !self.is_typed() || self.accepts.contains(&kind)
    }
}

/// The queues that can be used, 65 536 at most, and warnings about the others.
pub(crate) fn take_queues(
    topic: &Arc<str>,
    queues: impl ExactSizeIterator<Item = pb::MessageQueue>,
) -> (Vec<MessageQueue>, Vec<String>) {
    let (mut taken, mut warnings) = (Vec::new(), Vec::new());
    let cut = queues.len().saturating_sub(MAX_QUEUES);
    let mut unsaid = 0_usize;
    for queue in queues.take(MAX_QUEUES) {
        match MessageQueue::from_proto(topic, queue) {
            Ok(queue) => taken.push(queue),
            Err(error) if warnings.len() < MAX_WARNINGS => {
                warnings.push(format!("skipped a queue: {error}"));
            }
            Err(_) => unsaid += 1,
        }
    }
    if unsaid > 0 {
        warnings.push(format!("skipped {unsaid} more queues of {topic}"));
    }
    if cut > 0 {
        warnings.push(format!(
            "ignored {cut} queues of {topic}, {MAX_QUEUES} are the limit"
        ));
    }
    (taken, warnings)
}
