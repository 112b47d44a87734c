//! What a child can be told out of band: past its mailbox, from any thread.

use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::Duration,
};

use futures::task::AtomicWaker;

use super::{Exit, Stop};

/// One thing a child is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    /// End for good.
    Stop(Stop),
    /// End this generation for this cause; the policy decides what follows.
    Fail(Exit),
    Turn(Turn),
}

/// Orders of which only the latest counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// End this generation and start the next at once.
    Restart,
    /// End this generation and stay down until told more.
    Suspend,
    /// Start the next generation after a delay.
    Resume { attempt: u32, delay: Duration },
    /// Stay down for good, as the policy allows.
    End,
    /// Stay down for good, having failed too often.
    GiveUp,
}

/// The orders not obeyed yet: at most one of each kind, so it never grows.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pending: Mutex<Pending>,
    waker: AtomicWaker,
}

#[derive(Debug, Default)]
struct Pending {
    stop: Option<Stop>,
    failure: Option<Exit>,
    turn: Option<Turn>,
    #[cfg(feature = "test-hooks")]
    panic: bool,
}

impl Orders {
    pub(super) fn give(&self, order: Order) {
        {
            let mut pending = self.pending();
            match order {
                Order::Stop(stop) => {
                    let shorter = |earlier: &Stop| earlier.limit() <= stop.limit();
                    let earlier = pending.stop.filter(shorter);
                    pending.stop = Some(earlier.unwrap_or(stop));
                }
                Order::Fail(exit) => pending.failure = Some(exit),
                Order::Turn(turn) => pending.turn = Some(turn),
            }
        }
        self.waker.wake();
    }

    /// The most urgent order, taken out; where there is none, `waker` is woken by the next.
    pub(super) fn take(&self, waker: &Waker) -> Option<Order> {
        self.waker.register(waker);
        let mut pending = self.pending();
        if let Some(stop) = pending.stop.take() {
            return Some(Order::Stop(stop));
        }
        if let Some(exit) = pending.failure.take() {
            return Some(Order::Fail(exit));
        }
        pending.turn.take().map(Order::Turn)
    }

    /// Waits for an order.
    pub(super) async fn next(&self) -> Order {
        poll_fn(|cx| match self.take(cx.waker()) {
            Some(order) => Poll::Ready(order),
            None => Poll::Pending,
        })
        .await
    }

    /// The failure reported last, taken out.
    pub(super) fn take_failure(&self) -> Option<Exit> {
        self.pending().failure.take()
    }

    /// Whether it was told to give up, taken out.
    pub(super) fn take_give_up(&self) -> bool {
        let turn = &mut self.pending().turn;
        turn.take_if(|turn| *turn == Turn::GiveUp).is_some()
    }

    #[cfg(feature = "test-hooks")]
    pub(super) fn inject_panic(&self) {
        self.pending().panic = true;
        self.waker.wake();
    }

    /// Panics when a test asked for it.
    #[cfg(feature = "test-hooks")]
    pub(super) fn panic_if_injected(&self) {
        if std::mem::take(&mut self.pending().panic) {
            std::panic::resume_unwind(Box::new("injected panic"));
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        // Nothing can panic under this lock, so a poisoned one holds sound orders.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{task::Waker, time::Duration};

    use super::{Exit, Order, Orders, Stop, Turn};

    #[test]
    fn a_stop_passes_every_other_order() {
        let orders = Orders::default();
        orders.give(Order::Turn(Turn::Restart));
        orders.give(Order::Fail(Exit::Unresponsive));
        orders.give(Order::Stop(Stop::Now));
        let take = || orders.take(Waker::noop());
        assert_eq!(take(), Some(Order::Stop(Stop::Now)));
        assert_eq!(take(), Some(Order::Fail(Exit::Unresponsive)));
        assert_eq!(take(), Some(Order::Turn(Turn::Restart)));
        assert_eq!(take(), None);
    }

    #[test]
    fn the_shorter_of_two_stops_counts() {
        let orders = Orders::default();
        let secs = |secs| Stop::Within(Duration::from_secs(secs));
        for limit in [3, 1, 2] {
            orders.give(Order::Stop(secs(limit)));
        }
        assert_eq!(orders.take(Waker::noop()), Some(Order::Stop(secs(1))));
        assert_eq!(orders.take(Waker::noop()), None);
    }
}
