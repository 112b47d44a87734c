//! Telling the server what became of a delivery: ack, retry, dead letter, hand back.

use std::{sync::Arc, time::Duration};

use rocketmq_proto::v2 as pb;
use tokio::time::Instant;

use super::{
    consumption::Consumption,
    lease::{Decision, Lease, Receipt},
};
use crate::{
    Error, ErrorKind, Result,
    model::{
        delays::{Delays, DelaysState},
        time,
    },
    topology::EventKind,
};

/// Waits between the tries of one settle call.
const DELAYS: Delays = Delays::doubling(Duration::from_millis(100), Duration::from_secs(5));
/// A delivery that cannot be settled for so long is left to the server, which makes it again when
/// it no longer renews its lease.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
/// The server knows no longer invisible duration.
pub(crate) const LONGEST_INVISIBLE: Duration = Duration::from_secs(12 * 3600);

/// Does again what was decided about a delivery whose settling was cut off; hands it back if
/// nothing was.
pub(crate) async fn carry_out(consumption: &Arc<Consumption>, lease: Lease) {
    match lease.decision().cloned() {
        None => hand_back(consumption, lease).await,
        Some(Decision::Ack) => ack(consumption, lease).await,
        Some(Decision::Retry(delay)) => retry(consumption, lease, delay).await,
        Some(Decision::DeadLetter(reason)) => dead_letter(consumption, lease, &reason).await,
    }
}

/// Acknowledges one delivery, with retries.
pub(crate) async fn ack(consumption: &Arc<Consumption>, mut lease: Lease) {
    lease.decide(Decision::Ack);
    let Some(receipt) = lease.receipt().cloned() else {
        return;
    };
    let call = async || {
        let entries = vec![entry_of(&receipt)];
        let reply = send_acks(consumption, &receipt, entries).await?;
        match reply.entries.first() {
            Some(entry) => crate::rpc::check(entry.status.as_ref()),
            // The status of the reply was good, and there is only one it can be about.
            None => Ok(()),
        }
    };
    if until_done(consumption, &receipt, "ack", call).await {
        consumption.stats.acked.one();
    }
    lease.settled();
}

/// One AckMessage of many deliveries of one queue.
pub(super) async fn send_acks(
    consumption: &Consumption,
    any: &Receipt,
    entries: Vec<pb::AckMessageEntry>,
) -> Result<pb::AckMessageResponse> {
    let member = &consumption.member;
    let request = pb::AckMessageRequest {
        group: Some(member.resource(&consumption.role.group)),
        topic: Some(member.resource(&any.topic)),
        entries,
    };
    member
        .rpc
        .ack_message(&any.endpoints, request, member.rpc.timeout())
        .await
}

pub(super) fn entry_of(receipt: &Receipt) -> pb::AckMessageEntry {
    pb::AckMessageEntry {
        message_id: receipt.message_id.clone(),
        receipt_handle: receipt.handle.clone(),
        lite_topic: None,
    }
}

/// Has a failed delivery made again after `delay`.
pub(crate) async fn retry(consumption: &Arc<Consumption>, mut lease: Lease, delay: Duration) {
    lease.decide(Decision::Retry(delay));
    let Some(receipt) = lease.receipt().cloned() else {
        return;
    };
    let call = async || change_invisible(consumption, &receipt, delay, false).await;
    if until_done(consumption, &receipt, "retry", call).await {
        consumption.stats.retried.one();
    }
    lease.settled();
}

/// Moves a delivery to the dead letter topic of the group.
pub(crate) async fn dead_letter(consumption: &Arc<Consumption>, mut lease: Lease, reason: &str) {
    lease.decide(Decision::DeadLetter(reason.to_owned()));
    let Some(receipt) = lease.receipt().cloned() else {
        return;
    };
    let member = &consumption.member;
    let call = async || {
        let request = pb::ForwardMessageToDeadLetterQueueRequest {
            group: Some(member.resource(&consumption.role.group)),
            topic: Some(member.resource(&receipt.topic)),
            receipt_handle: receipt.handle.clone(),
            message_id: receipt.message_id.clone(),
            delivery_attempt: i32::try_from(receipt.attempt).unwrap_or(i32::MAX),
            max_delivery_attempts: consumption.role.consuming.load().retry.max_attempts(),
            lite_topic: None,
        };
        let timeout = member.rpc.timeout();
        let forwarded =
            member
                .rpc
                .forward_message_to_dead_letter_queue(&receipt.endpoints, request, timeout);
        forwarded.await.map(drop)
    };
    if until_done(consumption, &receipt, "dead letter", call).await {
        consumption.stats.dead_lettered.one();
        let (topic, message_id) = (&receipt.topic, &receipt.message_id);
        let group = &consumption.role.group;
        tracing::warn!(%group, %topic, message_id, reason, "message dead-lettered");
        member.report(EventKind::DeadLettered {
            topic: topic.clone(),
            message_id: message_id.clone(),
            reason: reason.to_owned(),
        });
    }
    lease.settled();
}

/// Gives back a delivery whose handling did not start: others get it at once, and where the
/// server allows it, without burning an attempt. Tried for a moment only, since the server gives
/// it to others anyway, later.
pub(crate) async fn hand_back(consumption: &Arc<Consumption>, lease: Lease) {
    const TRIES: usize = 3;
    let Some(receipt) = lease.receipt().cloned() else {
        return;
    };
    let mut delays = DELAYS.start();
    let mut rng = consumption.member.config.environment.rng();
    let mut last = None;
    for _ in 0..TRIES {
        let prepared = consumption.prepare(&receipt.endpoints).await;
        let called = match prepared {
            Ok(()) => change_invisible(consumption, &receipt, Duration::ZERO, true).await,
            Err(error) => Err(error),
        };
        let Err(error) = called else {
            consumption.stats.handed_back.one();
            return lease.settled();
        };
        let hopeless = !may_succeed(&error);
        last = Some(error);
        if hopeless {
            break;
        }
        tokio::time::sleep(delays.next(&mut rng)).await;
    }
    if let Some(error) = last {
        give_up(consumption, &receipt, "hand back", &error);
    }
    lease.settled();
}

async fn change_invisible(
    consumption: &Consumption,
    receipt: &Receipt,
    delay: Duration,
    suspend: bool,
) -> Result<()> {
    let member = &consumption.member;
    let request = pb::ChangeInvisibleDurationRequest {
        group: Some(member.resource(&consumption.role.group)),
        topic: Some(member.resource(&receipt.topic)),
        receipt_handle: receipt.handle.clone(),
        invisible_duration: Some(time::to_proto_duration(delay.min(LONGEST_INVISIBLE))),
        message_id: receipt.message_id.clone(),
        lite_topic: None,
        suspend: suspend.then_some(true),
    };
    let timeout = member.rpc.timeout();
    member
        .rpc
        .change_invisible_duration(&receipt.endpoints, request, timeout)
        .await
        .map(drop)
}

/// Repeats a settle call while it can succeed; says whether it did.
async fn until_done(
    consumption: &Consumption,
    receipt: &Receipt,
    what: &'static str,
    mut call: impl AsyncFnMut() -> Result<()>,
) -> bool {
    let started = Instant::now();
    let mut delays: DelaysState = DELAYS.start();
    let mut rng = None;
    loop {
        let (error, hopeless) = match consumption.prepare(&receipt.endpoints).await {
            Ok(()) => match call().await {
                Ok(()) => return true,
                Err(error) => {
                    let hopeless = !may_succeed(&error);
                    (error, hopeless)
                }
            },
            // Refused settings say nothing about this delivery.
            Err(error) => (error, false),
        };
        if hopeless || started.elapsed() > PATIENCE {
            give_up(consumption, receipt, what, &error);
            return false;
        }
        tracing::debug!(what, message_id = receipt.message_id, %error, "settling is tried again");
        let rng = rng.get_or_insert_with(|| consumption.member.config.environment.rng());
        tokio::time::sleep(delays.next(rng)).await;
    }
}

/// Whether a failed settle call can succeed when it is made again.
pub(super) fn may_succeed(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::ReceiptExpired
            | ErrorKind::InvalidArgument
            | ErrorKind::TooLarge
            | ErrorKind::Forbidden
            | ErrorKind::Unsupported
            | ErrorKind::TypeConflict
    )
}

/// Counts a delivery that cannot be settled: the server delivers it again.
pub(super) fn give_up(consumption: &Consumption, receipt: &Receipt, what: &str, error: &Error) {
    let (group, topic) = (&consumption.role.group, &receipt.topic);
    let message_id = &receipt.message_id;
    if error.kind() == ErrorKind::ReceiptExpired {
        consumption.stats.expired.one();
        tracing::warn!(%group, %topic, message_id, what, "the lease was over, it comes again");
    } else {
        consumption.stats.abandoned.one();
        tracing::warn!(%group, %topic, message_id, what, %error, "settling given up");
    }
}
