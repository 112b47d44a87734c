//! QueryAssignment.

use rocketmq_proto::v2 as pb;

use super::ticket::Caller;
use super::{Port, name};
use crate::names;
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
            return refuse(
                pb::Code::TopicNotFound,
                format!(
                    "CODE: 17  DESC: No topic route info in name server for the topic: {topic}"
                ),
            );
        };
        if !config.readable() {
            return refuse(pb::Code::Forbidden, "no readable queue");
        }
        let assignments = scripted.unwrap_or_else(|| {
            let ids = if fifo { 0..config.queues } else { 0..1 };
            let entry = |node: &crate::node::Node, id| pb::Assignment {
                message_queue: Some(pb::MessageQueue {
                    topic: request.topic.clone(),
                    id: if fifo {
                        i32::try_from(id).unwrap_or(i32::MAX)
                    } else {
                        -1
                    },
                    permission: config.permission.into(),
                    broker: Some(pb::Broker {
                        name: node.broker.clone(),
                        id: 0,
                        endpoints: Some(node.endpoints()),
                    }),
                    accept_message_types: Vec::new(),
                }),
            };
            let nodes = self.cluster.nodes.iter();
            nodes
                .flat_map(|node| ids.clone().map(move |id| (node, id)))
                .map(|(node, id)| entry(node, id))
                .collect()
        });
        Ok(pb::QueryAssignmentResponse {
            status: Some(ok()),
            assignments,
        })
    }
}
