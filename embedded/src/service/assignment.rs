//! QueryAssignment.

use rocketmq_proto::v2 as pb;

use super::route::no_route;
use super::ticket::Caller;
use super::{Port, name};
use crate::config::TopicConfig;
use crate::names;
use crate::node::Node;
use crate::rpc::{Checked, ok, refuse};

impl Port {
    /// Every consumer of a group gets all of it: one entry per broker, or per queue when the
    /// group is ordered.
    pub(super) fn assignment(
        &self,
        _caller: &Caller,
        request: pb::QueryAssignmentRequest,
    ) -> Checked<pb::QueryAssignmentResponse> {
        let topic = names::topic(name(request.topic.as_ref()))?;
        let group = names::group(name(request.group.as_ref()))?;
        let (config, fifo, scripted) = {
            let metadata = self.cluster.metadata();
            (
                metadata.topics.get(topic).cloned(),
                metadata.groups.get(group).is_some_and(|group| group.fifo),
                metadata
                    .assignments
                    .get(&(topic.to_owned(), group.to_owned()))
                    .cloned(),
            )
        };
        let Some(config) = config else {
            return Err(no_route(topic));
        };
        if !config.readable() {
            return refuse(pb::Code::Forbidden, "no readable queue");
        }
        let ids = if fifo { 0..count(config.queues) } else { -1..0 };
        let assignments = scripted.unwrap_or_else(|| {
            let nodes = self.cluster.nodes.iter();
            nodes
                .flat_map(|node| ids.clone().map(move |id| (node, id)))
                .map(|(node, id)| entry(topic, &config, node, id))
                .collect()
        });
        Ok(pb::QueryAssignmentResponse {
            status: Some(ok()),
            assignments,
        })
    }
}

fn count(queues: usize) -> i32 {
    i32::try_from(queues).unwrap_or(i32::MAX)
}

fn entry(topic: &str, config: &TopicConfig, node: &Node, id: i32) -> pb::Assignment {
    pb::Assignment {
        message_queue: Some(pb::MessageQueue {
            topic: Some(pb::Resource {
                name: topic.to_owned(),
                ..pb::Resource::default()
            }),
            id,
            permission: config.permission.into(),
            broker: Some(pb::Broker {
                name: node.broker.clone(),
                id: 0,
                endpoints: Some(node.endpoints()),
            }),
            accept_message_types: Vec::new(),
        }),
    }
}
