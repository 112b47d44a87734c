//! EndTransaction.

use std::sync::Arc;

use rocketmq_proto::v2 as pb;
use tokio::time::Instant;

use super::ticket::Caller;
use super::{Port, name};
use crate::clock::timestamp_millis;
use crate::names;
use crate::rpc::{Checked, ok, refuse, status};
use crate::store::half::{Half, Source};

impl Port {
    /// The answer is OK whether or not the broker takes the end: the real call is one-way.
    pub(super) fn end(
        &self,
        _caller: &Caller,
        request: pb::EndTransactionRequest,
    ) -> Checked<pb::EndTransactionResponse> {
        let topic = names::topic(name(request.topic.as_ref()))?;
        let id = request.transaction_id.as_str();
        if id.trim().is_empty() {
            return refuse(
                pb::Code::InvalidTransactionId,
                "transaction id cannot be empty",
            );
        }
        let source = if request.source() == pb::TransactionSource::SourceServerCheck {
            Source::Check
        } else {
            Source::Producer
        };
        let mut state = self.node.state();
        let ended = state.store.end(topic, id, request.resolution(), source);
        drop(state);
        let committed = ended.map_err(|_| {
            status(
                pb::Code::InternalServerError,
                "cannot found transaction data",
            )
        })?;
        if let Some(half) = committed {
            self.commit(topic, half);
        }
        self.cluster.recorder.touch();
        Ok(pb::EndTransactionResponse { status: Some(ok()) })
    }

    /// Stores the message for good, or for its delivery time.
    fn commit(&self, topic: &str, half: Half) {
        let due = half
            .stored
            .properties()
            .and_then(|properties| properties.delivery_timestamp.as_ref())
            .map(timestamp_millis)
            .filter(|due| *due > self.cluster.clock.millis());
        let stored = Arc::new(half.stored);
        let mut state = self.node.state();
        match due {
            Some(due) => {
                let at = Instant::now() + self.cluster.clock.until(due);
                state.store.delay(topic, stored, at);
            }
            None => {
                state.store.append(topic, half.queue, stored, 0);
            }
        }
    }
}
