//! A push consumer: assignment scan, its process queues, statistics.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use actix::{Actor, Addr, AsyncContext, Context, Handler, Supervised};
use rocketmq_proto::v2 as pb;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::process_queue::{ProcessQueueActor, QueueSpec};
use crate::{
    Error, ErrorKind, Result,
    consume::{
        Consumption, QueueFigures, Receiver, RunningQueue, Subscription, settle_returned,
        watch_freshness,
    },
    member::get_route,
    messages::{
        consumer::{
            AssignmentAnswered, Begin, QueueEnded, QueuePrepared, ScanAssignments, ScanTopic,
        },
        route::AssignedEndpoints,
    },
    model::{
        Endpoints,
        assignment::Assignments,
        delays::{Delays, DelaysState},
        queue::{MessageQueue, QueueKey},
        route::Route,
    },
    topology::{EventKind, Exit, Restart, Scope, Tasks, supervise},
};

/// A process queue that failed is made anew after this time, longer each time.
const AFTER_FAILURE: Delays = Delays::doubling(Duration::from_millis(500), Duration::from_secs(30));

/// Keeps one process queue for each assigned queue.
#[derive(Debug)]
pub(crate) struct ConsumerActor {
    consumption: Arc<Consumption>,
    scope: Scope,
    state: State,
}

/// The process queues are not here: they outlive a restart, in the consumption.
#[derive(Debug)]
struct State {
    /// Whether scans have begun.
    begun: bool,
    /// Topics whose assignment is being asked for, so that answers cannot overtake each other.
    asking: BTreeSet<Arc<str>>,
    /// Queues whose endpoints are at the gate.
    preparing: BTreeSet<QueueKey>,
    /// Queues assigned at the last answer.
    assigned: BTreeSet<QueueKey>,
    /// Waits before queues that failed are made anew.
    failures: BTreeMap<QueueKey, DelaysState>,
    tasks: Tasks,
}

impl State {
    fn new(scope: &Scope) -> Self {
        Self {
            begun: false,
            asking: BTreeSet::new(),
            preparing: BTreeSet::new(),
            assigned: BTreeSet::new(),
            failures: BTreeMap::new(),
            tasks: scope.tasks(),
        }
    }
}

impl ConsumerActor {
    pub(crate) fn new(consumption: Arc<Consumption>, scope: Scope) -> Self {
        let state = State::new(&scope);
        Self {
            consumption,
            scope,
            state,
        }
    }

    fn is_draining(&self) -> bool {
        self.consumption.draining.is_cancelled()
    }

    fn ask(&mut self, topic: &Arc<str>, consumer: Addr<Self>) {
        if !self.state.asking.insert(topic.clone()) {
            return;
        }
        let (consumption, topic) = (self.consumption.clone(), topic.clone());
        self.state.tasks.spawn(async move {
            let answer = query_assignment(&consumption, &topic).await;
            // One message a query, one query a topic at a time.
            consumer.do_send(AssignmentAnswered { topic, answer });
        });
    }

    /// Starts and drops process queues of a topic so that they are those assigned.
    fn apply(&mut self, topic: &Arc<str>, assignments: &Assignments, consumer: &Addr<Self>) {
        let running = self.consumption.queues().keys_of(topic);
        if assignments.is_empty() && !running.is_empty() {
            tracing::warn!(group = %self.consumption.role.group, %topic, "nothing is assigned");
        }
        self.note_assigned(topic, assignments);
        if self.state.assigned.is_empty() {
            // There is nothing to receive from.
            self.consumption.freshness.renew(&self.consumption.member);
        }
        let changes = assignments.changes_from(&running);
        let in_order = self.consumption.role.consuming.load().fifo;
        for key in changes.stopped {
            tracing::debug!(group = %self.consumption.role.group, ?key, "queue dropped");
            self.consumption.queues().drop_queue(&key, in_order);
        }
        for queue in changes.started {
            if self.state.preparing.insert(queue.key()) {
                self.prepare(queue, consumer.clone());
            }
        }
        let assigned = self.state.assigned.iter();
        let endpoints = assigned.map(|key| key.endpoints.clone()).collect();
        // One message an answer, and one query a topic at a time.
        self.consumption
            .routes
            .do_send(AssignedEndpoints { endpoints });
    }

    fn note_assigned(&mut self, topic: &Arc<str>, assignments: &Assignments) {
        let assigned = std::mem::take(&mut self.state.assigned);
        let (before, others): (BTreeSet<_>, BTreeSet<_>) =
            assigned.into_iter().partition(|key| key.topic == *topic);
        let now: BTreeSet<_> = assignments.queues().map(MessageQueue::key).collect();
        if before != now {
            self.consumption
                .member
                .report(EventKind::AssignmentChanged {
                    topic: topic.clone(),
                    gained: now.difference(&before).count(),
                    lost: before.difference(&now).count(),
                });
        }
        self.state.assigned = &others | &now;
    }

    /// The endpoints of an assignment pass the same gate as those of a route.
    fn prepare(&self, queue: MessageQueue, consumer: Addr<Self>) {
        let consumption = self.consumption.clone();
        self.state.tasks.spawn(async move {
            let prepared = consumption.prepare(&queue.endpoints).await;
            consumer.do_send(QueuePrepared { queue, prepared });
        });
    }

    fn start_queue(&self, queue: MessageQueue, consumer: &Addr<Self>) {
        let Consumption { role, member, .. } = &*self.consumption;
        let Some(subscription) = subscription(&role.subscriptions, &queue.topic) else {
            return;
        };
        let key = queue.key();
        tracing::info!(group = %role.group, ?key, "queue assigned");
        let dropped = CancellationToken::new();
        let receiver = Receiver {
            consumption: self.consumption.clone(),
            queue,
            subscription,
            polls: TaskTracker::new(),
            open: TaskTracker::new(),
        };
        let (loops, open) = (receiver.polls.clone(), receiver.open.clone());
        let figures = QueueFigures::new(key.clone(), loops, open);
        let spec = QueueSpec {
            consumption: self.consumption.clone(),
            receiver: Arc::new(receiver),
            figures: figures.clone(),
            dropped: dropped.clone(),
        };
        let serial = self.consumption.queues().next_serial();
        let path = format!(
            "{}/queue {}@{}:{} #{serial}",
            member.path, key.topic, key.broker, key.id
        );
        let mut policy = member.child_policy();
        policy.restart = Restart::Temporary;
        let child = supervise(&member.host.data, path, policy, |_, scope| {
            ProcessQueueActor::new(spec, scope)
        });
        let running = RunningQueue {
            control: child.control,
            figures,
            dropped,
            serial,
        };
        self.watch(Some(key.clone()), &running, consumer.clone());
        self.consumption.queues().insert(key, running);
    }

    /// Reports the end of a process queue.
    fn watch(&self, key: Option<QueueKey>, queue: &RunningQueue, consumer: Addr<Self>) {
        let (control, serial) = (queue.control.clone(), queue.serial);
        self.state.tasks.spawn(async move {
            let failure = match control.stopped().await {
                Exit::Normal | Exit::Shutdown => None,
                exit => Some(exit.to_string()),
            };
            consumer.do_send(QueueEnded {
                key,
                serial,
                failure,
            });
        });
    }
}

fn subscription(subscriptions: &[Subscription], topic: &str) -> Option<Subscription> {
    subscriptions
        .iter()
        .find(|subscription| *subscription.topic == *topic)
        .cloned()
}

/// Asks one endpoint of the topic's route which queues may be received from.
async fn query_assignment(
    consumption: &Consumption,
    topic: &Arc<str>,
) -> Result<Vec<pb::Assignment>> {
    let member = &consumption.member;
    let route = get_route(&consumption.routes, topic).await?;
    let access_point = &member.config.endpoints;
    let mut rng = member.config.environment.rng();
    let at = endpoint_for(&route, access_point, |at| member.is_ready(at), &mut rng)?;
    consumption.prepare(&at).await?;
    let request = pb::QueryAssignmentRequest {
        topic: Some(member.resource(topic)),
        group: Some(member.resource(&consumption.role.group)),
        endpoints: Some(access_point.to_proto()),
    };
    let answer = member
        .rpc
        .query_assignment(&at, request, member.rpc.timeout())
        .await?;
    Ok(answer.assignments)
}

/// The access point if it serves the topic, else any master that does; a dead one only where none
/// is ready.
fn endpoint_for(
    route: &Route,
    access_point: &Endpoints,
    is_ready: impl Fn(&Endpoints) -> bool,
    rng: &mut fastrand::Rng,
) -> Result<Endpoints> {
    let mut candidates: Vec<_> = route
        .readable()
        .map(|queue| &queue.endpoints)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    if candidates.iter().any(|at| is_ready(at)) {
        candidates.retain(|at| is_ready(at));
    }
    if candidates.contains(&access_point) {
        return Ok(access_point.clone());
    }
    rng.choice(candidates).cloned().ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            format!("topic {} has no readable queue", route.topic),
        )
    })
}

impl Actor for ConsumerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let consumption = self.consumption.clone();
        self.state.tasks.spawn(settle_returned(consumption.clone()));
        let watched = consumption.clone();
        self.state
            .tasks
            .spawn(async move { watch_freshness(&watched).await });
        let statistics = consumption.member.config.intervals.statistics;
        self.state
            .tasks
            .every(Duration::from_secs(1), statistics, move || {
                let consumption = consumption.clone();
                async move { consumption.log_statistics() }
            });
        // After a restart the queues are still there, and watched again.
        let queues: Vec<_> = self
            .consumption
            .queues()
            .all()
            .map(|(key, queue)| (key.cloned(), queue.clone()))
            .collect();
        for (key, queue) in queues {
            self.watch(key, &queue, ctx.address());
        }
        if self.consumption.begun.load(Ordering::Acquire) {
            ctx.notify(Begin);
        }
    }
}

impl Supervised for ConsumerActor {
    fn restarting(&mut self, _: &mut Self::Context) {
        self.state = State::new(&self.scope);
    }
}

impl Handler<Begin> for ConsumerActor {
    type Result = ();

    fn handle(&mut self, _: Begin, ctx: &mut Self::Context) {
        if std::mem::replace(&mut self.state.begun, true) {
            return;
        }
        self.consumption.begun.store(true, Ordering::Release);
        let consumer = ctx.address();
        let period = self.consumption.member.config.intervals.assignments;
        self.state.tasks.every(Duration::ZERO, period, move || {
            let consumer = consumer.clone();
            async move {
                // Lost only with the actor, whose next generation scans anew.
                let _ = consumer.send(ScanAssignments).await;
            }
        });
    }
}

impl Handler<ScanAssignments> for ConsumerActor {
    type Result = ();

    fn handle(&mut self, _: ScanAssignments, ctx: &mut Self::Context) {
        if self.is_draining() {
            return;
        }
        let role = self.consumption.role.clone();
        for subscription in &role.subscriptions {
            self.ask(&subscription.topic, ctx.address());
        }
    }
}

impl Handler<AssignmentAnswered> for ConsumerActor {
    type Result = ();

    fn handle(&mut self, message: AssignmentAnswered, ctx: &mut Self::Context) {
        let AssignmentAnswered { topic, answer } = message;
        self.state.asking.remove(&topic);
        if self.is_draining() {
            return;
        }
        match answer {
            Ok(assignments) => {
                let (assignments, warnings) = Assignments::from_proto(&topic, assignments);
                for warning in warnings {
                    tracing::warn!(%topic, warning, "odd assignment");
                }
                self.apply(&topic, &assignments, &ctx.address());
            }
            // What is assigned stays so.
            Err(error) => tracing::warn!(
                group = %self.consumption.role.group,
                %topic,
                %error,
                "assignment not answered"
            ),
        }
    }
}

impl Handler<QueuePrepared> for ConsumerActor {
    type Result = ();

    fn handle(&mut self, message: QueuePrepared, ctx: &mut Self::Context) {
        let QueuePrepared { queue, prepared } = message;
        let key = queue.key();
        self.state.preparing.remove(&key);
        if self.is_draining() || !self.state.assigned.contains(&key) {
            return;
        }
        match prepared {
            Ok(()) => self.start_queue(queue, &ctx.address()),
            // The next scan tries again.
            Err(error) => tracing::warn!(?key, %error, "an assigned queue cannot be used yet"),
        }
    }
}

impl Handler<QueueEnded> for ConsumerActor {
    type Result = ();

    fn handle(&mut self, message: QueueEnded, ctx: &mut Self::Context) {
        let QueueEnded {
            key,
            serial,
            failure,
        } = message;
        self.consumption.queues().ended(serial);
        // One that was ending anyway needs no successor.
        let Some(key) = key.filter(|_| !self.is_draining()) else {
            return;
        };
        let wait = match failure {
            None => Duration::ZERO,
            Some(failure) => {
                tracing::warn!(?key, failure, "process queue failed, it is made anew");
                self.consumption.stats.queue_failures.one();
                let delays = self.state.failures.entry(key.clone());
                let delays = delays.or_insert_with(|| AFTER_FAILURE.start());
                delays.next(&mut self.consumption.member.config.environment.rng())
            }
        };
        let (consumer, topic) = (ctx.address(), key.topic);
        self.state
            .tasks
            .after(wait, async move { consumer.do_send(ScanTopic { topic }) });
    }
}

impl Handler<ScanTopic> for ConsumerActor {
    type Result = ();

    fn handle(&mut self, message: ScanTopic, ctx: &mut Self::Context) {
        if !self.is_draining() {
            self.ask(&message.topic, ctx.address());
        }
    }
}
