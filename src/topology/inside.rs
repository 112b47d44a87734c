//! What a child of a topology lets the tree see of itself.

use std::{
    cell::Cell,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Details, TreeNode, child_ref::Label, control::Shared, details::ActorDetails};
use crate::client::sealed::Running;

/// A child that is no group, seen from outside.
pub(super) trait Inside: fmt::Debug + Send + Sync {
    /// Its figures, and what it consists of.
    fn look(&self) -> (Details, Vec<TreeNode>);

    /// Whether a handler of it, known by more than the actor that is polled here, makes this call.
    fn is_calling(&self) -> bool {
        false
    }
}

impl Inside for Label {
    fn look(&self) -> (Details, Vec<TreeNode>) {
        let deliveries = self.deliveries();
        (Details::Actor(ActorDetails { deliveries }), Vec::new())
    }
}

/// A producer or consumer from its start to the end of its shutdown.
#[derive(Debug)]
pub(super) struct Shown<H>(Mutex<Option<H>>);

impl<H> Default for Shown<H> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<H: Running> Shown<H> {
    pub(super) fn set(&self, handle: Option<H>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }

    fn get(&self) -> Option<H> {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.clone()
    }
}

impl<H: Running> Inside for Shown<H> {
    fn look(&self) -> (Details, Vec<TreeNode>) {
        self.get().map(|handle| handle.look()).unwrap_or_default()
    }

    fn is_calling(&self) -> bool {
        self.get().is_some_and(|handle| handle.is_calling())
    }
}

thread_local! {
    /// The address of what the actor that is polled on this thread shares; 0 for none.
    static POLLED: Cell<usize> = const { Cell::new(0) };
}

/// Runs a poll of a supervised actor, which must not panic.
pub(super) fn polling<T>(shared: &Arc<Shared>, poll: impl FnOnce() -> T) -> T {
    let before = POLLED.replace(address(shared));
    let polled = poll();
    POLLED.set(before);
    polled
}

/// Whether the actor is being polled on this thread right now.
pub(super) fn is_polled(shared: &Arc<Shared>) -> bool {
    POLLED.get() == address(shared)
}

fn address(shared: &Arc<Shared>) -> usize {
    Arc::as_ptr(shared).addr()
}
