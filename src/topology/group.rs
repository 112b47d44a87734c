//! A group of supervised children: the handle, and the group as something that is supervised.

use std::{
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{self, Poll},
    time::Duration,
};

use actix::Recipient;
use futures::future::LocalBoxFuture;
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    task::spawn_local,
};
use tokio_util::sync::CancellationToken;

use super::{
    Exit, Intensity, Place, Restart, Stop, Strategy,
    child_ref::Label,
    control::ChildControl,
    event::{Event, tell},
    life::Life,
    members::{Command, Members},
    roster::Roster,
    spec::ChildSpec,
    started::Started,
    supervisor::{ChildPolicy, keep_alive},
};

/// A group, not started yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupSpec {
    pub(crate) strategy: Strategy,
    /// For all static children together, and for each dynamic one.
    pub(crate) intensity: Intensity,
    /// The static children, in start order. Names are unique.
    pub(crate) children: Vec<ChildSpec>,
    /// Who is told all events.
    pub(crate) listeners: Vec<Recipient<Event>>,
}

/// Why a child was not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddError {
    /// There is a child of this name.
    #[error("the name is taken")]
    NameTaken,
    /// It did not come up.
    #[error("{0}")]
    NotStarted(Exit),
    /// The group is stopping or gone.
    #[error("the group has ended")]
    Closed,
}

/// Why a child was not removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RemoveError {
    /// There is no child of this name.
    #[error("there is no such child")]
    Unknown,
    /// It was there from the start.
    #[error("it was there from the start, only a child that was added can be removed")]
    Static,
    /// It will end once its thread comes back to life.
    #[error("its thread is blocked")]
    Blocked,
}

/// A running group. Clones are the same group; dropping them all changes nothing.
///
/// Static children are started in order, each when the one before is up, and stopped in reverse.
/// The first that does not come up stops those before it, and the group has failed. The same
/// when a child fails more often than allowed. Dynamic children come and go, restart for
/// themselves, and are stopped first, all at once.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    control: ChildControl,
    roster: Roster,
    commands: mpsc::Sender<Command>,
}

impl Group {
    const COMMANDS: usize = 64;

    /// Starts a group on a thread, where all of its children's start functions run too. For a
    /// group at the root `policy` is best [`Restart::Temporary`]: its end is its owner's to see.
    pub(crate) fn start(
        place: &Place,
        path: impl Into<Arc<str>>,
        policy: ChildPolicy,
        spec: GroupSpec,
    ) -> Self {
        let path = path.into();
        let (commands, inbox) = mpsc::channel(Self::COMMANDS);
        let roster = Roster::default();
        let (listeners, events) = (spec.listeners.clone(), policy.events.clone());
        let at = Arc::clone(&path);
        let members = Members::new(Arc::clone(&path), spec, policy.clone(), roster.clone());
        let control = keep_alive(place, path, policy, move |_| {
            for listener in listeners {
                spawn_local(tell(Arc::clone(&at), events.subscribe(), listener));
            }
            Ok(GroupLife::new(members, inbox))
        });
        Self {
            control,
            roster,
            commands,
        }
    }

    /// A root group: it is not restarted.
    pub(crate) fn root(
        place: &Place,
        path: impl Into<Arc<str>>,
        policy: ChildPolicy,
        spec: GroupSpec,
    ) -> Self {
        let restart = Restart::Temporary;
        Self::start(place, path, ChildPolicy { restart, ..policy }, spec)
    }

    /// The group as a child of another group. By default its stop gives the time that all its
    /// children may take.
    pub(crate) fn spec(name: impl Into<Arc<str>>, spec: GroupSpec) -> ChildSpec {
        let dynamic = Stop::default().limit();
        let limits = spec.children.iter().map(|child| child.stop.limit());
        let stop = Stop::Within(limits.fold(dynamic, Duration::saturating_add));
        let start = move |place: &Place, path, policy| {
            Started::from(Self::start(place, path, policy, spec.clone()))
        };
        ChildSpec::new(name, start).bounds_its_start().stop(stop)
    }

    /// The group's own control: its stop is the children's, in order.
    pub(crate) fn control(&self) -> &ChildControl {
        &self.control
    }

    pub(super) fn children(&self) -> Vec<Started> {
        self.roster.started()
    }

    /// The path of the child, here or below, that bears this very name.
    pub(super) fn bearer(&self, label: &Label) -> Option<Arc<str>> {
        if let Some(bearer) = self.roster.bearer(label) {
            return Some(Arc::clone(bearer.control.path()));
        }
        let children = self.children();
        let mut groups = children.iter().filter_map(Started::group);
        groups.find_map(|group| group.bearer(label))
    }

    /// The child of this name.
    pub(super) fn find(&self, name: &str) -> Option<Started> {
        Some(self.roster.find(name)?.started)
    }

    /// Waits until all static children are up. An error: one was not, and all are stopped again.
    pub(crate) async fn up(&self) -> Result<(), Exit> {
        self.control().up().await
    }

    /// Waits until the group has ended for good, and says why.
    pub(crate) async fn exited(&self) -> Exit {
        self.control().stopped().await
    }

    /// Stops all children, within the limit of each and `limit` for all. `None`: see
    /// [`ChildControl::stop`].
    pub(crate) async fn stop(&self, limit: Duration) -> Option<Exit> {
        self.control().stop(Stop::Within(limit)).await
    }

    /// The control of a child, by name.
    pub(crate) fn child(&self, name: &str) -> Option<ChildControl> {
        Some(self.find(name)?.control)
    }

    /// Adds a dynamic child. It ends with the group, and with a restart of the group.
    ///
    /// It answers when the child is up; while the group itself waits for a restart it waits too.
    /// A child that does not come up at its first try is not tried again. Cancel safe: the child
    /// may be added all the same.
    pub(crate) async fn add(&self, spec: ChildSpec) -> Result<ChildControl, AddError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.commands.send(Command { spec, reply }).await;
        sent.map_err(|_| AddError::Closed)?;
        let control = answer.await.map_err(|_| AddError::Closed)??;
        if let Err(exit) = control.up().await {
            control.stop(Stop::Now).await;
            return Err(AddError::NotStarted(exit));
        }
        Ok(control)
    }

    /// Stops a dynamic child as its spec says.
    pub(crate) async fn remove(&self, name: &str) -> Result<Exit, RemoveError> {
        let entry = self.roster.find(name).ok_or(RemoveError::Unknown)?;
        if !entry.dynamic {
            return Err(RemoveError::Static);
        }
        let stopped = entry.started.control.stop(entry.stop).await;
        stopped.ok_or(RemoveError::Blocked)
    }
}

/// The generations of a group.
struct GroupLife {
    members: Rc<Members>,
    inbox: Rc<Mutex<mpsc::Receiver<Command>>>,
    generation: LocalBoxFuture<'static, Exit>,
    stop: CancellationToken,
}

impl GroupLife {
    fn new(members: Members, inbox: mpsc::Receiver<Command>) -> Self {
        let (members, inbox) = (Rc::new(members), Rc::new(Mutex::new(inbox)));
        let stop = CancellationToken::new();
        Self {
            generation: Self::generation(&members, &inbox, &stop),
            members,
            inbox,
            stop,
        }
    }

    fn generation(
        members: &Rc<Members>,
        inbox: &Rc<Mutex<mpsc::Receiver<Command>>>,
        stop: &CancellationToken,
    ) -> LocalBoxFuture<'static, Exit> {
        let (members, inbox, stop) = (Rc::clone(members), Rc::clone(inbox), stop.clone());
        Box::pin(async move {
            // Free: the generation before, which held it, is gone.
            let mut inbox = inbox.lock().await;
            members.run(&mut inbox, &stop).await
        })
    }
}

impl Life for GroupLife {
    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<Exit> {
        Pin::new(&mut self.generation).poll(cx)
    }

    fn is_up(&self) -> bool {
        self.members.are_up()
    }

    fn restart(&mut self) -> Result<(), Exit> {
        self.members.abandon();
        self.generation = Box::pin(std::future::pending());
        self.stop = CancellationToken::new();
        self.generation = Self::generation(&self.members, &self.inbox, &self.stop);
        Ok(())
    }

    fn ask_to_stop(&mut self, _: Duration) {
        self.stop.cancel();
    }
}

impl Drop for GroupLife {
    fn drop(&mut self) {
        // Only those are left that had no time to stop in order.
        self.members.abandon();
    }
}
