//! A topology: a tree of actors, producers and consumers, not started yet.

use std::sync::Arc;

use actix::Recipient;

use super::{
    ChildSpec, Event, Exit, Intensity, Place, Stop, Strategy, TopologyHandle,
    group::{Group, GroupSpec},
    supervisor::ChildPolicy,
    wiring,
};
use crate::{Error, Result};

/// A tree of an application's own actors, producers and consumers, supervised together.
///
/// Children are started in the order they are given, each when the one before is up, and stopped
/// in reverse, each within its time. A child that ends is restarted as its [`ChildSpec`] says,
/// and its siblings as the [`Strategy`] says. When children fail more often than the
/// [`Intensity`] allows, the topology stops all of them and has failed itself: a topology within
/// another is then a failed child of that one, the root reports to its [`TopologyHandle`]. The
/// actix `System` runs on in any case.
///
/// ```no_run
/// use actix::{Actor, Context, Handler};
/// use rocketmq_actors::{
///     Backoff, ChildRef, ChildSpec, Client, ClientConfig, Deliver, Filter, Outcome,
///     PushConsumerSpec, Restart, Strategy, Text, Tls, Topology,
/// };
/// use std::time::Duration;
///
/// #[derive(Default)]
/// struct Ledger {
///     orders: Vec<String>,
/// }
///
/// impl Actor for Ledger {
///     type Context = Context<Self>;
/// }
///
/// impl Handler<Deliver<String>> for Ledger {
///     type Result = Outcome;
///
///     fn handle(&mut self, order: Deliver<String>, _: &mut Self::Context) -> Outcome {
///         self.orders.push(order.payload);
///         Outcome::Ack
///     }
/// }
///
/// # async fn run() -> rocketmq_actors::Result<()> {
/// let client = Client::new(ClientConfig::builder("127.0.0.1:8081").tls(Tls::Off).build()?);
/// let ledger = ChildRef::<Ledger>::new("ledger");
/// let orders = PushConsumerSpec::builder("billing")
///     .subscribe("orders", Filter::any())
///     .handler(ledger.deliver_as(Text))
///     .build()?;
/// let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
/// let app = Topology::named("app")
///     .strategy(Strategy::RestForOne)
///     .child(ChildSpec::actor(&ledger, Ledger::default))
///     .child(
///         ChildSpec::member("billing", &client, orders)
///             .restart(Restart::Permanent)
///             .backoff(backoff),
///     )
///     .start()
///     .await?;
///
/// // Until the application ends:
/// println!("{}", app.tree());
/// let report = app.stop(Duration::from_secs(30)).await;
/// assert!(report.in_time);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Topology {
    name: Arc<str>,
    place: Option<Place>,
    group: GroupSpec,
}

impl Topology {
    /// A topology of this name, without children yet.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            place: None,
            group: GroupSpec::default(),
        }
    }

    /// Which siblings are restarted with a child. [`Strategy::OneForOne`] by default.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.group.strategy = strategy;
        self
    }

    /// How many restarts are allowed, of all children together. By default 5 in 60 s.
    pub fn intensity(mut self, intensity: Intensity) -> Self {
        self.group.intensity = intensity;
        self
    }

    /// Adds a child, to be started after those before it.
    pub fn child(mut self, child: ChildSpec) -> Self {
        self.group.children.push(child);
        self
    }

    /// Tells an actor every [`Event`](crate::Event) of this topology, from its start on. One that
    /// is slower than they come misses the oldest beyond 256.
    pub fn events_to(mut self, listener: Recipient<Event>) -> Self {
        self.group.listeners.push(listener);
        self
    }

    /// Where the topology runs, and with it those of its children that have no place of their
    /// own. By default a root runs on the arbiter that starts it, or, started outside of actix
    /// (in a plain `#[tokio::main]`), on a new thread that ends with it; a topology within
    /// another runs where that one does.
    pub fn place(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Starts all children and returns when all are up.
    ///
    /// Works from any runtime. Cancel safe: a start that is dropped is undone.
    ///
    /// # Errors
    /// Names the child that did not come up; those before it are stopped again. The kind is that
    /// of the producer's or consumer's error, or [`GaveUp`](crate::ErrorKind::GaveUp) for an actor.
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument), before anything is started, with topologies
    /// within this one looked at too: a bad name, two children of one name, a reference that is
    /// placed twice, a consumer whose handler is a [`ChildRef`](crate::ChildRef) that no child
    /// bears, and of [`needs`](ChildSpec::needs) what is unknown, started later or a cycle.
    pub async fn start(self) -> Result<TopologyHandle> {
        self.check()?;
        let policy = ChildPolicy::default();
        let shared = policy.clone();
        let place = self.place.unwrap_or_else(Place::current);
        let group = Group::root(&place, Arc::clone(&self.name), policy, self.group);
        let undo = Undo(Some(&group));
        if let Err(exit) = group.up().await {
            group.exited().await;
            let text = match &exit {
                Exit::Failed(child) => format!("{}: {child}", self.name),
                exit => format!("{}: {exit}", self.name),
            };
            return Err(shared.records.start_error(text, &exit));
        }
        undo.not_any_more();
        Ok(TopologyHandle::new(group, &shared))
    }

    pub(super) fn into_child(self) -> ChildSpec {
        let spec = Group::spec(Arc::clone(&self.name), self.group.clone());
        let spec = match &self.place {
            Some(place) => spec.place(place.clone()),
            None => spec,
        };
        spec.consisting_of(self.group.children)
    }

    fn check(&self) -> Result<()> {
        if self.name.is_empty() || self.name.contains('/') {
            let name = &*self.name;
            return Err(Error::invalid(format!(
                "a topology's name is not empty and has no /, but one is {name:?}"
            )));
        }
        wiring::check(&self.name, &self.group.children)
    }
}

/// Stops a topology whose start is no longer wanted.
struct Undo<'a>(Option<&'a Group>);

impl Undo<'_> {
    fn not_any_more(mut self) {
        self.0 = None;
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            group.control().request_stop(Stop::default());
        }
    }
}
