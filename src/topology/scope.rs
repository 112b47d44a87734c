//! What an actor knows of its own supervision.

use std::sync::Arc;

use actix::ActorContext;

use super::{
    Exit,
    control::ChildControl,
    live::LiveCounts,
    tasks::{Generation, Tasks},
};

/// Given to the function that builds an actor; the actor keeps it beside its spec.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    control: ChildControl,
    live: LiveCounts,
}

impl Scope {
    pub(super) fn new(control: ChildControl, live: LiveCounts) -> Self {
        Self { control, live }
    }

    /// The actor's place in the tree.
    pub(crate) fn path(&self) -> &Arc<str> {
        self.control.path()
    }

    /// The generation that runs now; in `restarting` already the new one.
    pub(crate) fn generation(&self) -> Generation {
        self.control.lifespan().generation
    }

    /// A new set of tasks for the generation that runs now. Made anew by whatever builds the
    /// actor's state: tasks of a set from before a restart never run.
    pub(crate) fn tasks(&self) -> Tasks {
        let path = Arc::clone(self.control.path());
        Tasks::new(path, self.control.lifespan(), self.live.clone())
    }

    /// Ends this generation as failed: no further message is handled, the stop hooks run, and
    /// the policy decides what follows.
    pub(crate) fn fail(&self, ctx: &mut impl ActorContext, reason: impl Into<String>) {
        let failure = Exit::Failed(reason.into());
        self.control.end_generation(failure);
        ctx.stop();
    }

    /// The actor's own control, for those it hands out.
    pub(crate) fn control(&self) -> &ChildControl {
        &self.control
    }
}
