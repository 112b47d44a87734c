//! RecallMessage: taking back a delayed message.

use rocketmq_proto::v2 as pb;

use super::ticket::Caller;
use super::{Port, name};
use crate::config::TopicType;
use crate::names;
use crate::rpc::{Checked, ok, refuse};

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
        let text = data_encoding::BASE64URL
            .decode(request.recall_handle.as_bytes())
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .unwrap_or_default();
        let fields: Vec<&str> = text.splitn(5, ' ').collect();
        let ["v1", of, broker, due, id] = fields.as_slice() else {
            return fails("recall handle is invalid");
        };
        let Ok(due) = due.parse::<i64>() else {
            return fails("recall handle is invalid");
        };
        let Some(broker) = self.cluster.node_of_broker(broker).filter(|_| *of == topic) else {
            return fails("recall failed, topic not match");
        };
        if due <= self.cluster.clock.millis() {
            return fails("recall failed, timestamp invalid");
        }
        broker.state().store.timers.recall(topic, id);
        self.cluster.recorder.touch();
        Ok(pb::RecallMessageResponse {
            status: Some(ok()),
            message_id: (*id).to_owned(),
        })
    }
}
