//! Time: tokio's clock, and a wall clock that moves with it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost_types::Timestamp;
use tokio::time::Instant;

/// The wall clock is read once, at the start; from then on it advances with tokio's clock, so
/// that a paused runtime moves both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    epoch_at_start: Duration,
}

impl Clock {
    pub(crate) fn starting_at(wall: SystemTime) -> Self {
        Self {
            started: Instant::now(),
            epoch_at_start: wall.duration_since(UNIX_EPOCH).unwrap_or_default(),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Milliseconds since the epoch.
    pub(crate) fn millis(&self) -> i64 {
        saturating_millis(self.epoch_at_start + self.elapsed())
    }

    /// The wall time of `instant`.
    pub(crate) fn wall(&self, instant: Instant) -> SystemTime {
        UNIX_EPOCH + self.epoch_at_start + instant.saturating_duration_since(self.started)
    }

    /// How long until the wall clock shows `millis`; zero when that is past.
    pub(crate) fn until(&self, millis: i64) -> Duration {
        let target = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
        target.saturating_sub(self.epoch_at_start + self.elapsed())
    }
}

fn saturating_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A duration in whole milliseconds.
pub(crate) fn millis_of(duration: Duration) -> i64 {
    saturating_millis(duration)
}

pub(crate) fn timestamp(millis: i64) -> Timestamp {
    Timestamp {
        seconds: millis.div_euclid(1000),
        nanos: i32::try_from(millis.rem_euclid(1000) * 1_000_000).unwrap_or_default(),
    }
}

/// Milliseconds of a protobuf timestamp, saturating.
pub(crate) fn timestamp_millis(timestamp: &Timestamp) -> i64 {
    timestamp
        .seconds
        .saturating_mul(1000)
        .saturating_add(i64::from(timestamp.nanos) / 1_000_000)
}

/// Milliseconds of a protobuf duration, saturating; negative ones stay negative.
pub(crate) fn proto_millis(duration: &prost_types::Duration) -> i64 {
    duration
        .seconds
        .saturating_mul(1000)
        .saturating_add(i64::from(duration.nanos) / 1_000_000)
}

pub(crate) fn proto_duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or_default(),
    }
}
