//! Which queues a topic has and where they are.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use rocketmq_proto::v2 as pb;

use super::{
    Endpoints, MessageType,
    queue::{MessageQueue, Permission, take_queues},
};

/// The queues of one topic. The order of the queues means nothing.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) topic: Arc<str>,
    pub(crate) queues: Vec<MessageQueue>,
}

impl Route {
    /// Takes what can be used and says what could not.
    pub(crate) fn from_proto(topic: &str, queues: Vec<pb::MessageQueue>) -> (Self, Vec<String>) {
        let topic: Arc<str> = topic.into();
        let (queues, warnings) = take_queues(&topic, queues.into_iter());
        (Self { topic, queues }, warnings)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(crate) fn endpoints(&self) -> BTreeSet<Endpoints> {
        self.queues
            .iter()
            .map(|queue| queue.endpoints.clone())
            .collect()
    }

    /// Queues a consumer may read from.
    pub(crate) fn readable(&self) -> impl Iterator<Item = &MessageQueue> {
        self.queues
            .iter()
            .filter(|queue| queue.is_master() && queue.permission.is_readable())
    }

    /// Queues a producer may send to.
    pub(crate) fn writable(&self) -> impl Iterator<Item = &MessageQueue> {
        self.queues
            .iter()
            .filter(|queue| queue.is_master() && queue.permission.is_writable())
    }

    /// Whether some queue takes messages of this kind; an untyped queue takes all.
    pub(crate) fn accepts_type(&self, kind: MessageType) -> bool {
        self.queues.iter().any(|queue| queue.accepts_type(kind))
    }

    /// The kinds the server named.
    pub(crate) fn accepted_types(&self) -> BTreeSet<MessageType> {
        self.queues
            .iter()
            .flat_map(|queue| queue.accepts.iter().copied())
            .collect()
    }

    /// Whether nothing differs but the order of queues and addresses.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        self.topic == other.topic
            && self.queues.len() == other.queues.len()
            && self.sorted() == other.sorted()
    }

    fn sorted(&self) -> Vec<Facts<'_>> {
        let mut facts: Vec<_> = self.queues.iter().map(facts).collect();
        facts.sort_unstable();
        facts
    }

    /// Whether this looks like the answer of a server that does not know yet: empty where the
    /// other has queues, untyped where the other names types.
    pub(crate) fn is_worse_than(&self, other: &Self) -> bool {
        let is_typed = |route: &Self| route.queues.iter().any(MessageQueue::is_typed);
        (self.is_empty() && !other.is_empty()) || (!is_typed(self) && is_typed(other))
    }

    pub(crate) fn without(&self, excluded: &BTreeSet<Endpoints>) -> Self {
        let kept = self
            .queues
            .iter()
            .filter(|queue| !excluded.contains(&queue.endpoints));
        Self {
            topic: Arc::clone(&self.topic),
            queues: kept.cloned().collect(),
        }
    }
}

type Facts<'a> = (
    &'a str,
    i32,
    i32,
    &'a Endpoints,
    Permission,
    &'a [MessageType],
);

fn facts(queue: &MessageQueue) -> Facts<'_> {
    (
        &queue.broker_name,
        queue.broker_id,
        queue.id,
        &queue.endpoints,
        queue.permission,
        &queue.accepts,
    )
}
