//! Topic → route: fetch, gate, commit, publish.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use actix::{Actor, Addr, AsyncContext, Context, Handler, ResponseFuture, Supervised};
use rocketmq_proto::v2 as pb;
use tokio::{sync::oneshot, time::Instant};

use super::session::{SessionActor, SessionLife, SessionSpec, SettingsApplied};
use crate::{
    Error, ErrorKind, Result,
    gate::{Commit, Gate, Step},
    member::{Member, Session},
    messages::{
        route::{
            AssignedEndpoints, GetRoute, PrepareEndpoints, RefreshRoutes, RouteFetched,
            RouteUpdated, SessionAnswered,
        },
        session::Prepare,
    },
    model::{Endpoints, route::Route},
    topology::{EventKind, Restart, Scope, Tasks, supervise},
};

/// The first refresh of the routes comes so long after the start (or a restart).
const FIRST_REFRESH: Duration = Duration::from_secs(10);

/// Fetches routes and commits them behind the gate.
#[derive(Debug)]
pub(crate) struct RouteActor {
    member: Arc<Member>,
    scope: Scope,
    state: State,
}

/// Who waits for a route.
type Caller = oneshot::Sender<Result<Arc<Route>>>;

/// The committed routes are not here: they outlive a restart, in the member.
#[derive(Debug)]
struct State {
    gate: Gate<SettingsApplied>,
    /// Topics whose fetch is under way.
    fetching: BTreeSet<Arc<str>>,
    waiting: BTreeMap<Arc<str>, Vec<Caller>>,
    assigned: BTreeSet<Endpoints>,
    /// Whose quarantine was reported.
    quarantined: BTreeSet<Endpoints>,
    tasks: Tasks,
}

impl State {
    fn new(gate: Gate<SettingsApplied>, scope: &Scope) -> Self {
        Self {
            gate,
            fetching: BTreeSet::new(),
            waiting: BTreeMap::new(),
            assigned: BTreeSet::new(),
            quarantined: BTreeSet::new(),
            tasks: scope.tasks(),
        }
    }
}

impl RouteActor {
    /// Starts the route actor of a member.
    pub(crate) fn start(member: &Arc<Member>) -> Addr<Self> {
        let path = format!("{}/routes", member.path);
        let spec = member.clone();
        let child = supervise(&member.host.io, path, member.child_policy(), |_, scope| {
            Self::new(spec, scope)
        });
        member.watch(child.control);
        child.addr
    }

    /// What a caller gets whose question a restart has swallowed.
    pub(crate) fn lost() -> Error {
        Error::new(ErrorKind::Server, "the route actor restarted meanwhile")
    }

    fn new(member: Arc<Member>, scope: Scope) -> Self {
        let config = &member.config;
        let gate = Gate::new(config.all_endpoints, config.intervals.routes);
        let state = State::new(gate, &scope);
        Self {
            member,
            scope,
            state,
        }
    }

    /// Asks the access point for a route, unless it is being asked already.
    fn fetch(&mut self, topic: &Arc<str>, route_actor: Addr<Self>) {
        let waits =
            self.state.gate.is_open(topic) && self.member.routes.load().get(topic).is_none();
        if waits || !self.state.fetching.insert(topic.clone()) {
            return;
        }
        let fetch = self.state.gate.next_fetch();
        let (member, topic) = (self.member.clone(), topic.clone());
        self.state.tasks.spawn(async move {
            let access_point = &member.config.endpoints;
            let request = pb::QueryRouteRequest {
                topic: Some(member.resource(&topic)),
                endpoints: Some(access_point.to_proto()),
            };
            let asked = member
                .rpc
                .query_route(access_point, request, member.rpc.timeout())
                .await;
            let answer = asked.map(|reply| reply.message_queues);
            // One message a fetch, and one fetch a topic at a time.
            route_actor.do_send(RouteFetched {
                topic,
                fetch,
                answer,
            });
        });
    }

    fn carry_out(&mut self, steps: Vec<Step<SettingsApplied>>, ctx: &mut Context<Self>) {
        for step in steps {
            match step {
                Step::Prepare(endpoints) => self.prepare(endpoints, ctx.address()),
                Step::Commit(commit) => self.commit(commit),
                Step::Answer(topic, outcome) => self.answer(&topic, outcome),
            }
        }
        self.publish_wanted();
        self.report_quarantined();
    }

    fn report_quarantined(&mut self) {
        let now = self.state.gate.quarantined();
        for endpoint in now.difference(&self.state.quarantined).cloned() {
            self.member.report(EventKind::Quarantined { endpoint });
        }
        self.state.quarantined.clone_from(now);
    }

    /// Asks a session, and passes its answer on to the gate.
    fn prepare(&mut self, endpoints: Endpoints, route_actor: Addr<Self>) {
        self.publish_wanted();
        let session = self.session(&endpoints, route_actor.clone());
        self.state.tasks.spawn(async move {
            let answer = ask(&session).await;
            route_actor.do_send(SessionAnswered { endpoints, answer });
        });
    }

    /// The session of an endpoint, started if there is none.
    fn session(&self, endpoints: &Endpoints, route_actor: Addr<Self>) -> Session {
        let member = &self.member;
        member.sessions.get_or_start(endpoints, || {
            let life = SessionLife::new(endpoints.clone());
            let spec = SessionSpec {
                member: member.clone(),
                life: life.clone(),
                observer: route_actor.recipient(),
            };
            let path = format!("{}/session {endpoints}", member.path);
            let mut policy = member.child_policy();
            // One that retires stays away; one that fails comes back.
            policy.restart = Restart::Transient;
            let child = supervise(&member.host.io, path, policy, |_, scope| {
                SessionActor::new(spec, scope)
            });
            member.watch_end(child.control.clone());
            Session {
                life,
                addr: child.addr,
                control: child.control,
            }
        })
    }

    fn commit(&mut self, commit: Commit<SettingsApplied>) {
        let route = commit.route().clone();
        tracing::info!(
            member = %self.member.path,
            topic = %commit.topic(),
            queues = route.queues.len(),
            quarantined = self.state.gate.quarantined().len(),
            "route committed"
        );
        let table = self.member.routes.load().with(commit);
        self.member
            .isolation
            .retain(|endpoints| table.contains(endpoints));
        self.member.routes.store(Arc::new(table));
        self.member.review();
        self.member.report(EventKind::RouteCommitted {
            topic: route.topic.clone(),
            queues: route.queues.len(),
        });
        self.member.publish(&RouteUpdated { route });
    }

    fn answer(&mut self, topic: &Arc<str>, outcome: Result<()>) {
        let Some(waiting) = self.state.waiting.remove(topic) else {
            if let Err(error) = outcome {
                tracing::warn!(member = %self.member.path, %topic, %error, "route not refreshed");
            }
            return;
        };
        let committed = self.member.routes.load().get(topic);
        let answer = match (outcome, committed) {
            (_, Some(route)) => Ok(route),
            (Err(error), None) => Err(self.explain(error)),
            (Ok(()), None) => Err(Error::new(ErrorKind::Server, "the route was not committed")),
        };
        for caller in waiting {
            // Who no longer waits needs no answer.
            let _ = caller.send(answer.clone());
        }
    }

    /// Says what is wrong when a route names what cannot be reached from here.
    fn explain(&self, error: Error) -> Error {
        let access_point = &self.member.config.endpoints;
        let elsewhere = error
            .peer()
            .is_some_and(|peer| peer != access_point.to_string());
        match error.kind() {
            // A port forwarder takes connections for a port where nobody listens, and drops them.
            ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Disconnected if elsewhere => {
                error.context(format!(
                    "the access point {access_point} answers, but the addresses it advertises do \
                     not; set the proxy's advertised address and port to ones this host can reach"
                ))
            }
            _ => error,
        }
    }

    /// Tells the sessions who is still needed.
    fn publish_wanted(&self) {
        let mut wanted = self.state.gate.wanted();
        wanted.extend(self.member.routes.load().endpoints().iter().cloned());
        wanted.extend(self.state.assigned.iter().cloned());
        self.member.sessions.want(wanted);
        self.member.review();
    }
}

async fn ask(session: &Session) -> Result<SettingsApplied> {
    let lost = || {
        Error::new(ErrorKind::Server, "the session restarted meanwhile")
            .endpoint(session.life.endpoints())
    };
    session
        .addr
        .send(Prepare)
        .await
        .unwrap_or_else(|_| Err(lost()))
}

impl Actor for RouteActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let route_actor = ctx.address();
        self.state.tasks.every(
            FIRST_REFRESH,
            self.member.config.intervals.routes,
            move || {
                let route_actor = route_actor.clone();
                async move {
                    // Lost only with the actor, whose next generation refreshes anew.
                    let _ = route_actor.send(RefreshRoutes).await;
                }
            },
        );
    }
}

impl Supervised for RouteActor {
    fn restarting(&mut self, _: &mut Self::Context) {
        self.state = State::new(self.state.gate.anew(), &self.scope);
    }
}

impl Handler<GetRoute> for RouteActor {
    type Result = ResponseFuture<Result<Arc<Route>>>;

    fn handle(&mut self, message: GetRoute, ctx: &mut Self::Context) -> Self::Result {
        if let Some(route) = self.member.routes.load().get(&message.topic) {
            return Box::pin(async move { Ok(route) });
        }
        let (caller, answered) = oneshot::channel();
        self.state
            .waiting
            .entry(message.topic.clone())
            .or_default()
            .push(caller);
        self.fetch(&message.topic, ctx.address());
        Box::pin(async move { answered.await.unwrap_or_else(|_| Err(Self::lost())) })
    }
}

impl Handler<RefreshRoutes> for RouteActor {
    type Result = ();

    fn handle(&mut self, _: RefreshRoutes, ctx: &mut Self::Context) {
        let table = self.member.routes.load_full();
        for topic in table.topics() {
            self.fetch(topic, ctx.address());
        }
    }
}

impl Handler<RouteFetched> for RouteActor {
    type Result = ();

    fn handle(&mut self, message: RouteFetched, ctx: &mut Self::Context) {
        let RouteFetched {
            topic,
            fetch,
            answer,
        } = message;
        self.state.fetching.remove(&topic);
        let gate = &mut self.state.gate;
        let steps = match answer {
            Ok(queues) => {
                let (route, warnings) = Route::from_proto(&topic, queues);
                for warning in warnings {
                    tracing::warn!(member = %self.member.path, %topic, warning, "odd route");
                }
                let table = self.member.routes.load();
                gate.fetched(&topic, fetch, Arc::new(route), &table, Instant::now())
            }
            Err(error) => gate.fetch_failed(&topic, fetch, error),
        };
        self.carry_out(steps, ctx);
    }
}

impl Handler<SessionAnswered> for RouteActor {
    type Result = ();

    fn handle(&mut self, message: SessionAnswered, ctx: &mut Self::Context) {
        let SessionAnswered { endpoints, answer } = message;
        if let Err(error) = &answer {
            let endpoint = &endpoints;
            tracing::warn!(member = %self.member.path, %endpoint, %error, "settings unanswered");
        }
        let table = self.member.routes.load_full();
        let steps = self.state.gate.answered(&endpoints, answer, &table);
        self.carry_out(steps, ctx);
    }
}

impl Handler<PrepareEndpoints> for RouteActor {
    type Result = ResponseFuture<Result<SettingsApplied>>;

    fn handle(&mut self, message: PrepareEndpoints, ctx: &mut Self::Context) -> Self::Result {
        if !self.member.sessions.is_wanted(&message.endpoints) {
            self.state.assigned.insert(message.endpoints.clone());
            self.publish_wanted();
        }
        let session = self.session(&message.endpoints, ctx.address());
        Box::pin(async move { ask(&session).await })
    }
}

impl Handler<AssignedEndpoints> for RouteActor {
    type Result = ();

    fn handle(&mut self, message: AssignedEndpoints, _: &mut Self::Context) {
        self.state.assigned = message.endpoints;
        self.publish_wanted();
    }
}
