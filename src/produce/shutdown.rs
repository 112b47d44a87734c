//! The end of a producer: shut down, undone or just dropped.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout, timeout_at};

use super::publication::Publication;
use crate::{
    member::Phase,
    topology::{EventKind, MemberReport},
};

/// After the grace, cutting off and taking leave may take this long together.
const LAST_STEPS: Duration = Duration::from_millis(900);
/// How long sends that were cut off may take to end; only a blocked thread needs longer.
const CUTTING: Duration = Duration::from_millis(200);

/// What became of the sends of a producer that was shut down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProducerShutdownReport {
    /// Sends that ended during the shutdown by themselves, well or not.
    pub finished: u64,
    /// Sends that were cut off. Whether they are stored is unknown.
    pub cut_off: u64,
    /// Whether everything ended within the grace.
    pub in_time: bool,
}

/// Waits for the reason to end and carries it out.
pub(super) async fn closer(publication: Arc<Publication>) {
    let grace = publication.ending.wanted(&publication.member).await;
    let report = run(&publication, grace).await;
    publication.member.enter(Phase::Stopped);
    publication.member.report(EventKind::Drained {
        report: MemberReport::Producer(report.clone()),
    });
    publication.ending.ended(report);
}

/// The handle was dropped: takes leave without waiting for anything.
pub(super) fn abandon(publication: &Publication) {
    if publication.ending.want(Duration::ZERO) {
        tracing::warn!(member = %publication.member.path, "producer dropped without shutdown");
    }
}

async fn run(publication: &Arc<Publication>, grace: Duration) -> ProducerShutdownReport {
    let Publication {
        member,
        stats,
        in_flight,
        ..
    } = &**publication;
    in_flight.close();
    member.enter(Phase::Draining);
    let deadline = Instant::now() + grace;
    let ended = || stats.sent.get() + stats.failed.get();
    let before = ended();
    tracing::info!(member = %member.path, ?grace, "producer shuts down");
    let in_time = timeout_at(deadline, in_flight.ended()).await.is_ok();
    let last = Instant::now() + LAST_STEPS;
    in_flight.cut.cancel();
    // A send that nobody polls cannot end; the producer does not wait for it.
    let _ = timeout(CUTTING, in_flight.ended()).await;
    member.leave(last).await;
    let cut_off = stats.cut_off.get();
    let report = ProducerShutdownReport {
        finished: (ended() - before).saturating_sub(cut_off),
        cut_off,
        in_time,
    };
    tracing::info!(member = %member.path, ?report, "producer is shut down");
    report
}
