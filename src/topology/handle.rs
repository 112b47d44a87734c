//! A running topology.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::Stream;
use tokio::sync::watch;

use super::{
    ChildSpec, Event, Exit, TreeNode,
    event::Events,
    group::{AddError, Group, RemoveError},
    records::{MemberReport, Records},
    supervisor::ChildPolicy,
    vitals::Vitals,
};
use crate::{Error, ErrorKind, Health, Result};

/// A running [`Topology`](crate::Topology). Clones are the same one, usable from any thread.
///
/// Dropping them all changes nothing: it runs until it is stopped or has failed, or until the
/// thread it runs on ends.
#[derive(Debug, Clone)]
pub struct TopologyHandle {
    group: Group,
    events: Events,
    records: Records,
    vitals: Vitals,
}

/// What became of a topology that was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopReport {
    /// Whether all children ended by themselves, each in its time, and no thread was blocked.
    pub in_time: bool,
    /// The paths of those that were dropped as their time was over. The topology's own is among
    /// them when that for all was.
    pub cut_off: BTreeSet<Arc<str>>,
    /// What its producers and consumers reported, by path; of one that was restarted, the last
    /// time. Removed ones are not among them.
    pub members: BTreeMap<Arc<str>, MemberReport>,
}

impl TopologyHandle {
    pub(super) fn new(group: Group, policy: &ChildPolicy) -> Self {
        Self {
            group,
            events: policy.events.clone(),
            records: policy.records.clone(),
            vitals: policy.vitals.clone(),
        }
    }

    /// The name of the topology.
    #[must_use]
    pub fn name(&self) -> &str {
        self.group.control().path()
    }

    /// Stops all children, those that were added first, then in reverse start order; each within
    /// its own time, all within `limit`. Whoever has not ended by then is dropped.
    ///
    /// Called from within a child it waits for that child, whose time runs out. Returns soon
    /// after `limit` even where a thread is blocked. Calling it again is no error:
    /// the shorter limit counts. Cancel safe: the stop goes on.
    pub async fn stop(&self, limit: Duration) -> StopReport {
        let answered = self.group.stop(limit).await.is_some();
        let cut_off = self.records.all_cut_off();
        StopReport {
            in_time: answered && cut_off.is_empty(),
            cut_off,
            members: self.records.reports(),
        }
    }

    /// Waits until the topology has failed for good, because its children failed more often than
    /// it allows; all of them are stopped then. Never ends after a stop. Cancel safe.
    pub async fn failed(&self) -> Error {
        match self.group.exited().await {
            Exit::Normal | Exit::Shutdown => std::future::pending().await,
            Exit::Failed(child) => gave_up(&child),
            exit => gave_up(&format!("{}: {exit}", self.name())),
        }
    }

    /// The topology and everything in it, as it is now.
    #[must_use]
    pub fn tree(&self) -> TreeNode {
        self.group.tree()
    }

    /// How all of it is: the value now, and a wake-up for each change. Ready is a topology whose
    /// children are all up and whose producers and consumers are all ready; live, one that has
    /// not failed for good.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Health> {
        self.vitals.subscribe()
    }

    /// Everything that happens from now on to its children, and within the producers and consumers
    /// among them, under their path in the tree. One who reads slower
    /// than it happens misses the oldest beyond 256. It ends only with the last handle.
    pub fn events(&self) -> impl Stream<Item = Event> + Send + Unpin + 'static {
        self.events.stream()
    }

    /// Starts one more child, and returns when it is up. Its restarts are counted for itself, and
    /// the strategy does not concern it. It ends with the topology, and with a restart of it.
    ///
    /// Cancel safe: the child may be added all the same.
    ///
    /// # Errors
    /// It did not come up at the first try, and is not in the tree; a child of its name is; or
    /// the topology has ended ([`Closed`](ErrorKind::Closed)).
    pub async fn add(&self, child: ChildSpec) -> Result<()> {
        child.check().map_err(|error| error.context(self.name()))?;
        let path = format!("{}/{}", self.name(), child.name);
        let added = self.group.add(child).await;
        added.map(drop).map_err(|error| match error {
            AddError::NameTaken => Error::invalid(format!("{path}: {error}")),
            AddError::NotStarted(exit) => {
                let text = format!("{path} did not start: {exit}");
                self.records.start_error(text, &exit)
            }
            AddError::Closed => Error::closed(self.name()),
        })
    }

    /// Stops a child that was added, within its time, and says how it ended.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound): there is no such child.
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): it was there from the start.
    /// [`Timeout`](ErrorKind::Timeout): its thread is blocked; it ends when it comes back to life.
    pub async fn remove(&self, name: &str) -> Result<Exit> {
        let path = format!("{}/{name}", self.name());
        let removed = self.group.remove(name).await;
        if removed.is_ok() {
            self.records.forget(&path);
            self.vitals.forget(&path);
        }
        removed.map_err(|error| {
            let kind = match error {
                RemoveError::Unknown => ErrorKind::NotFound,
                RemoveError::Static => ErrorKind::InvalidArgument,
                RemoveError::Blocked => ErrorKind::Timeout,
            };
            Error::new(kind, format!("{path}: {error}"))
        })
    }

    /// Restarts a child at once, whatever its state; the running one is stopped within its time.
    /// It counts as no failure. `false`: there is no such child.
    pub fn restart(&self, name: &str) -> bool {
        let child = self.group.child(name);
        child.inspect(super::ChildControl::restart).is_some()
    }
}

fn gave_up(text: &str) -> Error {
    Error::new(ErrorKind::GaveUp, text).definitely()
}
