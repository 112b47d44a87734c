//! How long a receive loop waits before its next receive.

use std::time::Duration;

use super::receive::Reception;
use crate::{
    ErrorKind,
    model::delays::{Delays, DelaysState},
};

/// An empty answer that came faster than this was no long poll.
const QUICK: Duration = Duration::from_secs(1);
/// After any failure but throttling at least so long: one receive a second and loop in an outage.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The longest wait of growing ones; half of it, which is the least it comes to, is a second.
const LONGEST: Duration = Duration::from_secs(2);

/// The pace of one receive loop.
#[derive(Debug)]
pub(super) struct Pace {
    throttled: DelaysState,
    failed: DelaysState,
    quick: DelaysState,
    rng: fastrand::Rng,
}

impl Pace {
    pub(super) fn new(rng: fastrand::Rng) -> Self {
        let from = |millis, max| Delays::doubling(Duration::from_millis(millis), max).start();
        Self {
            throttled: from(20, LONGEST),
            failed: from(100, AFTER_FAILURE),
            quick: from(10, LONGEST),
            rng,
        }
    }

    /// The wait after a receive that took so long.
    pub(super) fn wait(&mut self, reception: &Reception, took: Duration) -> Duration {
        match &reception.error {
            Some(error) if error.kind() == ErrorKind::Throttled => {
                self.throttled.next(&mut self.rng)
            }
            Some(_) => AFTER_FAILURE + self.failed.next(&mut self.rng),
            None if reception.messages == 0 && took < QUICK => self.quick.next(&mut self.rng),
            None => {
                self.throttled.reset();
                self.failed.reset();
                self.quick.reset();
                Duration::ZERO
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn failed(kind: ErrorKind) -> Reception {
        Reception {
            error: Some(Error::new(kind, "")),
            ..Reception::default()
        }
    }

    #[test]
    fn throttling_starts_at_twenty_milliseconds_and_failures_wait_a_second() {
        let mut pace = Pace::new(fastrand::Rng::with_seed(1));
        let took = Duration::from_millis(1);
        let first = pace.wait(&failed(ErrorKind::Throttled), took);
        assert!(first <= Duration::from_millis(20) && !first.is_zero());
        for _ in 0..20 {
            let wait = pace.wait(&failed(ErrorKind::Server), took);
            assert!(wait >= AFTER_FAILURE && wait <= 2 * AFTER_FAILURE);
            assert!(pace.wait(&failed(ErrorKind::Throttled), took) <= LONGEST);
        }
    }

    #[test]
    fn quick_empty_answers_slow_down_and_a_long_poll_goes_on_at_once() {
        let mut pace = Pace::new(fastrand::Rng::with_seed(1));
        let empty = Reception::default();
        let waits: Vec<_> = (0..12).map(|_| pace.wait(&empty, Duration::ZERO)).collect();
        assert!(waits[0] <= Duration::from_millis(10) && waits[11] >= Duration::from_millis(500));
        assert_eq!(pace.wait(&empty, Duration::from_secs(20)), Duration::ZERO);
        assert!(
            pace.wait(&empty, Duration::ZERO) <= Duration::from_millis(10),
            "reset"
        );
        let some = Reception {
            messages: 1,
            ..Reception::default()
        };
        assert_eq!(pace.wait(&some, Duration::ZERO), Duration::ZERO);
    }
}
