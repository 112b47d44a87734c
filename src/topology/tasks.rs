//! The tasks and timers of one generation of an actor.
//!
//! Not the context's own: every wake of an actor polls all futures of its context, and a future
//! cancelled there just before a crash takes a future of the *next* generation with it, since
//! actix numbers them anew.

use std::{marker::PhantomData, panic::AssertUnwindSafe, rc::Rc, sync::Arc, time::Duration};

use futures::FutureExt;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use tracing::Instrument;

use super::{exit::panic_text, live::LiveCounts};

/// Which life of an actor: 1 for the first, one more after each restart.
///
/// What comes back from a task carries it, so that late results of a dead generation can be
/// told and ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Generation(pub(crate) u64);

/// Everything that lives as long as one generation.
#[derive(Debug, Clone, Default)]
pub(super) struct Lifespan {
    pub(super) generation: Generation,
    pub(super) ended: CancellationToken,
    pub(super) tracker: TaskTracker,
}

impl Lifespan {
    /// How long cancelled tasks may take to go; only a blocked thread needs longer.
    const REAP: Duration = Duration::from_secs(1);

    pub(super) fn next(&self) -> Self {
        Self {
            generation: Generation(self.generation.0 + 1),
            ..Self::default()
        }
    }

    /// Cancels all tasks and waits until they are gone, so that generations never overlap.
    pub(super) async fn end(&self) {
        self.ended.cancel();
        self.tracker.close();
        let _ = tokio::time::timeout(Self::REAP, self.tracker.wait()).await;
    }
}

/// A set of tasks that ends with the state that owns it.
///
/// Part of an actor's state, from [`Scope::tasks`](super::scope::Scope::tasks). All tasks are
/// cancelled when the set is dropped and when the generation ends, be it by a panic. Tasks run
/// on the actor's thread and may hold what is not `Send`. Finished tasks leave nothing behind. A
/// task that panics ends alone: the panic is caught and logged.
#[derive(Debug)]
pub(crate) struct Tasks {
    path: Arc<str>,
    pub(super) lifespan: Lifespan,
    cancel: DropGuard,
    live: LiveCounts,
    /// Tasks are spawned on the thread of their actor only.
    local: PhantomData<Rc<()>>,
}

impl Tasks {
    pub(super) fn new(path: Arc<str>, lifespan: Lifespan, live: LiveCounts) -> Self {
        Self {
            path,
            cancel: lifespan.ended.child_token().drop_guard(),
            lifespan,
            live,
            local: PhantomData,
        }
    }

    /// A token that is cancelled with this set: for work that runs elsewhere.
    pub(crate) fn cancelled(&self) -> CancellationToken {
        self.cancel.token().clone()
    }

    /// Runs a future, within the span of the actor.
    pub(crate) fn spawn<F>(&self, future: F)
    where
        F: Future<Output = ()> + 'static,
    {
        let counted = self.live.task();
        let path = Arc::clone(&self.path);
        let guarded = async move {
            log_panic(&path, future).await;
            drop(counted);
        };
        let until_cancelled = self.cancelled().run_until_cancelled_owned(guarded);
        let spanned = until_cancelled.in_current_span();
        let tracked = self.lifespan.tracker.track_future(spanned);
        tokio::task::spawn_local(tracked);
    }

    /// Runs a future once, after a delay.
    pub(crate) fn after<F>(&self, delay: Duration, future: F)
    where
        F: Future<Output = ()> + 'static,
    {
        self.spawn(async move {
            tokio::time::sleep(delay).await;
            future.await;
        });
    }

    /// Runs what `run` returns again and again: after `first`, then each time `period` after the
    /// *end* of the run before. A run that panics is logged; the next one comes all the same.
    pub(crate) fn every<R, F>(&self, first: Duration, period: Duration, mut run: R)
    where
        R: FnMut() -> F + 'static,
        F: Future<Output = ()> + 'static,
    {
        let path = Arc::clone(&self.path);
        self.spawn(async move {
            tokio::time::sleep(first).await;
            loop {
                log_panic(&path, async { run().await }).await;
                // With a period of zero others still get their turn.
                tokio::task::yield_now().await;
                tokio::time::sleep(period).await;
            }
        });
    }
}

/// Runs a future to its end or its panic.
async fn log_panic(path: &str, future: impl Future<Output = ()>) {
    if let Err(payload) = AssertUnwindSafe(future).catch_unwind().await {
        let panic = panic_text(payload.as_ref());
        tracing::warn!(actor = path, panic, "a task panicked");
    }
}
