//! What a sender gets for a stored message.

use std::sync::Arc;

use rocketmq_proto::v2 as pb;

use crate::model::{Endpoints, message_id::MessageId, queue::MessageQueue};

/// The server's word that a message is stored. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SendReceipt(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    message_id: MessageId,
    queue: MessageQueue,
    offset: Option<i64>,
    transaction_id: String,
    recall_handle: String,
}

impl SendReceipt {
    pub(super) fn new(
        message_id: MessageId,
        queue: MessageQueue,
        entry: Option<pb::SendResultEntry>,
    ) -> Self {
        let offset = entry.as_ref().map(|entry| entry.offset);
        let entry = entry.unwrap_or_default();
        Self(Arc::new(Inner {
            message_id,
            queue,
            offset,
            transaction_id: entry.transaction_id,
            recall_handle: entry.recall_handle,
        }))
    }

    /// The id of the message, the same over all attempts to send it.
    #[must_use]
    pub fn message_id(&self) -> &str {
        self.0.message_id.as_str()
    }

    /// The topic it is stored in.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.0.queue.topic
    }

    /// The name of the broker that took it.
    #[must_use]
    pub fn broker_name(&self) -> &str {
        &self.0.queue.broker_name
    }

    /// The queue it was meant for. A server may choose another queue of the topic, and does not
    /// say so.
    #[must_use]
    pub fn queue_id(&self) -> i32 {
        self.0.queue.id
    }

    /// Its place in the queue it is stored in. Of a delayed message, its place in the server's
    /// own waiting queue. Nothing when the server gave one result for several messages, see
    /// [`Batching`](crate::Batching).
    #[must_use]
    pub fn offset(&self) -> Option<i64> {
        self.0.offset
    }

    /// The endpoints it was sent to.
    #[must_use]
    pub fn endpoints(&self) -> &Endpoints {
        &self.0.queue.endpoints
    }

    /// What the server calls the transaction of the message; many servers give one to every
    /// message.
    #[must_use]
    pub fn transaction_id(&self) -> Option<&str> {
        stated(&self.0.transaction_id)
    }

    /// What a delayed message can be recalled by, where the server offers that.
    #[must_use]
    pub fn recall_handle(&self) -> Option<&str> {
        stated(&self.0.recall_handle)
    }
}

fn stated(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
