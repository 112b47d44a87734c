//! QueryRoute.

use rocketmq_proto::v2 as pb;

use super::ticket::Caller;
use super::{Port, name};
use crate::config::TopicConfig;
use crate::names;
use crate::node::Node;
use crate::rpc::{Checked, ok, status};

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
            return Err(no_route(topic));
        };
        let mut message_queues: Vec<pb::MessageQueue> = self
            .cluster
            .nodes
            .iter()
            .flat_map(|node| queues(topic, &config, node))
            .collect();
        if let Some(change) = change {
            change(&mut message_queues);
        }
        Ok(pb::QueryRouteResponse {
            status: Some(ok()),
            message_queues,
        })
    }
}

fn queues(topic: &str, config: &TopicConfig, node: &Node) -> Vec<pb::MessageQueue> {
    let broker = pb::Broker {
        name: node.broker.clone(),
        id: 0,
        endpoints: Some(node.endpoints()),
    };
    let accepted: Vec<i32> = config.kind.accepted().into_iter().map(i32::from).collect();
    (0..config.queues)
        .map(|id| pb::MessageQueue {
            topic: Some(pb::Resource {
                name: topic.to_owned(),
                ..pb::Resource::default()
            }),
            id: i32::try_from(id).unwrap_or(i32::MAX),
            permission: config.permission.into(),
            broker: Some(broker.clone()),
            accept_message_types: accepted.clone(),
        })
        .collect()
}

pub(super) fn no_route(topic: &str) -> pb::Status {
    status(
        pb::Code::TopicNotFound,
        format!("CODE: 17  DESC: No topic route info in name server for the topic: {topic}"),
    )
}
