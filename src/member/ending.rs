//! The end of a producer or consumer: who wants it, and what came of it.

use std::time::Duration;

use tokio::{sync::watch, time::Instant};

use super::Member;
use crate::model::time::A_YEAR;

/// After the grace, cutting off and taking leave take no longer than this.
const AFTER_GRACE: Duration = Duration::from_secs(2);

/// The end of one producer or consumer, with its report. It ends once.
///
/// A task that was started with it carries the end out, so that an end needs nothing of the
/// thread that asks for it, and goes on when that one no longer waits.
#[derive(Debug, Default)]
pub(crate) struct Ending<R> {
    /// What whoever was first gives.
    wanted: watch::Sender<Option<Grace>>,
    report: watch::Sender<Option<R>>,
}

/// The time that what is under way may still take, at most a year.
#[derive(Debug, Clone, Copy)]
struct Grace {
    given: Duration,
    until: Instant,
}

impl Grace {
    fn new(given: Duration) -> Self {
        // Beyond a year an instant could overflow.
        let given = given.min(A_YEAR);
        Self {
            given,
            until: Instant::now() + given,
        }
    }
}

impl<R: Clone + Default> Ending<R> {
    /// Has it end; says whether this is the first who wants that.
    pub(crate) fn want(&self, grace: Duration) -> bool {
        self.wanted.send_if_modified(|wanted| {
            let first = wanted.is_none();
            wanted.get_or_insert_with(|| Grace::new(grace));
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
        grace.map(|grace| grace.given).unwrap_or_default()
    }

    /// It has ended.
    pub(crate) fn ended(&self, report: R) {
        self.report.send_replace(Some(report));
    }

    /// Has it end and waits for the report. The grace of whoever was first counts: others wait
    /// for that end, whatever they give, and get the same report. Cancel safe.
    pub(crate) async fn end(&self, grace: Duration) -> R {
        self.want(grace);
        let until = self.wanted.borrow().map(|grace| grace.until);
        let limit = until.unwrap_or_else(Instant::now) + AFTER_GRACE;
        let mut report = self.report.subscribe();
        let waited = tokio::time::timeout_at(limit, report.wait_for(Option::is_some)).await;
        // Missing only where the client's thread is blocked or gone.
        waited
            .ok()
            .and_then(|report| report.ok()?.clone())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_grace_without_end_is_one_of_a_year() {
        let ending = Ending::<u64>::default();
        let started = Instant::now();
        assert_eq!(ending.end(Duration::MAX).await, 0, "nobody ever reports");
        assert!(started.elapsed() <= A_YEAR + AFTER_GRACE + Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_less_patient_than_the_first_gets_the_report_all_the_same() {
        let ending = Arc::new(Ending::<u64>::default());
        assert!(ending.want(Duration::from_secs(30)), "the first");
        let carried_out = ending.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(29)).await;
            carried_out.ended(7);
        });
        assert_eq!(ending.end(Duration::ZERO).await, 7);
    }
}
