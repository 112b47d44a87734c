//! Growing waits between the tries of a client's own calls.

use std::time::Duration;

/// Each wait is `factor` as long as the one before, from `first` up to `max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Delays {
    pub(crate) first: Duration,
    pub(crate) max: Duration,
    pub(crate) factor: f64,
}

impl Delays {
    pub(crate) const fn doubling(first: Duration, max: Duration) -> Self {
        Self {
            first,
            max,
            factor: 2.0,
        }
    }

    pub(crate) const fn start(self) -> DelaysState {
        DelaysState {
            delays: self,
            failures: 0,
        }
    }

    fn after(&self, failures: i32) -> Duration {
        let seconds = self.first.as_secs_f64() * self.factor.max(1.0).powi(failures);
        Duration::try_from_secs_f64(seconds)
            .unwrap_or(self.max)
            .min(self.max)
    }
}

/// How far one caller has come.
#[derive(Debug, Clone)]
pub(crate) struct DelaysState {
    delays: Delays,
    failures: i32,
}

impl DelaysState {
    /// The wait before the next try: between half and all of what the growth says, so that
    /// clients which failed together do not come back together, yet none comes back at once.
    pub(crate) fn next(&mut self, rng: &mut fastrand::Rng) -> Duration {
        let whole = self.delays.after(self.failures);
        self.failures = self.failures.saturating_add(1);
        whole.mul_f64(0.5 + rng.f64() / 2.0).min(whole)
    }

    /// After a success the waits start anew.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_grow_to_the_longest_and_start_anew_after_a_success() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut state = Delays::doubling(SECOND, 8 * SECOND).start();
        for whole in [1, 2, 4, 8, 8, 8] {
            let wait = state.next(&mut rng);
            assert!(
                whole * SECOND / 2 <= wait && wait <= whole * SECOND,
                "{whole}: {wait:?}"
            );
        }
        state.reset();
        assert!(state.next(&mut rng) <= SECOND);
    }

    #[test]
    fn two_clients_do_not_wait_alike() {
        let waits = |seed| {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut state = Delays::doubling(SECOND, 60 * SECOND).start();
            [(); 5].map(|()| state.next(&mut rng))
        };
        assert_ne!(waits(1), waits(2));
        assert_eq!(waits(1), waits(1), "but a seed decides them");
    }

    proptest! {
        #[test]
        fn no_wait_is_over_the_longest_nor_under_half_of_the_first(
            first in 0..100_000_u64, more in 0..u64::MAX / 2, factor in any::<f64>(),
            seed: u64, failures in 0..i32::MAX,
        ) {
            let first = Duration::from_millis(first);
            let max = first + Duration::from_millis(more);
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut state = DelaysState { delays: Delays { first, max, factor }, failures };
            for _ in 0..3 {
                let wait = state.next(&mut rng);
                prop_assert!(first.mul_f64(0.499) <= wait && wait <= max, "{wait:?}");
            }
        }
    }
}
