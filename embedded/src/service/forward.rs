//! ForwardMessageToDeadLetterQueue.

use rocketmq_proto::v2 as pb;

use super::ticket::Caller;
use super::{Port, name};
use crate::names;
use crate::receipt::Receipt;
use crate::rpc::{Checked, refuse, status};
use crate::store::log::Entry;
use crate::store::{Holder, Store};

impl Port {
    /// Copies the message and settles it. The handle may be expired, and a repeated call copies
    /// once more, as with the real broker.
    pub(super) fn forward(
        &self,
        caller: &Caller,
        request: pb::ForwardMessageToDeadLetterQueueRequest,
    ) -> Checked<pb::ForwardMessageToDeadLetterQueueResponse> {
        let topic = names::topic(name(request.topic.as_ref()))?;
        let group = names::group(name(request.group.as_ref()))?;
        let receipt = Receipt::parse(&request.receipt_handle)?;
        let Some(commit_log) = receipt.commit_log else {
            return refuse(pb::Code::InvalidReceiptHandle, "commit log offset is empty");
        };
        let broker = self.cluster.node_of_broker(&receipt.broker);
        let Some(broker) = broker else {
            return refuse(
                pb::Code::InvalidReceiptHandle,
                format!("cannot find broker {}", receipt.broker),
            );
        };
        let holder = self.node.holder(caller.id());
        let entry =
            take(&mut broker.state().store, topic, group, &receipt, &holder).ok_or_else(|| {
                status(
                    pb::Code::InternalServerError,
                    format!("look message by offset failed, {commit_log}"),
                )
            })?;
        self.cluster.bury(broker, group, &[entry]);
        Ok(pb::ForwardMessageToDeadLetterQueueResponse {
            status: Some(status(pb::Code::Ok, "0")),
        })
    }
}

/// The message that a handle names; it is settled, if it is still open.
fn take(
    store: &mut Store,
    topic: &str,
    group: &str,
    receipt: &Receipt,
    holder: &Holder,
) -> Option<Entry> {
    let entry = store.find(topic, group, receipt.position).ok()?;
    if receipt.commit_log != Some(entry.stored.commit_log) {
        return None;
    }
    if receipt.ordered() {
        // Whatever became of the original, the copy is wanted.
        let _ = store.settle_ordered(topic, group, receipt);
    } else {
        let renewed = store.renewed_for(topic, group, receipt, holder);
        store.settle(topic, group, receipt, renewed);
    }
    Some(entry)
}
