//! A running push consumer.

use std::{fmt, pin::pin, sync::Arc, time::Duration};

use actix::Recipient;
use futures::Stream;
use tokio::sync::watch;

use super::{
    ShutdownReport,
    consumption::Consumption,
    handling::is_handler_of,
    shutdown::{abandon, shutdown_by_handler},
};
use crate::{
    Details, Error, Event, Health, MemberReport, Result, TreeNode,
    client::{sealed::Running, with_timers},
};

/// A running push consumer. Cheap to clone, usable from any thread.
///
/// When the last clone is dropped without [`shutdown`](Self::shutdown), the consumer stops
/// receiving at once, says so in the log, and leaves to the server what is not settled.
#[derive(Clone)]
pub struct PushConsumer(Arc<Handle>);

struct Handle {
    consumption: Arc<Consumption>,
}

impl PushConsumer {
    pub(super) fn new(consumption: Arc<Consumption>) -> Self {
        Self(Arc::new(Handle { consumption }))
    }

    /// The consumer group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.0.consumption.role.group
    }

    /// The id the server knows this consumer by.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.0.consumption.member.client_id
    }

    /// Stops the consumer: receives no more, lets running handlers finish and settles what they
    /// did, gives back what has not started, and takes leave of the servers. Returns within
    /// `grace` and a second, whatever the servers do.
    ///
    /// Called by a handler of this consumer, as async closures can, it does not wait for that
    /// handler: it returns when all others have ended, then the handler finishes, its delivery is
    /// settled, and the consumer ends. Tasks that a handler spawned, and handlers that are actors,
    /// are not recognised: such an actor should answer first, and have the shutdown run by
    /// something it spawns, or `grace` runs out.
    ///
    /// Calling it again gives the same report. Cancel safe: the shutdown goes on.
    pub async fn shutdown(&self, grace: Duration) -> ShutdownReport {
        let consumption = &self.0.consumption;
        if is_handler_of(consumption) {
            shutdown_by_handler(consumption, grace).await
        } else {
            let ending = pin!(consumption.ending.end(grace));
            with_timers(&consumption.member.host.runtime, ending).await
        }
    }

    /// Stops receiving from all topics, until [`resume`](Self::resume).
    ///
    /// No receive starts any more. One that is under way is left alone, and may bring messages
    /// for as long as the server lets it wait, 20 s by default; these, and what is cached, are
    /// handled and settled. The pause outlives restarts of the consumer's actors, but not of the
    /// consumer itself, where a topology starts it anew. The server goes on to count this consumer
    /// as a member of its group, so queues stay assigned to it and their messages wait.
    pub fn pause(&self) {
        self.0.consumption.pause_all();
    }

    /// Receives from all topics again, those included that were paused alone.
    pub fn resume(&self) {
        self.0.consumption.resume_all();
    }

    /// The same as [`pause`](Self::pause) for one topic.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): the topic is not subscribed.
    pub fn pause_topic(&self, topic: &str) -> Result<()> {
        self.0.consumption.pause(topic)
    }

    /// Receives from one topic again, also where all were paused.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): the topic is not subscribed.
    pub fn resume_topic(&self, topic: &str) -> Result<()> {
        self.0.consumption.resume(topic)
    }

    /// Whether all topics are paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.0.consumption.all_paused()
    }

    /// The topics that are paused, in the order of their names.
    #[must_use]
    pub fn paused_topics(&self) -> Vec<Arc<str>> {
        self.0.consumption.pauses.topics().into_iter().collect()
    }

    /// Waits until the consumer has failed for good, because a part of it failed more often than
    /// its restart policy allows. Never ends after a shutdown. Cancel safe.
    pub async fn failed(&self) -> Error {
        self.0.consumption.member.failed().await
    }

    /// How it is: the value now, and a wake-up for each change. It lives on after the shutdown.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Health> {
        self.0.consumption.member.health()
    }

    /// Everything that happens in it from now on. One who reads slower than it happens misses the
    /// oldest beyond 256. It ends when the last handle is dropped and it is shut down.
    pub fn events(&self) -> impl Stream<Item = Event> + Send + Unpin + 'static {
        self.0.consumption.member.events.stream()
    }

    /// Tells an actor the same, one at a time, until it is gone.
    pub fn events_to(&self, listener: Recipient<Event>) {
        self.0.consumption.member.tell_events(listener);
    }

    /// What happened since the start.
    #[must_use]
    pub fn stats(&self) -> ConsumerStats {
        let Consumption {
            stats,
            budget,
            leases,
            member,
            ..
        } = &*self.0.consumption;
        let (cached_messages, cached_bytes) = budget.used();
        ConsumerStats {
            received: stats.received.get(),
            handled: stats.handled.get(),
            failed: stats.failed.get(),
            acked: stats.acked.get(),
            retried: stats.retried.get(),
            dead_lettered: stats.dead_lettered.get(),
            handed_back: stats.handed_back.get(),
            expired: stats.expired.get(),
            abandoned: stats.abandoned.get(),
            corrupted: stats.corrupted.get(),
            restarts: member.restarts() + stats.queue_failures.get(),
            cached_messages,
            cached_bytes,
            unsettled: leases.open(),
            queues: self.0.consumption.queues().len(),
            sessions: member.sessions.len(),
            actors: member.live.actors(),
            tasks: member.live.tasks(),
        }
    }

    /// The consumer and its actors with their figures, as they are now. Read on demand: it costs
    /// nothing while nobody asks.
    #[must_use]
    pub fn tree(&self) -> TreeNode {
        let (details, children) = self.look();
        self.0.consumption.member.node(details, children)
    }

    /// Makes the next poll of an actor panic: `routes`, `consumer`, `session` or `queue` (of the
    /// last two, every one).
    #[cfg(feature = "test-hooks")]
    pub fn crash(&self, actor: &str) {
        let consumption = &self.0.consumption;
        if actor == "queue" {
            for control in consumption.queue_controls() {
                control.inject_panic();
            }
        } else {
            consumption.member.crash(actor);
        }
    }
}

impl Running for PushConsumer {
    async fn failed(&self) -> Error {
        self.failed().await
    }

    async fn shutdown(&self, grace: Duration) -> MemberReport {
        MemberReport::Consumer(self.shutdown(grace).await)
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.health()
    }

    fn look(&self) -> (Details, Vec<TreeNode>) {
        self.0.consumption.look()
    }

    fn is_calling(&self) -> bool {
        is_handler_of(&self.0.consumption)
    }

    fn abandon(&self) {
        abandon(&self.0.consumption);
    }
}

impl fmt::Debug for PushConsumer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PushConsumer")
            .field("group", &self.group())
            .field("client_id", &self.client_id())
            .finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        abandon(&self.consumption);
    }
}

/// Counters since the start of a consumer, and what it holds right now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerStats {
    /// Messages received, every delivery counted.
    pub received: u64,
    /// Handlings that ended with an ack.
    pub handled: u64,
    /// Handlings that ended otherwise: failed, panicked, or asked for a dead letter.
    pub failed: u64,
    /// Deliveries acknowledged.
    pub acked: u64,
    /// Deliveries given back to be made again later.
    pub retried: u64,
    /// Deliveries moved to the dead letter topic by this consumer. The server moves others.
    pub dead_lettered: u64,
    /// Deliveries given back unhandled.
    pub handed_back: u64,
    /// Deliveries that could not be settled because their lease was over.
    pub expired: u64,
    /// Deliveries that could not be settled for another reason, which the log has, or came without
    /// a receipt handle. The server makes them again.
    pub abandoned: u64,
    /// Messages with a damaged or undecodable body.
    pub corrupted: u64,
    /// Restarts of actors.
    pub restarts: u64,
    /// Messages cached, those being handled and settled included.
    pub cached_messages: usize,
    /// Bytes of the bodies of these.
    pub cached_bytes: usize,
    /// Deliveries neither settled nor given back.
    pub unsettled: usize,
    /// Queues being consumed.
    pub queues: usize,
    /// Sessions with endpoints.
    pub sessions: usize,
    /// Actors alive.
    pub actors: usize,
    /// Tasks and timers of these actors.
    pub tasks: usize,
}
