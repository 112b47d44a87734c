//! How long a child waits before it is started again.

use std::time::Duration;

use crate::model::time::A_YEAR;

/// Exponential back-off with jitter, for the restarts of one child.
///
/// | setting | default | meaning |
/// | --- | --- | --- |
/// | `min` | 100 ms | delay before the first restart |
/// | `max` | 10 s | no delay is ever longer |
/// | `factor` | 2 | each delay is this many times the one before |
/// | `jitter` | 0.2 | random share, 0 to 1, by which a delay may be *shortened* |
/// | `reset_after` | 10 s | a child that ran this long starts again at `min` |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    factor: f64,
    jitter: f64,
    reset_after: Duration,
}

impl Backoff {
    /// Delays from `min` to `max`, each at most a year; a `max` below `min` counts as `min`. The
    /// rest as by default.
    #[must_use]
    pub fn new(min: Duration, max: Duration) -> Self {
        Self {
            min: min.min(A_YEAR),
            max: max.max(min).min(A_YEAR),
            factor: 2.0,
            jitter: 0.2,
            reset_after: Duration::from_secs(10),
        }
    }

    /// Sets the growth from one delay to the next. Below 1, or not a number, counts as 1.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        // `max` prefers the number over a NaN.
        self.factor = factor.max(1.0);
        self
    }

    /// Sets the share by which a delay may be shortened, 0 (none) to 1. Others count as the
    /// nearest of these, not a number as 0.
    #[must_use]
    pub fn jitter(mut self, share: f64) -> Self {
        self.jitter = if share.is_nan() {
            0.0
        } else {
            share.clamp(0.0, 1.0)
        };
        self
    }

    /// Sets how long a child has to run until its next restart counts as the first again.
    #[must_use]
    pub fn reset_after(mut self, ran: Duration) -> Self {
        self.reset_after = ran;
        self
    }

    /// The delay before restart number `attempt` in a row, counted from 0.
    pub(crate) fn delay(&self, attempt: u32, rng: &mut fastrand::Rng) -> Duration {
        let exponent = i32::try_from(attempt).unwrap_or(i32::MAX);
        // Finite, for 0 times infinity is not a number.
        let growth = self.factor.powi(exponent).min(f64::MAX);
        let grown = self.min.as_secs_f64() * growth;
        let capped = grown.min(self.max.as_secs_f64());
        let jittered = capped * (1.0 - self.jitter * rng.f64());
        Duration::try_from_secs_f64(jittered).map_or(self.max, |delay| delay.min(self.max))
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(10))
    }
}

/// The delays of one child: counts the restarts in a row.
#[derive(Debug, Clone)]
pub(crate) struct Delays {
    backoff: Backoff,
    in_a_row: u32,
}

impl Delays {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            in_a_row: 0,
        }
    }

    /// The next restart in a row, counted from 1, and the delay before it, for a child that ran
    /// this long.
    pub(crate) fn next(&mut self, ran: Duration, rng: &mut fastrand::Rng) -> (u32, Duration) {
        if ran >= self.backoff.reset_after {
            self.in_a_row = 0;
        }
        let delay = self.backoff.delay(self.in_a_row, rng);
        self.in_a_row = self.in_a_row.saturating_add(1);
        (self.in_a_row, delay)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Backoff, Delays};
    use proptest::prelude::*;

    const SHORT: Duration = Duration::ZERO;

    fn rng() -> fastrand::Rng {
        fastrand::Rng::with_seed(7)
    }

    #[test]
    fn no_delay_is_longer_than_a_year() {
        let mut delays = Delays::new(Backoff::new(Duration::MAX, Duration::MAX).jitter(0.0));
        let year = Duration::from_secs(365 * 24 * 3600);
        assert_eq!(delays.next(SHORT, &mut rng()), (1, year));
    }

    #[test]
    fn without_jitter_delays_double_up_to_the_cap() {
        let mut delays = Delays::new(Backoff::default().jitter(0.0));
        let mut rng = rng();
        let millis: Vec<_> = (0..9)
            .map(|_| delays.next(SHORT, &mut rng).1.as_millis())
            .collect();
        assert_eq!(
            millis,
            [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
        );
    }

    #[test]
    fn a_child_that_ran_well_starts_at_the_shortest_delay_again() {
        let mut delays = Delays::new(Backoff::default().jitter(0.0));
        let mut rng = rng();
        delays.next(SHORT, &mut rng);
        let nearly = Duration::from_millis(9_999);
        assert_eq!(
            delays.next(nearly, &mut rng),
            (2, Duration::from_millis(200))
        );
        let well = Duration::from_secs(10);
        assert_eq!(delays.next(well, &mut rng), (1, Duration::from_millis(100)));
    }

    #[test]
    fn the_same_seed_gives_the_same_delays_and_jitter_spreads_them() {
        let draw = |seed| {
            let mut rng = fastrand::Rng::with_seed(seed);
            Backoff::default().delay(3, &mut rng)
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    proptest! {
        #[test]
        fn no_delay_is_ever_above_max_nor_shortened_by_more_than_the_jitter(
            min in 0_u64..5_000, max in 0_u64..20_000, factor in -1.0..10.0_f64,
            jitter in -1.0..2.0_f64, attempt in any::<u32>(), seed in any::<u64>(),
        ) {
            let (min, max) = (Duration::from_millis(min), Duration::from_millis(max));
            let backoff = Backoff::new(min, max).factor(factor).jitter(jitter);
            let delay = backoff.delay(attempt, &mut fastrand::Rng::with_seed(seed));
            prop_assert!(delay <= max.max(min));
            let floor = min.mul_f64(1.0 - jitter.clamp(0.0, 1.0));
            prop_assert!(delay + Duration::from_nanos(1) >= floor);
        }
    }
}
