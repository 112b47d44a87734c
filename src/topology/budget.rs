//! How many restarts are left.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::{Exit, Intensity, Restart};

/// What to do with a child that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Start it again.
    Restart,
    /// Its policy lets it end.
    End,
    /// It should be restarted, but failed too often.
    GiveUp,
}

/// The restarts of a sliding window, against an [`Intensity`].
#[derive(Debug)]
pub(crate) struct RestartBudget {
    intensity: Intensity,
    spent: VecDeque<Instant>,
}

impl RestartBudget {
    pub(crate) fn new(intensity: Intensity) -> Self {
        Self {
            intensity,
            spent: VecDeque::new(),
        }
    }

    /// Decides on a child that ended, and books the restart where it is one.
    pub(crate) fn judge(&mut self, restart: Restart, exit: &Exit, now: Instant) -> Verdict {
        if !restart.restarts_after(exit) {
            Verdict::End
        } else if self.spend(now) {
            Verdict::Restart
        } else {
            Verdict::GiveUp
        }
    }

    /// Books one restart; `false` when it is one too many.
    fn spend(&mut self, now: Instant) -> bool {
        let window = self.intensity.within;
        while let Some(&oldest) = self.spent.front() {
            if now.saturating_duration_since(oldest) <= window {
                break;
            }
            self.spent.pop_front();
        }
        let left =
            self.spent.len() < usize::try_from(self.intensity.restarts).unwrap_or(usize::MAX);
        if left {
            self.spent.push_back(now);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use tokio::time::Instant;

    use super::{Exit, Intensity, Restart, RestartBudget, Verdict};

    fn budget(restarts: u32, secs: u64) -> RestartBudget {
        RestartBudget::new(Intensity {
            restarts,
            within: Duration::from_secs(secs),
        })
    }

    fn panicked() -> Exit {
        Exit::Panicked("p".into())
    }

    #[test]
    fn it_gives_up_when_the_count_exceeds_the_intensity() {
        let (mut budget, now) = (budget(2, 60), Instant::now());
        let mut judge = || budget.judge(Restart::Permanent, &panicked(), now);
        assert_eq!(judge(), Verdict::Restart);
        assert_eq!(judge(), Verdict::Restart);
        assert_eq!(judge(), Verdict::GiveUp);
    }

    #[test]
    fn restarts_older_than_the_window_do_not_count() {
        let (mut budget, now) = (budget(1, 60), Instant::now());
        let mut judge = |secs| {
            let now = now + Duration::from_secs(secs);
            budget.judge(Restart::Permanent, &panicked(), now)
        };
        assert_eq!(judge(0), Verdict::Restart);
        assert_eq!(judge(60), Verdict::GiveUp);
        assert_eq!(judge(61), Verdict::Restart);
    }

    #[test]
    fn an_intensity_of_zero_gives_up_at_the_first_failure() {
        let verdict = budget(0, 60).judge(Restart::Permanent, &panicked(), Instant::now());
        assert_eq!(verdict, Verdict::GiveUp);
    }

    #[test]
    fn an_end_that_the_policy_allows_costs_nothing() {
        let (mut budget, now) = (budget(1, 60), Instant::now());
        for _ in 0..5 {
            let verdict = budget.judge(Restart::Transient, &Exit::Normal, now);
            assert_eq!(verdict, Verdict::End);
        }
        let verdict = budget.judge(Restart::Transient, &panicked(), now);
        assert_eq!(verdict, Verdict::Restart);
    }

    proptest! {
        #[test]
        fn no_window_ever_holds_more_restarts_than_allowed(
            restarts in 0_u32..6, gaps in prop::collection::vec(0_u64..30, 0..60),
        ) {
            let window = Duration::from_secs(60);
            let mut budget = budget(restarts, 60);
            let (mut now, mut granted) = (Instant::now(), Vec::new());
            for gap in gaps {
                now += Duration::from_secs(gap);
                if budget.judge(Restart::Permanent, &panicked(), now) == Verdict::Restart {
                    granted.push(now);
                }
                let recent = granted.iter().filter(|at| now - **at <= window).count();
                prop_assert!(recent <= restarts as usize);
                prop_assert!(budget.spent.len() <= restarts as usize);
            }
        }
    }
}
