//! QueryRoute.

use rocketmq_proto::v2 as pb;

use super::ticket::Caller;
use super::{Port, name};
use crate::names;
use crate::rpc::{Checked, ok, refuse};

impl Port {
    /// One entry per node and queue, by node.
    pub(super) fn route(
        &self,
        _caller: &Caller,
        request: pb::QueryRouteRequest,
    ) -> Checked<pb::QueryRouteResponse> {
        let topic = names::topic(name(request.topic.as_ref()))?;
        let (config, change) = {
            let metadata = self.cluster.metadata();
            (
                metadata.topics.get(topic).cloned(),
                metadata.routes.get(topic).cloned(),
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
        let mut message_queues = Vec::with_capacity(self.cluster.nodes.len() * config.queues);
        for node in &self.cluster.nodes {
            let broker = pb::Broker {
                name: node.broker.clone(),
                id: 0,
                endpoints: Some(node.endpoints()),
            };
            for id in 0..config.queues {
                message_queues.push(pb::MessageQueue {
                    topic: Some(pb::Resource {
                        name: topic.to_owned(),
                        ..pb::Resource::default()
                    }),
                    id: i32::try_from(id).unwrap_or(i32::MAX),
                    permission: config.permission.into(),
                    broker: Some(broker.clone()),
                    accept_message_types: config
                        .kind
                        .accepted()
                        .into_iter()
                        .map(i32::from)
                        .collect(),
                });
            }
        }
        if let Some(change) = change {
            change(&mut message_queues);
        }
        Ok(pb::QueryRouteResponse {
            status: Some(ok()),
            message_queues,
        })
    }
}
