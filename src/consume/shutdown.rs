//! The end of a push consumer: drained, undone or just dropped.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{consumption::Consumption, watch::watch_handlers};
use crate::{
    member::Phase,
    topology::{EventKind, MemberReport, Stop},
};

/// After the grace, giving back and taking leave may take this long together.
const LAST_STEPS: Duration = Duration::from_millis(900);
/// How long giving back may take of that.
const GIVING_BACK: Duration = Duration::from_millis(500);

/// What became of the deliveries of a consumer that was shut down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Deliveries that were settled during the shutdown: acknowledged, retried or dead-lettered.
    pub settled: u64,
    /// Deliveries given back unhandled.
    pub handed_back: u64,
    /// Deliveries neither settled nor given back, in vain or for want of time: the server makes
    /// them again.
    pub abandoned: u64,
    /// Receives that were cut off.
    pub cancelled_polls: u64,
    /// Whether everything ended within the grace.
    pub in_time: bool,
}

/// Watches the handlers, waits for the reason to end and carries it out.
pub(super) async fn closer(consumption: Arc<Consumption>) {
    tokio::select! {
        () = close(&consumption) => {}
        never = watch_handlers(&consumption) => match never {},
    }
}

async fn close(consumption: &Arc<Consumption>) {
    let grace = consumption.ending.wanted(&consumption.member).await;
    let report = run(consumption, grace).await;
    consumption.member.enter(Phase::Stopped);
    consumption.member.report(EventKind::Drained {
        report: MemberReport::Consumer(report.clone()),
    });
    consumption.ending.ended(report);
}

async fn run(consumption: &Arc<Consumption>, grace: Duration) -> ShutdownReport {
    let deadline = Instant::now() + grace;
    let stats = &consumption.stats;
    let settled = || stats.acked.get() + stats.retried.get() + stats.dead_lettered.get();
    let (settled_before, handed_before) = (settled(), stats.handed_back.get());
    let given_up = || stats.abandoned.get() + stats.expired.get();
    let (given_up_before, cancelled_before) = (given_up(), stats.cancelled_polls.get());
    tracing::info!(group = %consumption.role.group, ?grace, "consumer shuts down");
    consumption.draining.cancel();
    consumption.member.enter(Phase::Draining);
    consumption.polls.close();
    let report = |in_time| ShutdownReport {
        settled: settled() - settled_before,
        handed_back: stats.handed_back.get() - handed_before,
        abandoned: given_up() - given_up_before
            + u64::try_from(consumption.leases.open()).unwrap_or(u64::MAX),
        cancelled_polls: stats.cancelled_polls.get() - cancelled_before,
        in_time,
    };
    let drained = async {
        consumption.polls.wait().await;
        consumption.leases.all_others_ended().await;
        let but_for_callers = ShutdownReport {
            abandoned: given_up() - given_up_before,
            ..report(true)
        };
        consumption.nearly_ended.send_replace(Some(but_for_callers));
        consumption.leases.all_ended().await;
    };
    let in_time = tokio::time::timeout_at(deadline, drained).await.is_ok();
    let last = Instant::now() + LAST_STEPS;
    stop_queues(consumption).await;
    // The handlers that were cut off have dropped their deliveries, which go back now.
    let _ = tokio::time::timeout(GIVING_BACK, consumption.leases.all_ended()).await;
    consumption.member.leave(last).await;
    let report = report(in_time);
    tracing::info!(group = %consumption.role.group, ?report, "consumer is shut down");
    report
}

/// The shutdown as a handler of the consumer asks for it: waits for everything but that handler.
pub(super) async fn shutdown_by_handler(
    consumption: &Consumption,
    grace: Duration,
) -> ShutdownReport {
    let _caller = consumption.leases.caller();
    consumption.ending.want(grace);
    let mut report = consumption.nearly_ended.subscribe();
    // When the time is over this handler is dropped, and nobody gets an answer.
    let told = report.wait_for(Option::is_some).await;
    told.ok()
        .and_then(|report| report.clone())
        .unwrap_or_default()
}

async fn stop_queues(consumption: &Consumption) {
    let stops = consumption
        .queue_controls()
        .into_iter()
        .map(|control| async move {
            control.stop(Stop::Within(Duration::ZERO)).await;
        });
    let all = futures::future::join_all(stops);
    // A blocked thread answers late; the consumer does not wait for it.
    let _ = tokio::time::timeout(Duration::from_millis(200), all).await;
    consumption.queues().clear();
}

/// The handle was dropped: receives no more, and takes leave without waiting for anything.
pub(super) fn abandon(consumption: &Consumption) {
    if consumption.ending.want(Duration::ZERO) {
        let group = &consumption.role.group;
        tracing::warn!(%group, "consumer dropped without shutdown, it stops receiving");
    }
}
