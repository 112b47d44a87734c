//! RecallMessage: taking back a delayed message.

use rocketmq_proto::v2 as pb;

use super::ticket::Caller;
use super::{Port, name};
use crate::config::TopicType;
use crate::names;
use crate::rpc::{Checked, ok, refuse};

/// What names a delayed message.
struct Handle {
    topic: String,
    broker: String,
    due: i64,
    id: String,
}

impl Handle {
    fn read(text: &str) -> Option<Self> {
        let bytes = data_encoding::BASE64URL.decode(text.as_bytes()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let fields: Vec<&str> = text.splitn(5, ' ').collect();
        let ["v1", topic, broker, due, id] = fields.as_slice() else {
            return None;
        };
        Some(Self {
            topic: (*topic).to_owned(),
            broker: (*broker).to_owned(),
            due: due.parse().ok()?,
            id: (*id).to_owned(),
        })
    }
}

impl Port {
    /// What names a delayed message for its recall.
    pub(super) fn recall_handle(&self, topic: &str, due: i64, id: &str) -> String {
        let text = format!("v1 {topic} {} {} {id}", self.node.broker, due + 1);
        data_encoding::BASE64URL.encode(text.as_bytes())
    }

    /// Recalling once more before the message would have been due is OK.
    pub(super) fn recall(
        &self,
        _caller: &Caller,
        request: pb::RecallMessageRequest,
    ) -> Checked<pb::RecallMessageResponse> {
        let fails = |text: &str| refuse(pb::Code::InternalServerError, text);
        let topic = names::topic(name(request.topic.as_ref()))?;
        let kind = self.cluster.topic(topic).map(|config| config.kind);
        if !matches!(kind, Some(TopicType::Delay | TopicType::Mixed)) {
            let actual = kind.map_or("UNSPECIFIED", TopicType::name);
            return refuse(
                pb::Code::MessagePropertyConflictWithType,
                format!(
                    "TopicMessageType validate failed, the expected type is {actual}, \
                     but actual type is DELAY"
                ),
            );
        }
        if !self.cluster.options.recall {
            return fails("recall failed, operation is forbidden");
        }
        let Some(handle) = Handle::read(&request.recall_handle) else {
            return fails("recall handle is invalid");
        };
        let broker = self.cluster.node_of_broker(&handle.broker);
        let Some(broker) = broker.filter(|_| handle.topic == topic) else {
            return fails("recall failed, topic not match");
        };
        if handle.due <= self.cluster.clock.millis() {
            return fails("recall failed, timestamp invalid");
        }
        broker.state().store.timers.recall(topic, &handle.id);
        self.cluster.recorder.touch();
        Ok(pb::RecallMessageResponse {
            status: Some(ok()),
            message_id: handle.id,
        })
    }
}
