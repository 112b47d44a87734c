//! The end of a push consumer: drained, undone or just dropped.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::Instant};

use super::consumption::Consumption;
use crate::topology::Stop;

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
    /// Deliveries neither settled nor given back in time: the server makes them again.
    pub abandoned: u64,
    /// Receives that were cut off.
    pub cancelled_polls: u64,
    /// Whether everything ended within the grace.
    pub in_time: bool,
}

/// The end of a consumer: who wants it, and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// The grace that whoever was first gives.
    wanted: watch::Sender<Option<Duration>>,
    report: watch::Sender<Option<ShutdownReport>>,
}

impl Ending {
    /// Whether this is the first who wants the consumer to end.
    fn want(&self, grace: Duration) -> bool {
        self.wanted.send_if_modified(|wanted| {
            let first = wanted.is_none();
            wanted.get_or_insert(grace);
            first
        })
    }
}

/// Waits until somebody wants the consumer to end, or it failed for good, and carries that out.
/// Started with the consumer, so that an end needs nothing of the thread that asks for it.
pub(super) async fn closer(consumption: Arc<Consumption>) {
    let mut wanted = consumption.ending.wanted.subscribe();
    let grace = tokio::select! {
        grace = wanted.wait_for(Option::is_some) => grace.ok().and_then(|grace| *grace),
        _ = consumption.member.failed() => None,
    };
    consumption.ending.want(Duration::ZERO);
    let report = run(&consumption, grace.unwrap_or_default()).await;
    consumption.ending.report.send_replace(Some(report));
}

/// Shuts down once; whoever comes later waits for the same report.
pub(super) async fn shutdown(consumption: &Consumption, grace: Duration) -> ShutdownReport {
    consumption.ending.want(grace);
    let mut report = consumption.ending.report.subscribe();
    let limit = grace + Duration::from_secs(2);
    let waited = tokio::time::timeout(limit, report.wait_for(Option::is_some)).await;
    // Missing only where the client's thread is blocked or gone.
    waited
        .ok()
        .and_then(|report| report.ok()?.clone())
        .unwrap_or_default()
}

async fn run(consumption: &Arc<Consumption>, grace: Duration) -> ShutdownReport {
    let deadline = Instant::now() + grace;
    let stats = &consumption.stats;
    let settled = || stats.acked.get() + stats.retried.get() + stats.dead_lettered.get();
    let (settled_before, handed_before) = (settled(), stats.handed_back.get());
    tracing::info!(group = %consumption.role.group, ?grace, "consumer shuts down");
    consumption.draining.cancel();
    consumption.polls.close();
    let drained = async {
        consumption.polls.wait().await;
        consumption.leases.all_ended().await;
    };
    let in_time = tokio::time::timeout_at(deadline, drained).await.is_ok();
    let last = Instant::now() + LAST_STEPS;
    stop_queues(consumption).await;
    // The handlers that were cut off have dropped their deliveries, which go back now.
    let _ = tokio::time::timeout(GIVING_BACK, consumption.leases.all_ended()).await;
    consumption.member.leave(last).await;
    let report = ShutdownReport {
        settled: settled() - settled_before,
        handed_back: stats.handed_back.get() - handed_before,
        abandoned: u64::try_from(consumption.leases.open()).unwrap_or(u64::MAX),
        cancelled_polls: stats.cancelled_polls.get(),
        in_time,
    };
    tracing::info!(group = %consumption.role.group, ?report, "consumer is shut down");
    report
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

/// Undoes a start that failed.
pub(super) async fn undo(consumption: &Consumption) {
    shutdown(consumption, Duration::ZERO).await;
}

/// The handle was dropped: receives no more, and takes leave without waiting for anything.
pub(super) fn abandon(consumption: &Consumption) {
    if consumption.ending.want(Duration::ZERO) {
        let group = &consumption.role.group;
        tracing::warn!(%group, "consumer dropped without shutdown, it stops receiving");
    }
}
