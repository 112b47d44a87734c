//! Which queues of a topic this consumer is to read.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rocketmq_proto::v2 as pb;

use super::queue::{MessageQueue, QueueKey, take_queues};

/// Assigned queues, each once. Cheap enough to compare at every scan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assignments(BTreeMap<QueueKey, MessageQueue>);

/// What to do after a scan.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) started: Vec<MessageQueue>,
    pub(crate) stopped: Vec<QueueKey>,
}

impl Assignments {
    /// Takes what can be used and says what could not.
    pub(crate) fn from_proto(topic: &str, sent: Vec<pb::Assignment>) -> (Self, Vec<String>) {
        let topic: Arc<str> = topic.into();
        let queues = sent
            .into_iter()
            .map(|one| one.message_queue.unwrap_or_default());
        let (queues, warnings) = take_queues(&topic, queues);
        (queues.into_iter().collect(), warnings)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn queues(&self) -> impl Iterator<Item = &MessageQueue> {
        self.0.values()
    }

    pub(crate) fn contains(&self, key: &QueueKey) -> bool {
        self.0.contains_key(key)
    }

    /// What has to be done so that these run, and no others of those that do. A queue counts as
    /// the same as long as its topic, broker, number and endpoints are.
    pub(crate) fn changes_from(&self, running: &BTreeSet<QueueKey>) -> Changes {
        let started = self.0.iter().filter(|(key, _)| !running.contains(*key));
        let stopped = running.iter().filter(|key| !self.contains(key));
        Changes {
            started: started.map(|(_, queue)| queue.clone()).collect(),
            stopped: stopped.cloned().collect(),
        }
    }
}

impl FromIterator<MessageQueue> for Assignments {
    fn from_iter<I: IntoIterator<Item = MessageQueue>>(queues: I) -> Self {
        Self(
            queues
                .into_iter()
                .map(|queue| (queue.key(), queue))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assignment(broker: &str, id: i32) -> pb::Assignment {
        let address = pb::Address {
            host: broker.into(),
            port: 8081,
        };
        let endpoints = pb::Endpoints {
            scheme: 0,
            addresses: vec![address],
        };
        let broker = pb::Broker {
            name: broker.into(),
            id: 0,
            endpoints: Some(endpoints),
        };
        let queue = pb::MessageQueue {
            id,
            broker: Some(broker),
            ..pb::MessageQueue::default()
        };
        pb::Assignment {
            message_queue: Some(queue),
        }
    }

    fn assignments(sent: &[(&str, i32)]) -> Assignments {
        let sent = sent.iter().map(|(broker, id)| assignment(broker, *id));
        Assignments::from_proto("t", sent.collect()).0
    }

    fn queue_keys(assignments: &Assignments) -> BTreeSet<QueueKey> {
        assignments.queues().map(MessageQueue::key).collect()
    }

    #[test]
    fn an_assignment_without_a_queue_is_skipped_with_a_warning() {
        let sent = vec![pb::Assignment::default(), assignment("a", 1)];
        let (taken, warnings) = Assignments::from_proto("t", sent);
        assert_eq!((taken.len(), warnings.len()), (1, 1));
    }

    #[test]
    fn a_queue_named_twice_is_one_and_one_of_another_proxy_is_another() {
        assert_eq!(assignments(&[("a", 1), ("a", 1)]).len(), 1);
        let mut moved = assignment("a", 1);
        if let Some(broker) = moved
            .message_queue
            .as_mut()
            .and_then(|queue| queue.broker.as_mut())
        {
            broker.endpoints = Some(pb::Endpoints {
                scheme: 0,
                addresses: vec![pb::Address {
                    host: "elsewhere".into(),
                    port: 1,
                }],
            });
        }
        let new = Assignments::from_proto("t", vec![moved]).0;
        let changes = new.changes_from(&queue_keys(&assignments(&[("a", 1)])));
        assert_eq!((changes.started.len(), changes.stopped.len()), (1, 1));
    }

    fn keys(sent: &[(String, i32)]) -> BTreeSet<(String, i32)> {
        sent.iter().cloned().collect()
    }

    proptest! {
        #[test]
        fn the_changes_are_the_set_difference_in_any_order(
            old in prop::collection::vec(("[ab]", 0..6), 0..12),
            new in prop::collection::vec(("[ab]", 0..6), 0..12),
        ) {
            let build = |sent: &[(String, i32)]| {
                let sent: Vec<_> = sent.iter().map(|(broker, id)| (broker.as_str(), *id)).collect();
                assignments(&sent)
            };
            let changes = build(&new).changes_from(&queue_keys(&build(&old)));
            let started = changes.started.iter().map(|queue| (queue.broker_name.to_string(), queue.id));
            let stopped = changes.stopped.iter().map(|key| (key.broker.to_string(), key.id));
            let (old, new) = (keys(&old), keys(&new));
            prop_assert_eq!(started.collect::<BTreeSet<_>>(), &new - &old);
            prop_assert_eq!(stopped.collect::<BTreeSet<_>>(), &old - &new);
        }
    }
}
