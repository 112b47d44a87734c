//! The handlers of a consumer that run right now, and which of them take too long.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use tokio::time::Instant;

use super::Delivery;

/// A table of the handlers that run. It is only written to for each delivery; whoever wants to
/// know looks at it from time to time, so that no delivery needs a timer.
#[derive(Debug, Default)]
pub(crate) struct RunningHandlers {
    table: Mutex<Table>,
    /// The place of the handler that is being polled, counted from 1; 0 for none. All handlers of
    /// a consumer are polled by one thread.
    polled: AtomicUsize,
}

#[derive(Debug, Default)]
struct Table {
    /// As many as ran at once.
    places: Vec<Option<Running>>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct Running {
    delivery: Delivery,
    since: Instant,
    reported: bool,
}

impl RunningHandlers {
    /// A handler begins; it runs until the guard is dropped.
    pub(super) fn enter(&self, delivery: Delivery) -> Entered<'_> {
        let running = Some(Running {
            delivery,
            since: Instant::now(),
            reported: false,
        });
        let mut table = self.table();
        let free = table.free.pop();
        let place = match free.and_then(|at| Some((at, table.places.get_mut(at)?))) {
            Some((at, place)) => {
                *place = running;
                at
            }
            None => {
                table.places.push(running);
                table.places.len() - 1
            }
        };
        drop(table);
        Entered {
            handlers: self,
            place,
        }
    }

    /// The handlers that have run for this long and were not told of yet, with their time.
    pub(super) fn newly_slow(&self, limit: Duration) -> Vec<(Delivery, Duration)> {
        let now = Instant::now();
        let mut table = self.table();
        let running = table.places.iter_mut().flatten();
        running
            .filter_map(|running| {
                let elapsed = now.saturating_duration_since(running.since);
                let slow =
                    elapsed >= limit && !std::mem::replace(&mut running.reported, elapsed >= limit);
                slow.then(|| (running.delivery.clone(), elapsed))
            })
            .collect()
    }

    /// The delivery whose handler is being polled at this moment.
    pub(super) fn polled(&self) -> Option<Delivery> {
        let at = self.polled.load(Ordering::Acquire).checked_sub(1)?;
        let table = self.table();
        let running = table.places.get(at)?.as_ref()?;
        Some(running.delivery.clone())
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handler that runs.
#[derive(Debug)]
pub(super) struct Entered<'a> {
    handlers: &'a RunningHandlers,
    place: usize,
}

impl Entered<'_> {
    /// Runs one poll of it, which must not panic.
    pub(super) fn poll<T>(&self, poll: impl FnOnce() -> T) -> T {
        let polled = &self.handlers.polled;
        polled.store(self.place + 1, Ordering::Release);
        let result = poll();
        polled.store(0, Ordering::Release);
        result
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut table = self.handlers.table();
        let ended = table.places.get_mut(self.place).and_then(Option::take);
        table.free.push(self.place);
        // A delivery that is dropped may wake receive loops: not under the lock.
        drop(table);
        drop(ended);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use rocketmq_proto::v2 as pb;

    use super::*;
    use crate::consume::budget::Budget;

    fn delivery(id: &str) -> Delivery {
        let message = pb::Message {
            system_properties: Some(pb::SystemProperties {
                message_id: id.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let permit = Budget::new(9, 9).admit(0);
        Delivery::new("t".into(), message, bytes::Bytes::new(), permit)
    }

    fn slow(handlers: &RunningHandlers) -> Vec<String> {
        let slow = handlers.newly_slow(Duration::from_secs(10));
        slow.iter()
            .map(|(delivery, _)| delivery.message_id().to_owned())
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn each_slow_handler_is_told_of_once_and_places_are_used_again() {
        let handlers = RunningHandlers::default();
        let first = handlers.enter(delivery("a"));
        tokio::time::advance(Duration::from_secs(9)).await;
        let second = handlers.enter(delivery("b"));
        assert!(slow(&handlers).is_empty());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(slow(&handlers), ["a"]);
        assert!(slow(&handlers).is_empty());
        drop(first);
        let third = handlers.enter(delivery("c"));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(slow(&handlers), ["c", "b"]);
        drop((second, third));
        assert_eq!(handlers.table().places.len(), 2);
        assert!(handlers.table().places.iter().all(Option::is_none));
    }

    #[test]
    fn the_handler_that_is_polled_is_known_for_as_long() {
        let handlers = RunningHandlers::default();
        let _other = handlers.enter(delivery("a"));
        let running = handlers.enter(delivery("b"));
        assert!(handlers.polled().is_none());
        let seen = running.poll(|| handlers.polled().unwrap());
        assert_eq!(seen.message_id(), "b");
        assert!(handlers.polled().is_none());
    }
}
