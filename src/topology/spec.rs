//! What a group has to know of a child.

use std::{fmt, sync::Arc, time::Duration};

use actix::{Actor, Context, Handler};

use super::{
    Backoff, ChildRef, Liveness, MemberRef, Ping, Place, Restart, Scope, Stop,
    child_ref::Label,
    inside::Shown,
    member::{MemberLife, MemberSpec},
    root::Topology,
    started::Started,
    supervisor::{ChildPolicy, keep_alive, supervise_remade},
    wiring::{Need, Reference, Wiring, sealed::Named},
};
use crate::{Client, client::Startable};

type Start = dyn Fn(&Place, Arc<str>, ChildPolicy) -> Started + Send + Sync;

/// A child of a [`Topology`], not started yet. Cheap to clone.
#[derive(Clone)]
#[must_use]
pub struct ChildSpec {
    pub(super) name: Arc<str>,
    pub(super) restart: Restart,
    pub(super) backoff: Backoff,
    pub(super) stop: Stop,
    /// Whether its start ends in good time by itself.
    pub(super) bounds_its_start: bool,
    place: Place,
    start: Arc<Start>,
    pub(super) wiring: Wiring,
}

impl ChildSpec {
    /// How long a member may take to stop, unless its spec says otherwise.
    const MEMBER_STOP: Stop = Stop::Within(Duration::from_secs(30));
    /// How long at most when it only makes way for its next start: its handlers may wait for a
    /// sibling that is down and waits for it.
    const MEMBER_MAKES_WAY: Duration = Duration::from_secs(2);

    /// A child that `start` starts, at the place and with the path and the policy it is given.
    /// It runs once for each time the *group* is started, on the group's thread; restarts of the
    /// child are up to what it starts.
    pub(crate) fn new<F>(name: impl Into<Arc<str>>, start: F) -> Self
    where
        F: Fn(&Place, Arc<str>, ChildPolicy) -> Started + Send + Sync + 'static,
    {
        Self {
            name: name.into(),
            restart: Restart::default(),
            backoff: Backoff::default(),
            stop: Stop::default(),
            bounds_its_start: false,
            place: Place::default(),
            start: Arc::new(start),
            wiring: Wiring::default(),
        }
    }

    /// An actor of the application, named and found by its reference.
    ///
    /// `make` makes it, on the thread it runs on, for the start and *anew for every restart*:
    /// state that shall survive a restart belongs into what `make` captures. The address and the
    /// messages in the mailbox survive; timers and futures of the actor's context do not. The
    /// message whose handler panics is consumed: whoever waits for its answer gets
    /// [`MailboxError::Closed`](actix::MailboxError::Closed), and a delivery is a failed one,
    /// which comes again.
    pub fn actor<A, F>(reference: &ChildRef<A>, make: F) -> Self
    where
        A: Actor<Context = Context<A>>,
        F: Fn() -> A + Send + Sync + 'static,
    {
        Self::scoped_actor(reference, move |_| make())
    }

    /// The same for an actor that wants to know of its supervision: `make` is given its
    /// [`Scope`].
    pub fn scoped_actor<A, F>(reference: &ChildRef<A>, make: F) -> Self
    where
        A: Actor<Context = Context<A>>,
        F: Fn(Scope) -> A + Send + Sync + 'static,
    {
        let label = reference.label().clone();
        let (reference, make) = (reference.clone(), Arc::new(make));
        let start = move |place: &Place, path: Arc<str>, policy: ChildPolicy| {
            let make = Arc::clone(&make);
            let child = supervise_remade(place, path, policy, move |scope| make(scope));
            reference.resolve(child.addr);
            Started::actor(child.control, reference.label().clone())
        };
        Self::new(Arc::clone(&label.name), start).placing(label)
    }

    /// A producer or consumer, under a name or a [`MemberRef`]. It is up when it is ready, and a
    /// restart starts its spec anew, as a new client in the eyes of the server.
    ///
    /// It has failed when its start did, or when it did for good: small mishaps it mends itself.
    /// Its own deadline bounds each start. It is given 30 s to stop, the last of which is for
    /// taking leave of the servers; the time before is what running handlers may take. Where it
    /// is only restarted along with a sibling they get one second, since they may be waiting for
    /// that very sibling; deliveries cut off go back to the server.
    pub fn member<S>(name: impl Into<MemberRef<S::Handle>>, client: &Client, spec: S) -> Self
    where
        S: Startable + Clone + Sync + 'static,
    {
        let reference = name.into();
        let label = Named::label(&reference).clone();
        let handler = spec.refers_to();
        let member = MemberSpec {
            client: client.clone(),
            spec,
            reference,
        };
        let start = move |place: &Place, path: Arc<str>, policy: ChildPolicy| {
            let (member, shared) = (member.clone(), policy.clone());
            let shown = Arc::<Shown<S::Handle>>::default();
            let inside = Arc::clone(&shown);
            let known = Arc::clone(&path);
            let limit = policy.stop.limit().min(Self::MEMBER_MAKES_WAY);
            let policy = ChildPolicy {
                stop: Stop::Within(limit),
                ..policy
            };
            let control = keep_alive(place, path, policy, move |_| {
                Ok(MemberLife::new(member, known, &shared, shown))
            });
            Started::member(control, inside)
        };
        let child = Self::new(Arc::clone(&label.name), start)
            .bounds_its_start()
            .stop(Self::MEMBER_STOP)
            .placing(label);
        let wiring = Wiring {
            handler,
            ..child.wiring
        };
        Self { wiring, ..child }
    }

    /// A topology within the topology. By default it is given the time to stop that all of its
    /// children may take.
    pub fn topology(topology: Topology) -> Self {
        topology.into_child()
    }

    /// Declares that it uses another child while it starts, so that this one has to be up before.
    /// The start of the topology checks that: the other has to be in the topology, at any depth,
    /// and be started earlier, or run already. A handler needs no such declaration of its
    /// consumer: deliveries wait for it.
    ///
    /// ```
    /// use rocketmq_actors::{ChildRef, ChildSpec, Topology};
    /// # use actix::{Actor, Context};
    /// # struct Store; impl Actor for Store { type Context = Context<Self>; }
    /// # struct Ledger; impl Actor for Ledger { type Context = Context<Self>; }
    ///
    /// let (store, ledger) = (ChildRef::<Store>::new("store"), ChildRef::<Ledger>::new("ledger"));
    /// let app = Topology::named("app")
    ///     .child(ChildSpec::actor(&store, || Store))
    ///     .child(ChildSpec::actor(&ledger, || Ledger).needs(&store));
    /// ```
    pub fn needs(mut self, reference: &impl Reference) -> Self {
        self.wiring.needs.push(Need::new(reference));
        self
    }

    /// When it is restarted. [`Restart::Permanent`] by default.
    pub fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// How long it waits before a restart.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// How it is stopped: by default within 5 s, a member within 30 s.
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Where it runs. [`Place::Here`] by default: on the thread of its topology. Of a member only
    /// its start and its supervision: it has the threads of its client.
    pub fn place(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// Has the actor asked regularly whether it still handles messages; one that does not answer
    /// in time ends as [`Exit::Unresponsive`](crate::Exit::Unresponsive). `reference` is the one
    /// the spec was made with.
    ///
    /// It notices an actor that waits for ever. One that blocks its thread is noticed only where
    /// it has a thread of its own, and nothing can end it before it yields; the log, an event
    /// ([`Unresponsive`](crate::EventKind::Unresponsive)) and the health of the topology name it
    /// meanwhile.
    pub fn liveness<A>(mut self, reference: &ChildRef<A>, liveness: Liveness) -> Self
    where
        A: Actor<Context = Context<A>> + Handler<Ping>,
    {
        let (start, reference) = (self.start, reference.clone());
        self.start = Arc::new(move |place, path, policy| {
            let started = start(place, path, policy.clone());
            if let Some(addr) = reference.addr() {
                let control = started.control.clone();
                liveness.watch_over(&Place::Here, addr, control, &policy);
            }
            started
        });
        self
    }

    pub(super) fn bounds_its_start(mut self) -> Self {
        self.bounds_its_start = true;
        self
    }

    /// Bears this name.
    fn placing(mut self, label: Label) -> Self {
        label.place();
        self.wiring.places = Some(label);
        self
    }

    /// The children of what is a topology.
    pub(super) fn consisting_of(mut self, children: Vec<Self>) -> Self {
        self.wiring.children = children;
        self
    }

    pub(super) fn start(&self, path: Arc<str>, policy: ChildPolicy) -> Started {
        (self.start)(
            &self.place,
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
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
