//! One generation of a group: starts its children, follows the plan, stops them.

use std::{
    cell::{Cell, RefCell, RefMut},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use futures::future::join_all;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    Exit,
    control::ChildControl,
    following::Following,
    group::{AddError, GroupSpec},
    roster::{Entry, Roster},
    spec::ChildSpec,
    started::Started,
    supervisor::{ChildPolicy, Decides},
};

/// A dynamic child is to be added.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) spec: ChildSpec,
    pub(super) reply: oneshot::Sender<Result<ChildControl, AddError>>,
}

/// The children of a group, over all of its generations.
#[derive(Debug)]
pub(super) struct Members {
    path: Arc<str>,
    spec: GroupSpec,
    /// What all children have in common.
    policy: ChildPolicy,
    roster: Roster,
    rng: RefCell<fastrand::Rng>,
    up: Cell<bool>,
}

impl Members {
    pub(super) fn new(
        path: Arc<str>,
        spec: GroupSpec,
        policy: ChildPolicy,
        roster: Roster,
    ) -> Self {
        let policy = ChildPolicy {
            intensity: spec.intensity,
            ..policy
        };
        Self {
            path,
            spec,
            roster,
            rng: RefCell::new(policy.rng.clone()),
            policy,
            up: Cell::new(false),
        }
    }

    pub(super) fn are_up(&self) -> bool {
        self.up.get()
    }

    /// Stops whatever still runs, without waiting.
    pub(super) fn abandon(&self) {
        self.up.set(false);
        self.roster.abandon();
    }

    /// Runs all children until told to stop, or until one takes the group down.
    pub(super) async fn run(
        &self,
        inbox: &mut mpsc::Receiver<Command>,
        stop: &CancellationToken,
    ) -> Exit {
        // Those of the generation before that had no time to stop in order.
        self.stop_all().await;
        let mut children = Following::new(self);
        let exit = tokio::select! {
            biased;
            () = stop.cancelled() => Exit::Shutdown,
            failure = async {
                if let Err(failure) = children.start_all().await {
                    return failure;
                }
                self.up.set(true);
                children.follow(inbox).await
            } => Exit::Failed(failure),
        };
        self.up.set(false);
        self.stop_all().await;
        exit
    }

    pub(super) fn spec(&self) -> &GroupSpec {
        &self.spec
    }

    pub(super) fn rng(&self) -> RefMut<'_, fastrand::Rng> {
        self.rng.borrow_mut()
    }

    /// A child has ended for good.
    pub(super) fn forget(&self, control: &ChildControl) {
        self.roster.forget(control);
    }

    /// Starts a child, which is not up yet.
    pub(super) fn start(&self, spec: &ChildSpec, decides: Decides) -> Result<Started, AddError> {
        if let Some(namesake) = self.roster.find(&spec.name) {
            let control = &namesake.started.control;
            if control.state().end().is_none() {
                return Err(AddError::NameTaken);
            }
            self.roster.forget(control);
        }
        let policy = ChildPolicy {
            decides,
            rng: self.rng().fork(),
            ..self.policy.clone()
        };
        let path = format!("{}/{}", self.path, spec.name);
        let started = catch_unwind(AssertUnwindSafe(|| spec.start(path.into(), policy)))
            .map_err(|payload| AddError::NotStarted(Exit::from_panic(payload.as_ref())))?;
        let dynamic = decides == Decides::Alone;
        self.roster.enter(spec, dynamic, started.clone());
        Ok(started)
    }

    /// Dynamic children at once, then the others in reverse start order.
    async fn stop_all(&self) {
        join_all(self.roster.select(true).iter().map(stop_one)).await;
        for entry in self.roster.select(false).iter().rev() {
            stop_one(entry).await;
        }
        self.roster.clear();
    }
}

async fn stop_one(entry: &Entry) {
    let control = &entry.started.control;
    if control.stop(entry.stop).await.is_none() {
        tracing::warn!(
            actor = &**control.path(),
            "left behind: its thread is blocked"
        );
    }
}
