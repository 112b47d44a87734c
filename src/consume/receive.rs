//! One receive: asks a queue for messages and turns the reply into deliveries.

use std::{sync::Arc, time::Duration};

use rocketmq_proto::v2 as pb;
use tokio::time::{Instant, timeout_at};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Delivery, Subscription,
    consumption::Consumption,
    delivery::attempt_of,
    lease::{Lease, Receipt},
    settings::Consuming,
};
use crate::{
    Error, ErrorKind, Result,
    model::{body, digest, queue::MessageQueue, time},
    rpc::{Streaming, brief, check},
};

/// A delivery with the duty to settle it.
#[derive(Debug)]
pub(crate) struct Leased {
    pub(crate) lease: Lease,
    pub(crate) delivery: Delivery,
    /// Why its body is not usable, if it is not.
    pub(crate) corrupted: Option<String>,
}

/// What one receive came to.
#[derive(Debug, Default)]
pub(crate) struct Reception {
    /// Messages that came, those given to `sink` before the end included.
    pub(crate) messages: usize,
    /// Whether as many came as were asked for.
    pub(crate) full: bool,
    /// Why it ended early, if it did.
    pub(crate) error: Option<Error>,
}

/// A reply that is being read.
#[derive(Debug)]
struct Reply {
    stream: Streaming<pb::ReceiveMessageResponse>,
    /// Messages it may still have, those nobody asked for included.
    left: usize,
}

/// So many messages beyond those asked for are given back; a reply with more is broken off.
const SURPLUS: usize = 32;
/// So long before its deadline a reply no longer waits for room in the cache.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// Receives from one queue.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) consumption: Arc<Consumption>,
    pub(crate) queue: MessageQueue,
    pub(crate) subscription: Subscription,
    /// Has a token of each receive loop.
    pub(crate) polls: TaskTracker,
    /// Has a token of each delivery that is not settled.
    pub(crate) open: TaskTracker,
}

impl Receiver {
    /// One receive. What comes is handed to `sink` as a batch: at the end, and earlier where the
    /// cache is full, so that it can drain.
    ///
    /// The server hides what it has written for as long as this client lives, so a reply is always
    /// read to its end. When its time is nearly over, or `hurry` is, what no longer fits into the
    /// cache is handed back.
    pub(crate) async fn receive(
        &self,
        attempt_id: &str,
        consuming: &Consuming,
        hurry: &CancellationToken,
        mut sink: impl AsyncFnMut(Vec<Leased>),
    ) -> Reception {
        let budget = &self.consumption.budget;
        let poll = budget.poll(consuming.batch);
        let timeout = consuming.long_polling + self.consumption.member.rpc.timeout();
        let request = self.request(attempt_id, consuming, poll.batch);
        let rpc = &self.consumption.member.rpc;
        let deadline = Instant::now() + timeout;
        let opened = rpc.receive_message(&self.queue.endpoints, request, timeout);
        let mut reply = match opened.await {
            Ok(stream) => Reply {
                stream,
                left: poll.batch + SURPLUS,
            },
            Err(error) => {
                return Reception {
                    error: Some(error),
                    ..Reception::default()
                };
            }
        };
        let mut reception = Reception::default();
        let mut batch = Vec::new();
        let mut waits = true;
        loop {
            if waits && budget.is_full() {
                sink(std::mem::take(&mut batch)).await;
                waits = tokio::select! {
                    biased;
                    () = hurry.cancelled() => false,
                    room = timeout_at(deadline - LAST_MOMENT, budget.has_room()) => room.is_ok(),
                };
            }
            match timeout_at(deadline, self.next(&mut reply)).await {
                Ok(Ok(Some(leased))) => {
                    reception.messages += 1;
                    // Without room it goes back at once.
                    if waits || !budget.is_full() {
                        batch.push(leased);
                    }
                }
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    reception.error = Some(error);
                    break;
                }
                Err(_) => {
                    reception.error = Some(self.overdue(timeout));
                    break;
                }
            }
        }
        if !batch.is_empty() {
            sink(batch).await;
        }
        reception.full = reception.messages >= poll.batch;
        self.consumption.stats.received.add(reception.messages);
        reception
    }

    fn overdue(&self, timeout: Duration) -> Error {
        Error::new(
            ErrorKind::Timeout,
            format!("no end of the reply within {timeout:?}"),
        )
        .operation("ReceiveMessage")
        .endpoint(&self.queue.endpoints)
    }

    fn request(
        &self,
        attempt_id: &str,
        consuming: &Consuming,
        batch: usize,
    ) -> pb::ReceiveMessageRequest {
        let Consumption { member, role, .. } = &*self.consumption;
        pb::ReceiveMessageRequest {
            group: Some(member.resource(&role.group)),
            message_queue: Some((*self.queue.proto).clone()),
            filter_expression: Some(self.subscription.filter.to_proto()),
            batch_size: i32::try_from(batch).unwrap_or(1),
            // The server keeps deliveries hidden for as long as this client lives.
            auto_renew: true,
            invisible_duration: None,
            long_polling_timeout: Some(time::to_proto_duration(consuming.long_polling)),
            attempt_id: Some(attempt_id.to_owned()),
        }
    }

    /// The next message of a reply, `None` at its good end.
    async fn next(&self, reply: &mut Reply) -> Result<Option<Leased>> {
        use pb::receive_message_response::Content;
        while let Some(item) = reply.stream.next().await? {
            match item.content {
                Some(Content::Status(status))
                    if status.code == pb::Code::MessageNotFound as i32 => {}
                Some(Content::Status(status)) => check(Some(&status)).map_err(|error| {
                    error
                        .operation("ReceiveMessage")
                        .endpoint(&self.queue.endpoints)
                        .request_id(reply.stream.request_id())
                })?,
                Some(Content::Message(mut message)) => {
                    reply.left = reply.left.checked_sub(1).ok_or_else(|| self.too_many())?;
                    if reply.left < SURPLUS {
                        // There is no room for what nobody asked for: it goes back.
                        drop(self.lease(&mut message));
                    } else if let Some(leased) = self.take(message) {
                        return Ok(Some(leased));
                    }
                }
                Some(Content::DeliveryTimestamp(_)) | None => {}
            }
        }
        Ok(None)
    }

    fn too_many(&self) -> Error {
        Error::new(
            ErrorKind::Protocol,
            "the reply has far more messages than were asked for",
        )
        .operation("ReceiveMessage")
        .endpoint(&self.queue.endpoints)
    }

    /// The duty to settle a message; none for one that cannot be settled.
    fn lease(&self, message: &mut pb::Message) -> Option<Lease> {
        let Consumption { leases, stats, .. } = &*self.consumption;
        let system = message.system_properties.get_or_insert_default();
        let handle = system
            .receipt_handle
            .take()
            .filter(|handle| !handle.is_empty());
        let Some(handle) = handle else {
            tracing::warn!(topic = %self.queue.topic, "a message without receipt handle");
            stats.abandoned.one();
            return None;
        };
        Some(leases.lease(Receipt {
            topic: self.queue.topic.clone(),
            endpoints: self.queue.endpoints.clone(),
            handle,
            message_id: system.message_id.clone(),
            attempt: attempt_of(system),
        }))
    }

    /// Takes a message over. `None`: it is not for us, and goes back; or cannot be settled.
    fn take(&self, mut message: pb::Message) -> Option<Leased> {
        let Consumption {
            member,
            budget,
            stats,
            ..
        } = &*self.consumption;
        let mut permit = budget.admit(message.body.len());
        let mut lease = self.lease(&mut message)?;
        let topic = message
            .topic
            .as_ref()
            .map_or("", |topic| topic.name.as_str());
        if topic != &*self.queue.topic {
            let foreign = brief(topic);
            tracing::warn!(topic = %self.queue.topic, foreign, "a message of another topic");
            return None;
        }
        let (body, corrupted) = match body_of(&message, member.config.inflate_limit) {
            Ok(body) => (body, None),
            Err(reason) => {
                stats.corrupted.one();
                (message.body.clone(), Some(reason))
            }
        };
        permit.resize(body.len());
        let delivery = Delivery::new(self.queue.topic.clone(), message, body, permit);
        lease.hold(delivery.clone(), self.open.token());
        Some(Leased {
            lease,
            delivery,
            corrupted,
        })
    }
}

/// The decoded body, or what is wrong with it.
fn body_of(message: &pb::Message, limit: usize) -> Result<bytes::Bytes, String> {
    let Some(system) = &message.system_properties else {
        return Ok(message.body.clone());
    };
    digest::verify(system.body_digest.as_ref(), &message.body)
        .and_then(|_| body::decode(system.body_encoding, message.body.clone(), limit))
        .map_err(|error| error.to_string())
}
