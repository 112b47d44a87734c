//! How much is alive right now.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Counts what is alive: actors and their tasks. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveCounts(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    actors: Arc<AtomicUsize>,
    tasks: Arc<AtomicUsize>,
}

impl LiveCounts {
    /// Supervised actors whose state exists, running or not.
    pub(crate) fn actors(&self) -> usize {
        self.0.actors.load(Ordering::Acquire)
    }

    /// Tasks and timers of actors.
    pub(crate) fn tasks(&self) -> usize {
        self.0.tasks.load(Ordering::Acquire)
    }

    pub(super) fn actor(&self) -> Counted {
        Counted::one(&self.0.actors)
    }

    pub(super) fn task(&self) -> Counted {
        Counted::one(&self.0.tasks)
    }
}

/// Counts as one until dropped.
#[derive(Debug)]
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Counted {
    pub(super) fn one(counter: &Arc<AtomicUsize>) -> Self {
        counter.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(counter))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
