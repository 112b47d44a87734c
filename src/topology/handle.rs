//! A running topology.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::Stream;
use tokio::sync::watch;

use super::{
    ChildSpec, Event, Exit, Stop, TreeNode,
    event::Events,
    group::{AddError, Group, RemoveError},
    records::{MemberReport, Records},
    supervisor::ChildPolicy,
    vitals::Vitals,
    wiring,
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
    /// Whether the stop has only begun, for it was asked for from within. The rest is what is
    /// known so far.
    pub under_way: bool,
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
    /// Called from within, it would wait for its own caller. So then it only begins the stop and
    /// returns at once, with a report that says [`under_way`](StopReport::under_way); the caller
    /// finishes what it does, and ends like the others. Recognised are the async closures of
    /// consumers of the topology, and of its actors everything that is polled as part of their
    /// context, as a [`ResponseActFuture`](actix::ResponseActFuture) is. Not recognised is what is
    /// a task of its own: a [`ResponseFuture`](actix::ResponseFuture), and whatever was spawned.
    /// These should not wait for the stop, or the time of the consumer runs out whose delivery
    /// they handle.
    ///
    /// Returns soon after `limit` even where a thread is blocked. Calling it again is no error:
    /// the shorter limit counts. Cancel safe: the stop goes on.
    pub async fn stop(&self, limit: Duration) -> StopReport {
        let under_way = self.group.is_calling();
        let ended = if under_way {
            self.group.control().request_stop(Stop::Within(limit));
            false
        } else {
            self.group.stop(limit).await.is_some()
        };
        let cut_off = self.records.all_cut_off();
        StopReport {
            in_time: ended && cut_off.is_empty(),
            under_way,
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
    /// It did not come up at the first try, and is not in the tree; a child of its name, or one
    /// with its reference, is; what it [`needs`](ChildSpec::needs) is not up; or the topology has
    /// ended ([`Closed`](ErrorKind::Closed)).
    pub async fn add(&self, child: ChildSpec) -> Result<()> {
        self.add_to("", child).await
    }

    /// The same for a topology within this one, named by its path below this one, names joined by
    /// `/`. The child ends with that topology, and with a restart of it.
    ///
    /// # Errors
    /// As of [`add`](Self::add), and [`NotFound`](ErrorKind::NotFound): there is no such topology.
    pub async fn add_to(&self, topology: &str, child: ChildSpec) -> Result<()> {
        let group = self.group.descend(topology).ok_or_else(|| {
            let text = format!("{}/{topology}: there is no such topology", self.name());
            Error::new(ErrorKind::NotFound, text)
        })?;
        let name = group.control().path();
        wiring::check(name, std::slice::from_ref(&child))?;
        for label in wiring::labels(&child) {
            if let Some(bearer) = self.group.bearer(&label) {
                return Err(Error::invalid(format!(
                    "{bearer} has the reference {}: one reference stands for one child",
                    label.name
                )));
            }
        }
        let path = format!("{name}/{}", child.name);
        let added = group.add(child).await;
        added.map(drop).map_err(|error| match error {
            AddError::NameTaken => Error::invalid(format!("{path}: {error}")),
            AddError::NotStarted(exit) => {
                let text = format!("{path} did not start: {exit}");
                self.records.start_error(text, &exit)
            }
            AddError::Closed => Error::closed(name),
        })
    }

    /// Stops a child that was added, within its time, and says how it ended. `path` is its name,
    /// or for one of a topology within this one, its path below this one.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound): there is no such child.
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): it was there from the start.
    /// [`Timeout`](ErrorKind::Timeout): its thread is blocked; it ends when it comes back to life.
    pub async fn remove(&self, path: &str) -> Result<Exit> {
        let (above, name) = split(path);
        let removed = match self.group.descend(above) {
            Some(group) => group.remove(name).await,
            None => Err(RemoveError::Unknown),
        };
        let path = format!("{}/{path}", self.name());
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
    /// It counts as no failure. `path` is as of [`remove`](Self::remove). `false`: there is no
    /// such child.
    pub fn restart(&self, path: &str) -> bool {
        let (above, name) = split(path);
        let group = self.group.descend(above);
        let child = group.and_then(|group| group.child(name));
        child.inspect(super::ChildControl::restart).is_some()
    }
}

/// The path of the topology that a child is in, and the child's name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn gave_up(text: &str) -> Error {
    Error::new(ErrorKind::GaveUp, text).definitely()
}
