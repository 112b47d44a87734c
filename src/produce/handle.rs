//! A running producer.

use std::{fmt, pin::pin, sync::Arc, time::Duration};

use actix::{Addr, Recipient};
use futures::Stream;
use tokio::sync::watch;

use super::{ProducerShutdownReport, SendReceipt, publication::Publication, shutdown::abandon};
use crate::{
    Details, Error, Event, Health, MemberReport, Message, ProducerDetails, Result, TreeNode,
    actors::ProducerActor,
    client::{sealed::Running, with_timers},
    messages::producer::SendMessage,
};

/// A running producer. Cheap to clone, usable from any thread.
///
/// A send runs within the future of its caller. When the last clone is dropped without
/// [`shutdown`](Self::shutdown), the producer says so in the log and takes leave of the servers.
#[derive(Clone)]
pub struct Producer(Arc<Handle>);

struct Handle {
    publication: Arc<Publication>,
    actor: Addr<ProducerActor>,
}

impl Producer {
    pub(super) fn new(publication: Arc<Publication>, actor: Addr<ProducerActor>) -> Self {
        Self(Arc::new(Handle { publication, actor }))
    }

    /// The id the servers know this producer by.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.0.publication.member.client_id
    }

    /// Sends a message and waits for the server's word that it is stored.
    ///
    /// Endpoints in trouble are avoided: the next attempt goes to another broker at once, with
    /// the same message id. The future completes within the
    /// [send time-out](crate::ProducerBuilder::send_timeout), whatever the servers do.
    ///
    /// # Errors
    /// The last one, after all attempts that made sense.
    /// [`is_definite`](crate::Error::is_definite) says whether the message is certainly not
    /// stored; otherwise it may be, once for each attempt.
    /// [`TypeConflict`](crate::ErrorKind::TypeConflict), [`TooLarge`](crate::ErrorKind::TooLarge)
    /// and [`Full`](crate::ErrorKind::Full) mostly come without any request.
    ///
    /// Dropping the future gives its place back at once; a request under way may still be stored.
    pub async fn send(&self, message: Message) -> Result<SendReceipt> {
        let Publication { member, .. } = &*self.0.publication;
        let sending = pin!(self.0.publication.send(message));
        with_timers(&member.host.runtime, sending).await
    }

    /// Sends messages, up to 256 at a time, and returns a result for each in their order. With
    /// [batching](crate::ProducerBuilder::batching) as many are under way as fill its requests.
    ///
    /// It waits for room in any case, and the time-out of each message counts from when it has
    /// it. Messages are not stored in their order.
    ///
    /// Dropping the future drops what is not sent.
    pub async fn send_all(
        &self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Vec<Result<SendReceipt>> {
        let messages = messages.into_iter().collect();
        let Publication { member, .. } = &*self.0.publication;
        let sending = pin!(self.0.publication.send_all(messages));
        with_timers(&member.host.runtime, sending).await
    }

    /// Where actors send their messages to, for pipelines that end in a topic. It does not keep
    /// the producer running: somebody has to hold a handle.
    #[must_use]
    pub fn recipient(&self) -> Recipient<SendMessage> {
        self.0.actor.clone().recipient()
    }

    /// Stops the producer: takes no more messages, lets those in flight finish, cuts off what
    /// takes longer than `grace`, and takes leave of the servers. Returns within `grace` and a
    /// second, whatever the servers do.
    ///
    /// Calling it again gives the same report: the first grace counts, at most a year of it, and
    /// later calls wait for that end. Cancel safe: the shutdown goes on.
    pub async fn shutdown(&self, grace: Duration) -> ProducerShutdownReport {
        let Publication { member, .. } = &*self.0.publication;
        let ending = pin!(self.0.publication.end(grace));
        with_timers(&member.host.runtime, ending).await
    }

    /// Waits until the producer has failed for good, because a part of it failed more often than
    /// its restart policy allows. Never ends after a shutdown. Cancel safe.
    pub async fn failed(&self) -> Error {
        self.0.publication.member.failed().await
    }

    /// How it is: the value now, and a wake-up for each change. It lives on after the shutdown.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Health> {
        self.0.publication.member.health()
    }

    /// Everything that happens in it from now on. One who reads slower than it happens misses the
    /// oldest beyond 256. It ends when the last handle is dropped and it is shut down.
    pub fn events(&self) -> impl Stream<Item = Event> + Send + Unpin + 'static {
        self.0.publication.member.events.stream()
    }

    /// Tells an actor the same, one at a time, until it is gone.
    pub fn events_to(&self, listener: Recipient<Event>) {
        self.0.publication.member.tell_events(listener);
    }

    /// What happened since the start.
    #[must_use]
    pub fn stats(&self) -> ProducerStats {
        let Publication {
            stats,
            in_flight,
            role,
            member,
            ..
        } = &*self.0.publication;
        let (messages, bytes) = in_flight.used();
        ProducerStats {
            sent: stats.sent.get(),
            failed: stats.failed.get(),
            retries: stats.retries.get(),
            requests: stats.requests.get(),
            batches: stats.batches.get(),
            restarts: member.restarts(),
            in_flight_messages: messages,
            in_flight_bytes: bytes,
            topics: role.topic_count(),
            sessions: member.sessions.len(),
            actors: member.live.actors(),
            tasks: member.live.tasks(),
        }
    }

    /// The producer and its actors with their figures, as they are now. Read on demand: it costs
    /// nothing while nobody asks.
    #[must_use]
    pub fn tree(&self) -> TreeNode {
        let (details, children) = self.look();
        self.0.publication.member.node(details, children)
    }

    /// Makes the next poll of an actor panic: `routes`, `producer` or `session` (every one).
    #[cfg(feature = "test-hooks")]
    pub fn crash(&self, actor: &str) {
        self.0.publication.member.crash(actor);
    }
}

impl Running for Producer {
    async fn failed(&self) -> Error {
        self.failed().await
    }

    async fn shutdown(&self, grace: Duration) -> MemberReport {
        MemberReport::Producer(self.shutdown(grace).await)
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.health()
    }

    fn look(&self) -> (Details, Vec<TreeNode>) {
        let Publication {
            in_flight,
            options,
            role,
            member,
            ..
        } = &*self.0.publication;
        let (in_flight_messages, in_flight_bytes) = in_flight.used();
        let details = ProducerDetails {
            in_flight_messages,
            max_in_flight_messages: options.max_in_flight,
            in_flight_bytes,
            max_in_flight_bytes: options.max_in_flight_bytes,
            topics: role.topic_count(),
        };
        (Details::Producer(details), member.nodes())
    }

    /// It has no handlers.
    fn is_calling(&self) -> bool {
        false
    }

    fn abandon(&self) {
        abandon(&self.0.publication);
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Producer")
            .field("client_id", &self.client_id())
            .finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        abandon(&self.publication);
    }
}

/// Counters since the start of a producer, and what it holds right now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProducerStats {
    /// Messages stored by a server.
    pub sent: u64,
    /// Messages whose send failed, those cut off by a shutdown included. Those that found no
    /// room or a closed producer are not.
    pub failed: u64,
    /// Requests beyond the first of a message.
    pub retries: u64,
    /// Requests with messages.
    pub requests: u64,
    /// Those of them with more than one.
    pub batches: u64,
    /// Restarts of actors.
    pub restarts: u64,
    /// Messages in flight.
    pub in_flight_messages: usize,
    /// Bytes of the bodies of these.
    pub in_flight_bytes: usize,
    /// Topics declared or sent to.
    pub topics: usize,
    /// Sessions with endpoints.
    pub sessions: usize,
    /// Actors alive.
    pub actors: usize,
    /// Tasks and timers of these actors.
    pub tasks: usize,
}
