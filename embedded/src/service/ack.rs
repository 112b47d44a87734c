//! AckMessage.

use std::sync::Arc;

use rocketmq_proto::v2 as pb;
use tokio::time::Instant;

use super::ticket::Caller;
use super::{Port, name};
use crate::history::Acknowledged;
use crate::names;
use crate::node::Node;
use crate::receipt::Receipt;
use crate::rpc::{Checked, ok, refuse, status};
use crate::store::Holder;

/// A handle that was looked at: where its message is and whether the node renews it.
pub(super) struct Handle {
    pub(super) broker: Arc<Node>,
    pub(super) receipt: Receipt,
    pub(super) renewed: bool,
}

impl Port {
    pub(super) fn ack(
        &self,
        caller: &Caller,
        request: pb::AckMessageRequest,
    ) -> Checked<pb::AckMessageResponse> {
        let topic = names::topic(name(request.topic.as_ref()))?;
        let group = names::group(name(request.group.as_ref()))?;
        if request.entries.is_empty() {
            return refuse(pb::Code::InternalServerError, "ack message result is empty");
        }
        let entries: Vec<pb::AckMessageResultEntry> = request
            .entries
            .into_iter()
            .map(|entry| {
                let done = self.ack_one(caller, topic, group, &entry);
                pb::AckMessageResultEntry {
                    status: Some(done.err().unwrap_or_else(ok)),
                    message_id: entry.message_id,
                    receipt_handle: entry.receipt_handle,
                }
            })
            .collect();
        self.cluster.recorder.touch();
        Ok(pb::AckMessageResponse {
            status: Some(common(&entries)),
            entries,
        })
    }

    fn ack_one(
        &self,
        caller: &Caller,
        topic: &str,
        group: &str,
        entry: &pb::AckMessageEntry,
    ) -> Checked<()> {
        let handle = self.handle(caller, topic, group, &entry.receipt_handle)?;
        let abnormal = || {
            status(
                pb::Code::InternalServerError,
                "ack failed: status is abnormal",
            )
        };
        let mut state = handle.broker.state();
        let store = &mut state.store;
        if !store.in_range(topic, group, handle.receipt.position) {
            return Err(abnormal());
        }
        let settled = if handle.receipt.ordered() {
            store
                .settle_ordered(topic, group, &handle.receipt)
                .map_err(|_| abnormal())?
        } else {
            store.settle(topic, group, &handle.receipt, handle.renewed)
        };
        drop(state);
        if settled {
            self.cluster
                .history
                .acknowledged(std::iter::once(Acknowledged {
                    message_id: entry.message_id.clone(),
                    topic: topic.to_owned(),
                    group: group.to_owned(),
                    client_id: caller.id().to_owned(),
                    node: handle.broker.index,
                    at: Instant::now(),
                    receipt_handle: entry.receipt_handle.clone(),
                }));
        }
        Ok(())
    }

    /// Reads a handle and refuses it when its time is over, unless the node renews its message.
    pub(super) fn handle(
        &self,
        caller: &Caller,
        topic: &str,
        group: &str,
        text: &str,
    ) -> Checked<Handle> {
        let receipt = Receipt::parse(text)?;
        let Some(broker) = self.cluster.node_of_broker(&receipt.broker) else {
            return refuse(
                pb::Code::InvalidReceiptHandle,
                format!("cannot find broker {}", receipt.broker),
            );
        };
        let holder: Holder = self.node.holder(caller.id());
        let renewed = broker
            .state()
            .store
            .renewed_for(topic, group, &receipt, &holder);
        let receipt = if renewed {
            receipt
        } else {
            receipt.unexpired(self.cluster.clock.millis())?
        };
        Ok(Handle {
            broker: Arc::clone(broker),
            receipt,
            renewed,
        })
    }
}

/// The status that all entries share, if they do.
fn common(entries: &[pb::AckMessageResultEntry]) -> pb::Status {
    let code = |entry: &pb::AckMessageResultEntry| entry.status.as_ref().map(|s| s.code);
    match entries.first() {
        Some(first) if entries.iter().all(|entry| code(entry) == code(first)) => {
            first.status.clone().unwrap_or_else(ok)
        }
        _ => status(pb::Code::MultipleResults, "MULTIPLE_RESULTS"),
    }
}
