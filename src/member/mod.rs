//! What the actors of one producer or consumer share.

mod condition;
mod counter;
mod ending;
mod isolation;
mod leave;
mod routes;
mod sessions;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use actix::{Addr, Recipient};
use arc_swap::ArcSwap;
use rocketmq_proto::v2 as pb;
use tokio::sync::watch;

pub(crate) use condition::Phase;
pub(crate) use counter::Counter;
pub(crate) use ending::Ending;
pub(crate) use isolation::Isolation;
pub(crate) use routes::{fetch_routes, get_route};
pub(crate) use sessions::{Session, Sessions};

use self::condition::Condition;
use crate::{
    Error, ErrorKind, Result,
    actors::RouteActor,
    client::Host,
    config::ClientConfig,
    gate::RouteTable,
    messages::route::{PrepareEndpoints, RouteUpdated},
    model::{Endpoints, client_id::client_id},
    rpc::{Headers, Rpc, host_name},
    topology::{
        ChildControl, ChildPolicy, Details, Event, EventKind, Events, Exit, LiveCounts,
        SessionDetails, TreeNode, tell,
    },
};

/// What a producer and a consumer tell a server of themselves, and what they make of its answer.
pub(crate) trait Role: fmt::Debug + Send + Sync {
    /// The settings as they are now.
    fn settings(&self) -> pb::Settings;
    /// Takes the server's settings: what is bad or missing leaves what was, with a warning.
    /// Those for another kind of client are not taken; says whether they were.
    fn apply(&self, settings: &pb::Settings) -> bool;
    /// The topics it cannot do without.
    fn topics(&self) -> Vec<Arc<str>>;
    fn heartbeat(&self) -> pb::HeartbeatRequest;
    fn termination(&self) -> pb::NotifyClientTerminationRequest;
}

/// One producer or consumer towards the servers. Outlives restarts of every actor of it.
pub(crate) struct Member {
    /// Its place in the tree; in none, its own name: `consumer billing`.
    pub(crate) path: Arc<str>,
    pub(crate) client_id: String,
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) host: Arc<Host>,
    pub(crate) rpc: Rpc,
    pub(crate) role: Arc<dyn Role>,
    /// The committed routes.
    pub(crate) routes: ArcSwap<RouteTable>,
    pub(crate) sessions: Sessions,
    pub(crate) isolation: Isolation,
    pub(crate) live: LiveCounts,
    pub(crate) events: Events,
    subscribers: Mutex<Vec<Recipient<RouteUpdated>>>,
    /// The actors that exist once: routes, and consumer or producer.
    children: Mutex<Vec<ChildControl>>,
    failure: watch::Sender<Option<Error>>,
    condition: Condition,
}

impl Member {
    pub(crate) fn new(
        path: impl Into<Arc<str>>,
        events: Events,
        config: &Arc<ClientConfig>,
        host: &Arc<Host>,
        role: Arc<dyn Role>,
    ) -> Result<Arc<Self>> {
        let client_id = new_client_id(config.environment.rng().u64(..));
        let headers = Headers::new(
            &client_id,
            &config.namespace,
            config.credentials.clone(),
            &config.environment,
        )?;
        let rpc = Rpc::new(
            host.pool.clone(),
            headers,
            config.request_timeout,
            config.decode_limit,
        );
        Ok(Arc::new(Self {
            path: path.into(),
            client_id,
            config: config.clone(),
            host: host.clone(),
            rpc,
            role,
            routes: ArcSwap::default(),
            sessions: Sessions::default(),
            isolation: Isolation::default(),
            live: LiveCounts::default(),
            events,
            subscribers: Mutex::default(),
            children: Mutex::default(),
            failure: watch::Sender::new(None),
            condition: Condition::default(),
        }))
    }

    /// A topic or group in this client's namespace.
    pub(crate) fn resource(&self, name: &str) -> pb::Resource {
        resource(&self.config.namespace, name)
    }

    /// Tells `subscriber` of every commit from now on.
    pub(crate) fn subscribe(&self, subscriber: Recipient<RouteUpdated>) {
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(subscriber);
    }

    /// Publishes a commit. One message a subscriber and changed route.
    pub(crate) fn publish(&self, update: &RouteUpdated) {
        let subscribers = self
            .subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for subscriber in subscribers.iter() {
            subscriber.do_send(update.clone());
        }
    }

    /// How every actor of the member is supervised, unless it says otherwise.
    pub(crate) fn child_policy(&self) -> ChildPolicy {
        ChildPolicy {
            live: self.live.clone(),
            events: self.events.clone(),
            rng: self.config.environment.rng(),
            ..ChildPolicy::default()
        }
    }

    /// Reports something that happened to the member.
    pub(crate) fn report(&self, kind: EventKind) {
        self.events.emit(&self.path, kind);
    }

    /// Tells an actor all events from now on.
    pub(crate) fn tell_events(&self, listener: Recipient<Event>) {
        let events = self.events.subscribe();
        self.host
            .runtime
            .spawn(tell(self.path.clone(), events, listener));
    }

    /// Keeps a child's control, and fails the member when the child gives up.
    pub(crate) fn watch(self: &Arc<Self>, control: ChildControl) {
        self.children().push(control.clone());
        self.watch_end(control);
    }

    /// Fails the member when the child gives up.
    pub(crate) fn watch_end(self: &Arc<Self>, control: ChildControl) {
        let member = self.clone();
        self.host.io.clone().spawn(move || async move {
            let exit = control.stopped().await;
            if exit.is_failure() {
                member.fail(control.path(), &exit);
            }
        });
    }

    fn fail(&self, path: &str, exit: &Exit) {
        tracing::error!(member = %self.path, child = path, %exit, "gave up");
        let error = Error::new(ErrorKind::GaveUp, format!("{path}: {exit}")).definitely();
        self.failure.send_replace(Some(error));
        self.review();
    }

    /// The error the member failed with for good, if it did.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.borrow().clone()
    }

    /// Waits until the member has failed for good. Cancel safe.
    pub(crate) async fn failed(&self) -> Error {
        let mut failure = self.failure.subscribe();
        loop {
            let found = failure.borrow_and_update().clone();
            if let Some(error) = found {
                return error;
            }
            if failure.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Whether the settings of these endpoints are applied.
    pub(crate) fn is_ready(&self, endpoints: &Endpoints) -> bool {
        self.sessions.is_ready(endpoints)
    }

    /// Has endpoints pass the gate, if they have not yet. Cancel safe.
    ///
    /// # Errors
    /// Their settings were not answered in time.
    pub(crate) async fn prepare(
        &self,
        routes: &Addr<RouteActor>,
        endpoints: &Endpoints,
    ) -> Result<()> {
        if self.is_ready(endpoints) {
            return Ok(());
        }
        let asked = routes.send(PrepareEndpoints {
            endpoints: endpoints.clone(),
        });
        let answered = asked.await.map_err(|_| RouteActor::lost()).flatten();
        answered.map(drop)
    }

    /// How often actors of this member were restarted.
    pub(crate) fn restarts(&self) -> u64 {
        let children: u64 = self.children().iter().map(ChildControl::restarts).sum();
        let sessions: u64 = self
            .sessions
            .all()
            .iter()
            .map(|session| session.control.restarts())
            .sum();
        children + sessions
    }

    /// Makes the next poll of an actor panic, by the last part of its path.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn crash(&self, actor: &str) {
        let sessions = self
            .sessions
            .all()
            .into_iter()
            .map(|session| session.control);
        for control in self.children().iter().cloned().chain(sessions) {
            let name = control
                .path()
                .strip_prefix(&*self.path)
                .map(ToOwned::to_owned);
            if name.is_some_and(|name| name.trim_start_matches('/').starts_with(actor)) {
                control.inject_panic();
            }
        }
    }

    fn children(&self) -> MutexGuard<'_, Vec<ChildControl>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Itself as a node of a tree, where it is in none.
    pub(crate) fn node(&self, details: Details, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            path: self.path.clone(),
            state: self.state(),
            restarts: self.restarts(),
            children,
            details,
        }
    }

    /// Its actors as they are now, but for process queues.
    pub(crate) fn nodes(&self) -> Vec<TreeNode> {
        let own = self.children().clone();
        let own = own
            .iter()
            .map(|control| control.node(Details::None, Vec::new()));
        let sessions = self.sessions.all().into_iter().map(|session| {
            let details = SessionDetails {
                endpoint: session.life.endpoints().clone(),
                ready: session.life.is_ready(),
            };
            session.control.node(Details::Session(details), Vec::new())
        });
        own.chain(sessions).collect()
    }

    /// What is alive, as one line without any inside of the application.
    pub(crate) fn counters(&self) -> String {
        format!(
            "{}: {} actors, {} tasks, {} sessions, {} routes",
            self.path,
            self.live.actors(),
            self.live.tasks(),
            self.sessions.len(),
            self.routes.load().topics().count(),
        )
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Member")
            .field("path", &self.path)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// How many producers and consumers this process has had.
static MEMBERS: AtomicU32 = AtomicU32::new(0);

fn new_client_id(random: u64) -> String {
    let index = MEMBERS.fetch_add(1, Ordering::Relaxed);
    client_id(&host_name(), std::process::id(), index, random)
}

/// A topic or group in a namespace.
pub(crate) fn resource(namespace: &str, name: &str) -> pb::Resource {
    pb::Resource {
        resource_namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}
