//! How much may be in flight.

use tokio::{
    sync::{Semaphore, SemaphorePermit, TryAcquireError},
    time::{Instant, timeout_at},
};
use tokio_util::{
    sync::CancellationToken, task::TaskTracker, task::task_tracker::TaskTrackerToken,
};

use crate::{Error, ErrorKind, Result};

/// Counts messages and bytes in flight, and makes who comes too much wait, first come, first
/// served.
#[derive(Debug)]
pub(crate) struct InFlight {
    messages: Semaphore,
    bytes: Semaphore,
    max_messages: usize,
    max_bytes: usize,
    tracker: TaskTracker,
    /// Cancelled when what is in flight shall end.
    pub(super) cut: CancellationToken,
}

/// The room of one message. Dropping it, with the send it belongs to, gives it back.
#[derive(Debug)]
pub(super) struct Room<'a> {
    _messages: SemaphorePermit<'a>,
    _bytes: SemaphorePermit<'a>,
    _token: TaskTrackerToken,
}

impl InFlight {
    pub(super) fn new(max_messages: usize, max_bytes: usize) -> Self {
        Self {
            messages: Semaphore::new(max_messages),
            bytes: Semaphore::new(max_bytes),
            max_messages,
            max_bytes,
            tracker: TaskTracker::new(),
            cut: CancellationToken::new(),
        }
    }

    /// Room for a body of so many bytes, if there is some right now.
    pub(super) fn try_enter(&self, bytes: usize) -> Result<Room<'_>> {
        let token = self.tracker.token();
        let messages = self
            .messages
            .try_acquire()
            .map_err(|error| self.refusal(error))?;
        let bytes = self
            .bytes
            .try_acquire_many(self.weight(bytes))
            .map_err(|error| self.refusal(error))?;
        Ok(Room {
            _messages: messages,
            _bytes: bytes,
            _token: token,
        })
    }

    /// Waits for room. Cancel safe: who no longer waits loses only its place.
    ///
    /// # Errors
    /// The producer is shut down, before or meanwhile.
    pub(super) async fn enter(&self, bytes: usize) -> Result<Room<'_>> {
        let token = self.tracker.token();
        let closed = |_| Error::closed("the producer");
        let messages = self.messages.acquire().await.map_err(closed)?;
        let bytes = self
            .bytes
            .acquire_many(self.weight(bytes))
            .await
            .map_err(closed)?;
        Ok(Room {
            _messages: messages,
            _bytes: bytes,
            _token: token,
        })
    }

    /// Waits for room until `deadline`.
    pub(super) async fn enter_by(&self, bytes: usize, deadline: Instant) -> Result<Room<'_>> {
        match timeout_at(deadline, self.enter(bytes)).await {
            Ok(entered) => entered,
            Err(_) => Err(self.refusal(TryAcquireError::NoPermits)),
        }
    }

    /// A body over the whole limit goes alone rather than never.
    fn weight(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.min(self.max_bytes)).unwrap_or(u32::MAX)
    }

    fn refusal(&self, error: TryAcquireError) -> Error {
        match error {
            TryAcquireError::Closed => Error::closed("the producer"),
            TryAcquireError::NoPermits => {
                let (messages, bytes) = self.used();
                Error::new(
                    ErrorKind::Full,
                    format!("{messages} messages with {bytes} bytes are in flight"),
                )
            }
        }
    }

    /// Messages and bytes in flight.
    pub(super) fn used(&self) -> (usize, usize) {
        (
            self.max_messages
                .saturating_sub(self.messages.available_permits()),
            self.max_bytes
                .saturating_sub(self.bytes.available_permits()),
        )
    }

    /// Lets nobody in any more, not those either who wait.
    pub(super) fn close(&self) {
        self.messages.close();
        self.bytes.close();
        self.tracker.close();
    }

    /// Waits until nothing is in flight; after [`close`](Self::close).
    pub(super) async fn ended(&self) {
        self.tracker.wait().await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::time::Duration;

    use futures::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_room_waits_in_turn_or_is_refused() {
        let limits = InFlight::new(2, 100);
        let (first, second) = (limits.try_enter(10).unwrap(), limits.try_enter(10).unwrap());
        assert_eq!(limits.used(), (2, 20));
        let refused = limits.try_enter(10).unwrap_err();
        assert!(refused.kind() == ErrorKind::Full && refused.is_definite());
        let mut third = Box::pin(limits.enter(10));
        let mut fourth = Box::pin(limits.enter(10));
        assert!(third.as_mut().now_or_never().is_none());
        assert!(fourth.as_mut().now_or_never().is_none());
        drop(first);
        assert!(fourth.as_mut().now_or_never().is_none(), "it came later");
        third.await.unwrap();
        drop((second, fourth));
        assert_eq!(limits.used(), (0, 0), "dropped sends give their room back");
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_count_too_and_a_body_over_the_limit_goes_alone() {
        let limits = InFlight::new(10, 100);
        let huge = limits.try_enter(1000).unwrap();
        let soon = Instant::now() + Duration::from_secs(1);
        let late = limits.enter_by(1, soon).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Full);
        drop(huge);
        assert!(limits.enter_by(1, soon).await.is_ok());
        assert_eq!(limits.used(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn closing_refuses_who_comes_and_who_waits_and_ends_with_the_last() {
        let limits = InFlight::new(1, 100);
        let last = limits.try_enter(1).unwrap();
        let mut waiting = Box::pin(limits.enter(1));
        assert!(waiting.as_mut().now_or_never().is_none());
        limits.close();
        for refused in [waiting.await.unwrap_err(), limits.try_enter(1).unwrap_err()] {
            assert!(refused.kind() == ErrorKind::Closed && refused.is_definite());
        }
        assert!(limits.ended().now_or_never().is_none());
        drop(last);
        limits.ended().await;
    }
}
