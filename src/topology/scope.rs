//! What an actor knows of its own supervision.

use std::sync::Arc;

use actix::ActorContext;

use super::{Exit, control::ChildControl, live::LiveCounts, tasks::Tasks};

/// What an actor knows of its own supervision. Given to the function that makes the actor.
#[derive(Debug, Clone)]
pub struct Scope {
    pub(super) control: ChildControl,
    live: LiveCounts,
}

impl Scope {
    pub(super) fn new(control: ChildControl, live: LiveCounts) -> Self {
        Self { control, live }
    }

    /// The actor's place in the tree, names joined by `/`.
    #[must_use]
    pub fn path(&self) -> &Arc<str> {
        self.control.path()
    }

    /// Which generation runs now, 1 for the first: for what comes back late from elsewhere, to be
    /// told from what belongs to this one.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.control.lifespan().generation.0
    }

    /// A new set of tasks for the generation that runs now. Made anew by whatever builds the
    /// actor's state: tasks of a set from before a restart never run.
    pub(crate) fn tasks(&self) -> Tasks {
        let path = Arc::clone(self.control.path());
        Tasks::new(path, self.control.lifespan(), self.live.clone())
    }

    /// Ends this generation as failed: no further message is handled, the stop hooks run, and
    /// the restart policy decides what follows.
    pub fn fail(&self, ctx: &mut impl ActorContext, reason: impl Into<String>) {
        let failure = Exit::Failed(reason.into());
        self.control.end_generation(failure);
        ctx.stop();
    }
}
