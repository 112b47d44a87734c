//! What a group has to know of a child.

use std::{fmt, sync::Arc};

use actix::{Actor, Context, Supervised};

use super::{
    Backoff, Place, Restart, Stop,
    child_ref::ChildRef,
    control::ChildControl,
    roster::Roster,
    scope::Scope,
    supervisor::{ChildPolicy, supervise},
};

/// A child as it runs: its control, and its own children where it is a group.
#[derive(Debug, Clone)]
pub(crate) struct Started {
    pub(crate) control: ChildControl,
    pub(super) children: Option<Roster>,
}

impl From<ChildControl> for Started {
    fn from(control: ChildControl) -> Self {
        Self {
            control,
            children: None,
        }
    }
}

type Start = dyn Fn(Arc<str>, ChildPolicy) -> Started + Send + Sync;

/// A child of a group, not started yet. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ChildSpec {
    pub(super) name: Arc<str>,
    pub(super) restart: Restart,
    pub(super) backoff: Backoff,
    pub(super) stop: Stop,
    start: Arc<Start>,
}

impl ChildSpec {
    /// A child that `start` starts, with the path and the policy it is given, on the group's
    /// thread. It runs once for each time the *group* is started; restarts of the child are up
    /// to what it starts.
    pub(crate) fn new<F>(name: impl Into<Arc<str>>, start: F) -> Self
    where
        F: Fn(Arc<str>, ChildPolicy) -> Started + Send + Sync + 'static,
    {
        Self {
            name: name.into(),
            restart: Restart::default(),
            backoff: Backoff::default(),
            stop: Stop::default(),
            start: Arc::new(start),
        }
    }

    /// An actor, named and found by its reference.
    pub(crate) fn actor<A, F>(reference: &ChildRef<A>, place: Place, build: F) -> Self
    where
        A: Actor<Context = Context<A>> + Supervised,
        F: Fn(&mut Context<A>, Scope) -> A + Send + Sync + Clone + 'static,
    {
        let name = Arc::clone(reference.name());
        let reference = reference.clone();
        Self::new(name, move |path, policy| {
            let child = supervise(&place, path, policy, build.clone());
            reference.resolve(child.addr);
            child.control.into()
        })
    }

    /// When it is restarted. [`Restart::Permanent`] by default.
    pub(crate) fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// How long it waits before a restart.
    pub(crate) fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// How it is stopped.
    pub(crate) fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    pub(super) fn start(&self, path: Arc<str>, policy: ChildPolicy) -> Started {
        (self.start)(
            path,
            ChildPolicy {
                restart: self.restart,
                backoff: self.backoff,
                stop: self.stop,
                ..policy
            },
        )
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("name", &self.name)
            .field("restart", &self.restart)
            .field("backoff", &self.backoff)
            .field("stop", &self.stop)
            .finish_non_exhaustive()
    }
}
