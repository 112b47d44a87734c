//! Whether a thread still runs its tasks.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::sleep;

/// Looks, without a beat between them, after which a thread counts as blocked.
const LOOKS: u32 = 5;

/// The pulse of one thread, which beats there and is watched from another.
///
/// Time is counted in looks, so that a process that was suspended as a whole raises no alarm.
#[derive(Debug)]
pub(crate) struct Pulse {
    beats: AtomicU64,
    /// From one look to the next.
    every: Duration,
}

impl Pulse {
    /// A thread counts as blocked after this time without a beat.
    pub(super) fn new(blocked_after: Duration) -> Arc<Self> {
        Arc::new(Self {
            beats: AtomicU64::new(0),
            every: (blocked_after / LOOKS).max(Duration::from_millis(1)),
        })
    }

    /// Beats for ever, on the thread that is watched.
    pub(super) async fn beat(&self) -> Infallible {
        loop {
            self.beats.fetch_add(1, Ordering::Relaxed);
            sleep(self.every / 2).await;
        }
    }

    /// Waits until the pulse has stopped: for how long. Cancel safe.
    pub(crate) async fn stopped(&self) -> Duration {
        let (mut last, mut missed) = (self.beats(), 0);
        loop {
            sleep(self.every).await;
            let beats = self.beats();
            missed = if beats == last { missed + 1 } else { 0 };
            last = beats;
            if missed == LOOKS {
                return self.every * missed;
            }
        }
    }

    /// Waits for the next beat. Cancel safe.
    pub(crate) async fn again(&self) {
        let last = self.beats();
        while self.beats() == last {
            sleep(self.every).await;
        }
    }

    fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pulse_that_stops_is_noticed_in_time_and_so_is_the_next_beat() {
        let pulse = Pulse::new(Duration::from_secs(5));
        let beating = async {
            tokio::select! {
                never = pulse.beat() => match never {},
                () = sleep(Duration::from_secs(100)) => {}
            }
        };
        let begun = Instant::now();
        let (silent, ()) = tokio::join!(pulse.stopped(), beating);
        assert_eq!(silent, Duration::from_secs(5));
        let after = begun.elapsed();
        assert!(
            after >= Duration::from_secs(104) && after <= Duration::from_secs(107),
            "{after:?}"
        );
        let again = pulse.again();
        tokio::pin!(again);
        assert!((&mut again).now_or_never().is_none());
        tokio::select! {
            () = again => {}
            never = pulse.beat() => match never {},
        }
    }
}
