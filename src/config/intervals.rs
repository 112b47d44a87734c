//! Periods of the background work.

use std::time::Duration;

use super::check_duration;
use crate::Result;

/// Periods of the work a client does in the background.
///
/// The defaults are those of the official Java client. Each period counts from the end of one run
/// to the start of the next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Intervals {
    /// Heartbeat to every endpoint of the committed routes. Default: 10 s, the first at once.
    pub heartbeat: Duration,
    /// Settings to every endpoint of the committed routes. Default: 5 min.
    pub settings: Duration,
    /// Refresh of each topic's route. Default: 30 s, the first after 10 s.
    pub routes: Duration,
    /// Query of each topic's assignment by push consumers. Default: 5 s, the first at once.
    pub assignments: Duration,
    /// Check for idle channels. Default: 60 s, the first after 5 s.
    pub idle_check: Duration,
    /// How long a channel may be unused. Default: 30 min.
    pub idle_after: Duration,
    /// A line of statistics at debug level. Default: 60 s.
    pub statistics: Duration,
    /// How long the thread of the handlers may run no task until it counts as blocked, see
    /// [`ThreadBlocked`](crate::EventKind::ThreadBlocked). Default: 5 s.
    pub blocked_after: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(10),
            settings: Duration::from_secs(5 * 60),
            routes: Duration::from_secs(30),
            assignments: Duration::from_secs(5),
            idle_check: Duration::from_secs(60),
            idle_after: Duration::from_secs(30 * 60),
            statistics: Duration::from_secs(60),
            blocked_after: Duration::from_secs(5),
        }
    }
}

impl Intervals {
    pub(super) fn check(&self) -> Result<()> {
        for (name, value) in [
            ("intervals.heartbeat", self.heartbeat),
            ("intervals.settings", self.settings),
            ("intervals.routes", self.routes),
            ("intervals.assignments", self.assignments),
            ("intervals.idle_check", self.idle_check),
            ("intervals.idle_after", self.idle_after),
            ("intervals.statistics", self.statistics),
            ("intervals.blocked_after", self.blocked_after),
        ] {
            check_duration(name, value)?;
        }
        Ok(())
    }
}
