//! The end of a producer or consumer: who wants it, and what came of it.

use std::time::Duration;

use tokio::sync::watch;

use super::Member;

/// After the grace, cutting off and taking leave take no longer than this.
const AFTER_GRACE: Duration = Duration::from_secs(2);

/// The end of one producer or consumer, with its report. It ends once.
///
/// A task that was started with it carries the end out, so that an end needs nothing of the
/// thread that asks for it, and goes on when that one no longer waits.
#[derive(Debug, Default)]
pub(crate) struct Ending<R> {
    /// The grace that whoever was first gives.
    wanted: watch::Sender<Option<Duration>>,
    report: watch::Sender<Option<R>>,
}

impl<R: Clone + Default> Ending<R> {
    /// Has it end; says whether this is the first who wants that.
    pub(crate) fn want(&self, grace: Duration) -> bool {
        self.wanted.send_if_modified(|wanted| {
            let first = wanted.is_none();
            wanted.get_or_insert(grace);
            first
        })
    }

    /// Waits until somebody wants the end, or the member has failed for good: the grace.
    pub(crate) async fn wanted(&self, member: &Member) -> Duration {
        let mut wanted = self.wanted.subscribe();
        let grace = tokio::select! {
            grace = wanted.wait_for(Option::is_some) => grace.ok().and_then(|grace| *grace),
            _ = member.failed() => None,
        };
        self.want(Duration::ZERO);
        grace.unwrap_or_default()
    }

    /// It has ended.
    pub(crate) fn ended(&self, report: R) {
        self.report.send_replace(Some(report));
    }

    /// Has it end and waits for the report; whoever comes later gets the same. Cancel safe.
    pub(crate) async fn end(&self, grace: Duration) -> R {
        self.want(grace);
        let mut report = self.report.subscribe();
        let limit = grace + AFTER_GRACE;
        let waited = tokio::time::timeout(limit, report.wait_for(Option::is_some)).await;
        // Missing only where the client's thread is blocked or gone.
        waited
            .ok()
            .and_then(|report| report.ok()?.clone())
            .unwrap_or_default()
    }
}
