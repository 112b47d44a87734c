//! The handle of a supervised actor: its orders and its state.

use std::{
    fmt,
    pin::pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use tokio::{runtime::Handle, sync::watch};

use super::{
    Exit, Stop,
    inside::is_polled,
    order::{Order, Orders, Turn},
    tasks::{Generation, Lifespan},
};
use crate::client::with_timers;

/// Where a supervised actor is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChildState {
    /// A generation is being started: it has not got through its `started` hook yet.
    Starting,
    /// It is up.
    Running,
    /// It ended and will be started after this delay; its mailbox waits.
    Restarting {
        /// Why it ended; [`Exit::Shutdown`] when it only follows a sibling.
        cause: Exit,
        /// The whole delay, counted from the end.
        delay: Duration,
    },
    /// It ended, and its group has not decided yet; its mailbox waits.
    Down(Exit),
    /// It ended for good.
    Stopped(Exit),
    /// It failed more often than allowed, the last time by this, and stays down.
    GaveUp(Exit),
}

impl ChildState {
    /// How it ended, once it has ended for good.
    #[must_use]
    pub fn end(&self) -> Option<&Exit> {
        match self {
            Self::Stopped(exit) | Self::GaveUp(exit) => Some(exit),
            _ => None,
        }
    }
}

impl fmt::Display for ChildState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => write!(out, "starting"),
            Self::Running => write!(out, "running"),
            Self::Restarting { cause, delay } => {
                write!(out, "restarting {delay:?} after it {cause}")
            }
            Self::Down(exit) => write!(out, "down: {exit}"),
            Self::Stopped(exit) => write!(out, "stopped: {exit}"),
            Self::GaveUp(exit) => write!(out, "gave up: {exit}"),
        }
    }
}

/// A state with its counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) state: ChildState,
    pub(crate) generation: Generation,
    pub(crate) restarts: u64,
}

/// What handle, scope and supervising future share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) path: Arc<str>,
    pub(super) orders: Orders,
    lifespan: Mutex<Lifespan>,
    /// Where it runs, once it does.
    runtime: OnceLock<Handle>,
}

impl Shared {
    pub(super) fn new(path: Arc<str>) -> Self {
        let lifespan = Mutex::new(Lifespan::default().next());
        Self {
            path,
            orders: Orders::default(),
            lifespan,
            runtime: OnceLock::new(),
        }
    }

    pub(super) fn lifespan(&self) -> Lifespan {
        let lifespan = self.lifespan.lock();
        lifespan.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Called where it runs.
    pub(super) fn runs_here(&self) {
        // Told once, and it never moves.
        let _ = self.runtime.set(Handle::current());
    }

    pub(super) fn next_lifespan(&self) {
        let mut lifespan = self.lifespan.lock().unwrap_or_else(PoisonError::into_inner);
        *lifespan = lifespan.next();
    }
}

/// The control of one supervised actor, whatever its type. Clones control the same one; dropping
/// them all changes nothing.
///
/// Orders go past the mailbox and work from any thread. They reach an actor between two polls: a
/// handler that blocks its thread, or senders that never let the mailbox run dry for one moment,
/// hold them back.
#[derive(Debug, Clone)]
pub(crate) struct ChildControl {
    shared: Arc<Shared>,
    status: watch::Receiver<Status>,
}

impl ChildControl {
    /// How much longer than its limit a stop is waited for before the thread counts as blocked.
    const GRACE: Duration = Duration::from_secs(2);

    pub(super) fn new(shared: Arc<Shared>, status: watch::Receiver<Status>) -> Self {
        Self { shared, status }
    }

    /// The actor's place in the tree.
    pub(crate) fn path(&self) -> &Arc<str> {
        &self.shared.path
    }

    /// Where it is right now.
    pub(crate) fn state(&self) -> ChildState {
        self.status.borrow().state.clone()
    }

    /// How many times it has been restarted.
    pub(crate) fn restarts(&self) -> u64 {
        self.status.borrow().restarts
    }

    /// Which generation runs, or ran last.
    pub(crate) fn generation(&self) -> Generation {
        self.status.borrow().generation
    }

    /// A subscription to state and counters.
    pub(crate) fn watch(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Tells it to end for good. Of several such orders the one that ends first counts.
    pub(crate) fn request_stop(&self, stop: Stop) {
        self.shared.orders.give(Order::Stop(stop));
    }

    /// Tells it to end for good and waits until it and its tasks are gone. `None`: its thread
    /// did not even answer some time after the limit; it will stop when it comes back to life.
    ///
    /// Cancel safe: the order stands.
    pub(crate) async fn stop(&self, stop: Stop) -> Option<Exit> {
        self.request_stop(stop);
        let limit = stop.limit().saturating_add(Self::GRACE);
        let stopped = async { tokio::time::timeout(limit, self.stopped()).await.ok() };
        let runtime = self.shared.runtime.get().cloned();
        match runtime.or_else(|| Handle::try_current().ok()) {
            Some(runtime) => with_timers(&runtime, pin!(stopped)).await,
            // It has not begun to run, and ends as soon as it does.
            None => Some(self.stopped().await),
        }
    }

    /// Starts the next generation at once: the running one is stopped as its policy says. Costs
    /// no budget.
    pub(crate) fn restart(&self) {
        self.turn(Turn::Restart);
    }

    /// Ends the running generation for this cause, without its stop hooks.
    pub(super) fn end_generation(&self, cause: Exit) {
        self.shared.orders.give(Order::Fail(cause));
    }

    pub(super) fn lifespan(&self) -> Lifespan {
        self.shared.lifespan()
    }

    pub(super) fn turn(&self, turn: Turn) {
        self.shared.orders.give(Order::Turn(turn));
    }

    /// Waits until it has ended for good, and says why. Any number may wait. Cancel safe.
    pub(crate) async fn stopped(&self) -> Exit {
        let ended = |state: &ChildState| state.end().cloned();
        self.until(ended).await
    }

    /// Waits until a generation is up. An error: it went down, or ended, first.
    pub(crate) async fn up(&self) -> Result<(), Exit> {
        let answer = |state: &ChildState| match state {
            ChildState::Running | ChildState::Stopped(Exit::Normal) => Some(Ok(())),
            ChildState::Restarting { cause: exit, .. }
            | ChildState::Down(exit)
            | ChildState::Stopped(exit)
            | ChildState::GaveUp(exit) => Some(Err(exit.clone())),
            ChildState::Starting => None,
        };
        self.until(answer).await
    }

    async fn until<T>(&self, answer: impl Fn(&ChildState) -> Option<T>) -> T {
        let mut status = self.status.clone();
        loop {
            let found = answer(&status.borrow_and_update().state);
            if let Some(found) = found {
                return found;
            }
            if status.changed().await.is_err() {
                // The supervising future always reports an end before it goes.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Whether the actor is being polled on this thread right now.
    pub(super) fn is_polled_here(&self) -> bool {
        is_polled(&self.shared)
    }

    /// Makes the next poll of the actor panic.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn inject_panic(&self) {
        self.shared.orders.inject_panic();
    }
}
