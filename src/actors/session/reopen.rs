//! When a telemetry stream is opened again.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::delays::{Delays, DelaysState};

/// Streams of one endpoint are opened at most once in this time.
const APART: Duration = Duration::from_secs(1);
/// A stream that lived so long was a good one: the back-off starts anew.
const GOOD: Duration = Duration::from_secs(10);

/// Back-off between the end of a stream and the next: 100 ms to 1 s with jitter, never more than
/// one open a second.
#[derive(Debug)]
pub(super) struct Reopening {
    delays: DelaysState,
    rng: fastrand::Rng,
    last_open: Option<Instant>,
}

impl Reopening {
    pub(super) fn new(rng: fastrand::Rng) -> Self {
        let delays = Delays::doubling(Duration::from_millis(100), APART);
        Self {
            delays: delays.start(),
            rng,
            last_open: None,
        }
    }

    pub(super) fn opened(&mut self, now: Instant) {
        self.last_open = Some(now);
    }

    /// How long to wait after a stream that ended now.
    pub(super) fn wait(&mut self, now: Instant) -> Duration {
        let lived = self
            .last_open
            .map_or(Duration::ZERO, |opened| now.duration_since(opened));
        if lived >= GOOD {
            self.delays.reset();
        }
        self.delays
            .next(&mut self.rng)
            .max(APART.saturating_sub(lived))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn streams_open_at_most_once_a_second_however_they_end() {
        let mut reopening = Reopening::new(fastrand::Rng::with_seed(1));
        let mut now = Instant::now();
        for lived in [0, 10, 400, 999, 1_000, 9_000] {
            reopening.opened(now);
            let end = now + Duration::from_millis(lived);
            let next = end + reopening.wait(end);
            assert!(
                next - now >= APART,
                "lived {lived} ms, reopened after {:?}",
                next - now
            );
            assert!(
                next - end <= APART,
                "never later than a second after the end"
            );
            now = next;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_lived_ten_seconds_starts_the_back_off_anew() {
        let mut reopening = Reopening::new(fastrand::Rng::with_seed(1));
        let now = Instant::now();
        for _ in 0..8 {
            reopening.opened(now);
            reopening.wait(now + Duration::from_secs(5));
        }
        assert!(
            reopening.wait(now + Duration::from_secs(5)) >= APART / 2,
            "it had grown"
        );
        assert!(reopening.wait(now + GOOD) <= Duration::from_millis(100));
    }
}
