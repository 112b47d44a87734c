//! One delivery from its handler to what settles it, in any order or in order.

use std::{sync::Arc, time::Duration};

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{
    Acks, Delivery, Outcome, consumption::Consumption, lease::Lease, receive::Leased, settle,
};

/// Runs the handler and settles by its outcome. Dropped half-way, the lease goes back.
pub(crate) async fn handle(
    consumption: &Arc<Consumption>,
    acks: &Acks,
    leased: Leased,
    permit: OwnedSemaphorePermit,
) {
    let Leased {
        lease,
        delivery,
        corrupted,
    } = leased;
    let outcome = match corrupted {
        None => run_handler(consumption, delivery).await,
        Some(reason) => refuse(&delivery, &reason),
    };
    // Settling needs no handler's place.
    drop(permit);
    match outcome {
        Outcome::Ack => acks.add(lease),
        // Boxed: its requests are large, and every handler would be with them.
        failed => Box::pin(settle_failed(consumption, lease, failed)).await,
    }
}

async fn settle_failed(consumption: &Arc<Consumption>, lease: Lease, outcome: Outcome) {
    match outcome {
        Outcome::Ack => settle::ack(consumption, lease).await,
        Outcome::Retry => retry_by_policy(consumption, lease).await,
        Outcome::RetryAfter(delay) => settle::retry(consumption, lease, delay).await,
        Outcome::DeadLetter { reason } => settle::dead_letter(consumption, lease, &reason).await,
    }
}

/// A message without a usable body is a failed delivery.
fn refuse(delivery: &Delivery, reason: &str) -> Outcome {
    let (topic, message_id) = (delivery.topic(), delivery.message_id());
    tracing::warn!(topic, message_id, reason, "message corrupted");
    Outcome::Retry
}

/// As the official client has it for ordered queues: repeats a failed handling here, keeping the
/// queue waiting, until it succeeds or the attempts are used up; a message that cannot be handled
/// at all is dead-lettered. Between two attempts a queue that is `dropped`, or a consumer that
/// drains, gives the message back.
pub(crate) async fn handle_in_order(
    consumption: &Arc<Consumption>,
    leased: Leased,
    permit: OwnedSemaphorePermit,
    dropped: &CancellationToken,
) {
    let Leased {
        lease,
        mut delivery,
        corrupted,
    } = leased;
    if let Some(reason) = corrupted {
        return settle::dead_letter(consumption, lease, &reason).await;
    }
    let mut permit = Some(permit);
    loop {
        let outcome = run_handler(consumption, delivery.clone()).await;
        permit.take();
        let policy = consumption.role.consuming.load().retry.clone();
        let attempt = i32::try_from(delivery.attempt()).unwrap_or(i32::MAX);
        let delay = match outcome {
            Outcome::Ack => return settle::ack(consumption, lease).await,
            Outcome::DeadLetter { reason } => {
                return settle::dead_letter(consumption, lease, &reason).await;
            }
            Outcome::Retry | Outcome::RetryAfter(_) if attempt >= policy.max_attempts() => {
                let reason = "its attempts are used up";
                return settle::dead_letter(consumption, lease, reason).await;
            }
            Outcome::Retry => policy.delay(attempt),
            Outcome::RetryAfter(delay) => delay.min(settle::LONGEST_INVISIBLE),
        };
        delivery = delivery.again();
        permit = tokio::select! {
            biased;
            () = dropped.cancelled() => return,
            () = consumption.draining.cancelled() => return,
            permit = next_turn(consumption, delay) => permit,
        };
    }
}

async fn next_turn(consumption: &Consumption, delay: Duration) -> Option<OwnedSemaphorePermit> {
    tokio::time::sleep(delay).await;
    consumption.handlers.clone().acquire_owned().await.ok()
}

async fn run_handler(consumption: &Arc<Consumption>, delivery: Delivery) -> Outcome {
    let span = tracing::info_span!(
        "process",
        actor = &*consumption.member.path,
        messaging.system = "rocketmq",
        messaging.operation.name = "process",
        messaging.destination.name = delivery.topic(),
        messaging.consumer.group.name = &*consumption.role.group,
        messaging.message.id = delivery.message_id(),
        messaging.rocketmq.message.delivery_attempt = delivery.attempt(),
    );
    let run = consumption.handler.run(consumption, delivery);
    let outcome = run.instrument(span).await;
    let stats = &consumption.stats;
    match &outcome {
        Outcome::Ack => stats.handled.one(),
        _ => stats.failed.one(),
    }
    outcome
}

/// Has a failed delivery made again after the delay the group's policy says.
async fn retry_by_policy(consumption: &Arc<Consumption>, lease: Lease) {
    let Some(receipt) = lease.receipt() else {
        return;
    };
    let attempt = i32::try_from(receipt.attempt).unwrap_or(i32::MAX);
    let delay = consumption.role.consuming.load().retry.delay(attempt);
    settle::retry(consumption, lease, delay).await;
}
