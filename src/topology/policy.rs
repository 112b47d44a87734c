//! What a supervisor does when a child ends: plain values.

use std::{ops::Range, time::Duration};

use super::Exit;
use crate::model::time::A_YEAR;

/// Whether a child that ended is started again.
///
/// | it ended because it… | `Permanent` | `Transient` | `Temporary` |
/// | --- | --- | --- | --- |
/// | was done ([`Exit::Normal`]) | restart | end | end |
/// | was told to stop ([`Exit::Shutdown`]) | end | end | end |
/// | reported a failure ([`Exit::Failed`]) | restart | restart | end |
/// | panicked ([`Exit::Panicked`]) | restart | restart | end |
/// | did not answer ([`Exit::Unresponsive`]) | restart | restart | end |
///
/// A program built with `panic = "abort"` ends with its first panic, whatever is chosen here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Restart {
    /// Always, unless it was told to stop. The default.
    #[default]
    Permanent,
    /// Only after something went wrong.
    Transient,
    /// Never.
    Temporary,
}

impl Restart {
    /// The table above.
    #[must_use]
    pub fn restarts_after(self, exit: &Exit) -> bool {
        match (self, exit) {
            (Self::Temporary, _) | (_, Exit::Shutdown) => false,
            (Self::Permanent, _) => true,
            (Self::Transient, exit) => exit.is_failure(),
        }
    }
}

/// Which siblings are restarted with a child.
///
/// | strategy | restarted with child *i* of *n*, in start order |
/// | --- | --- |
/// | `OneForOne` | none |
/// | `OneForAll` | all |
/// | `RestForOne` | those that were started after *i* |
///
/// The siblings are stopped in reverse start order, then all are started in start order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// Children do not depend on each other. The default.
    #[default]
    OneForOne,
    /// Every child depends on every other.
    OneForAll,
    /// A child depends on those before it.
    RestForOne,
}

impl Strategy {
    /// The children that go down with child `failed` of `count`, itself included.
    #[must_use]
    pub fn affected(self, failed: usize, count: usize) -> Range<usize> {
        match self {
            Self::OneForOne => failed..failed + 1,
            Self::OneForAll => 0..count,
            Self::RestForOne => failed..count,
        }
    }
}

/// How often a restart is worth trying: a supervisor gives up at the first failure that would
/// make it *more* than `restarts` restarts `within` this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Intensity {
    /// Restarts allowed in the window. 0: the first failure is the last.
    pub restarts: u32,
    /// Length of the sliding window.
    pub within: Duration,
}

impl Default for Intensity {
    /// 5 restarts in 60 s.
    fn default() -> Self {
        Self {
            restarts: 5,
            within: Duration::from_secs(60),
        }
    }
}

/// How a child is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// Dropped where it stands, without its `stopping` and `stopped` hooks.
    Now,
    /// Its `stopping` hook runs, and it has this long to end, at most a year. Then as
    /// [`Stop::Now`].
    Within(Duration),
}

impl Stop {
    /// The time it gives, at most a year.
    #[must_use]
    pub fn limit(self) -> Duration {
        match self {
            Self::Now => Duration::ZERO,
            // Beyond a year an instant could overflow.
            Self::Within(limit) => limit.min(A_YEAR),
        }
    }
}

impl Default for Stop {
    /// Within 5 s.
    fn default() -> Self {
        Self::Within(Duration::from_secs(5))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Exit, Restart,
        Restart::{Permanent, Temporary, Transient},
        Stop, Strategy,
    };
    use std::time::Duration;

    #[test]
    fn no_stop_takes_longer_than_a_year() {
        let limit = Stop::Within(Duration::MAX).limit();
        assert_eq!(limit, Duration::from_secs(365 * 24 * 3600));
    }

    /// One test per cell of the table in the documentation of `Restart`.
    macro_rules! cells {
        ($($name:ident: $policy:ident, $exit:expr => $restarts:literal;)*) => {$(
            #[test]
            fn $name() {
                assert_eq!(Restart::$policy.restarts_after(&$exit), $restarts);
            }
        )*};
    }

    cells! {
        permanent_restarts_when_done: Permanent, Exit::Normal => true;
        permanent_ends_when_told_to_stop: Permanent, Exit::Shutdown => false;
        permanent_restarts_after_a_failure: Permanent, Exit::Failed("f".into()) => true;
        permanent_restarts_after_a_panic: Permanent, Exit::Panicked("p".into()) => true;
        permanent_restarts_when_unresponsive: Permanent, Exit::Unresponsive => true;
        transient_ends_when_done: Transient, Exit::Normal => false;
        transient_ends_when_told_to_stop: Transient, Exit::Shutdown => false;
        transient_restarts_after_a_failure: Transient, Exit::Failed("f".into()) => true;
        transient_restarts_after_a_panic: Transient, Exit::Panicked("p".into()) => true;
        transient_restarts_when_unresponsive: Transient, Exit::Unresponsive => true;
        temporary_ends_when_done: Temporary, Exit::Normal => false;
        temporary_ends_when_told_to_stop: Temporary, Exit::Shutdown => false;
        temporary_ends_after_a_failure: Temporary, Exit::Failed("f".into()) => false;
        temporary_ends_after_a_panic: Temporary, Exit::Panicked("p".into()) => false;
        temporary_ends_when_unresponsive: Temporary, Exit::Unresponsive => false;
    }

    #[test]
    fn a_strategy_names_the_siblings_that_go_down_together() {
        assert_eq!(Strategy::OneForOne.affected(1, 4), 1..2);
        assert_eq!(Strategy::OneForAll.affected(1, 4), 0..4);
        assert_eq!(Strategy::RestForOne.affected(1, 4), 1..4);
        assert_eq!(Strategy::RestForOne.affected(3, 4), 3..4);
    }

    #[test]
    fn the_default_is_to_restart_alone_and_always() {
        assert_eq!(Restart::default(), Permanent);
        assert_ne!(Restart::default(), Transient);
        assert_ne!(Restart::default(), Temporary);
        assert_eq!(Strategy::default(), Strategy::OneForOne);
    }
}
