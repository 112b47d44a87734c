//! One send: from its place among those in flight to its receipt.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::select_all, stream::FuturesOrdered};
use rocketmq_proto::v2 as pb;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, sleep, timeout_at},
};

use tracing::Instrument;

use super::{
    SendReceipt, WhenFull,
    attempts::{Journey, Verdict, judge},
    lane::{Choice, Health, Lane},
    limits::Room,
    publication::Publication,
};
use crate::{
    Error, ErrorKind, Result,
    member::get_route,
    model::{
        Endpoints, Message,
        delays::Delays,
        message::{
            encoded::{Encoded, SendRequest},
            proto::Stamp,
        },
        queue::MessageQueue,
    },
    rpc::check,
};

/// Most messages that one call with many has in flight. More of them would be no faster, but wait
/// at the server while their time runs, and a message whose time is over may be stored twice.
const WINDOW: usize = 256;
/// Between two tries of a route that could not be fetched.
const ROUTE_DELAYS: Delays = Delays::doubling(Duration::from_millis(100), Duration::from_secs(1));
/// An endpoint that does not answer within this time (or that of a request) is isolated.
const FAIR: Duration = Duration::from_secs(1);
/// How long an endpoint that does not answer the settings is left alone.
const NOT_READY: Duration = Duration::from_millis(100);

/// What an attempt came to.
#[derive(Debug)]
pub(super) enum Step {
    Stored(Stored),
    /// It failed, or never left: another may do better.
    Again,
    /// The next one has to be without company.
    Alone,
}

/// Where a message is stored, and its result if the server gave it one of its own.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) queue: MessageQueue,
    pub(super) entry: Option<pb::SendResultEntry>,
}

impl Publication {
    /// Sends one message within the total budget.
    pub(crate) async fn send(self: &Arc<Self>, message: Message) -> Result<SendReceipt> {
        let started = Instant::now();
        let bytes = message.body().len();
        let room = match (self.in_flight.try_enter(bytes), self.options.when_full) {
            (Err(full), WhenFull::Wait) if full.kind() == ErrorKind::Full => {
                let deadline = started + self.options.send_timeout;
                self.in_flight.enter_by(bytes, deadline).await
            }
            (entered, _) => entered,
        };
        let room = room.map_err(|error| self.explain(error))?;
        self.dispatch(message, room, started).await
    }

    /// A producer that failed for good says so, rather than that it is closed.
    fn explain(&self, error: Error) -> Error {
        match (error.kind(), self.member.failure()) {
            (ErrorKind::Closed, Some(failure)) => failure,
            _ => error,
        }
    }

    /// Sends messages side by side as far as there is room. The budget of each begins when it
    /// gets its room.
    pub(super) async fn send_all(
        self: &Arc<Self>,
        messages: Vec<Message>,
    ) -> Vec<Result<SendReceipt>> {
        let mut results = Vec::with_capacity(messages.len());
        let window = Semaphore::new(WINDOW.max(self.options.batching.breadth()));
        let mut sending = FuturesOrdered::new();
        for message in messages {
            let bytes = message.body().len();
            let room = async {
                // Never closed.
                let place = window.acquire().await.ok();
                (place, self.in_flight.enter(bytes).await)
            };
            tokio::pin!(room);
            let (place, room) = loop {
                tokio::select! {
                    entered = &mut room => break entered,
                    Some(sent) = sending.next() => results.push(sent),
                }
            };
            sending.push_back(self.begin(message, room, place));
        }
        while let Some(sent) = sending.next().await {
            results.push(sent);
        }
        results
    }

    async fn begin(
        self: &Arc<Self>,
        message: Message,
        room: Result<Room<'_>>,
        _place: Option<SemaphorePermit<'_>>,
    ) -> Result<SendReceipt> {
        let room = room.map_err(|error| self.explain(error))?;
        self.dispatch(message, room, Instant::now()).await
    }

    /// Sends a message that has its room, until it is cut off by the end of the producer.
    async fn dispatch(
        self: &Arc<Self>,
        message: Message,
        _room: Room<'_>,
        started: Instant,
    ) -> Result<SendReceipt> {
        let Self { options, stats, .. } = &**self;
        let mut journey = Journey::new(started, options.send_timeout, options.max_attempts);
        let span = tracing::info_span!(
            "send",
            messaging.system = "rocketmq",
            messaging.operation.name = "send",
            messaging.destination.name = message.topic(),
            messaging.message.id = tracing::field::Empty,
        );
        let delivered = {
            // By reference: what waits for the token would hold it twice.
            let delivering = pin!(self.deliver(&message, &mut journey).instrument(span));
            let cut = &self.in_flight.cut;
            cut.run_until_cancelled(delivering).await
        };
        stats.retries.add(journey.retries() as usize);
        let sent = delivered.unwrap_or_else(|| {
            stats.cut_off.one();
            let end = "the producer was shut down before the message was sent";
            Err(self.explain(Error::new(ErrorKind::Closed, end)))
        });
        let sent = sent.map_err(|error| journey.give_up(error, Instant::now()));
        match &sent {
            Ok(_) => stats.sent.one(),
            Err(error) => {
                stats.failed.one();
                tracing::debug!(member = %self.member.path, %error, "not sent");
            }
        }
        sent
    }

    async fn deliver(
        self: &Arc<Self>,
        message: &Message,
        journey: &mut Journey,
    ) -> Result<SendReceipt> {
        if let Some(error) = self.member.failure() {
            return Err(error);
        }
        let max_body = self.role.publishing.load().max_body;
        message.check_size(max_body)?;
        // One time and one id for all attempts: a delay does not shift, and a copy is recognised.
        let now = self.member.config.environment.clock.now();
        let id = self.ids.next_id(now);
        tracing::Span::current().record("messaging.message.id", id.as_str());
        let stamp = Stamp {
            namespace: &self.member.config.namespace,
            message_id: id.as_str(),
            born_host: &self.born_host,
            now,
            transactional: false,
        };
        let complete = message.to_proto(&stamp);
        let mut company = self.company(&complete);
        let encoded = Encoded::of(complete)
            .map_err(|error| Error::new(ErrorKind::TooLarge, error.to_string()))?;
        loop {
            let lane = self.open(message.topic(), journey).await?;
            self.check_type(message, &lane)?;
            let queue = self.queue(&lane, message, journey).await?;
            let encoded = encoded.clone();
            let step = match company {
                Some(company) => {
                    self.together(&lane, queue, &id, encoded, company, journey)
                        .await?
                }
                None => self.alone(&lane, queue, encoded, journey).await?,
            };
            match step {
                Step::Stored(Stored { queue, entry }) => {
                    return Ok(SendReceipt::new(id, queue, entry));
                }
                Step::Again => {}
                Step::Alone => company = None,
            }
        }
    }

    /// One attempt with a request of its own.
    async fn alone(
        &self,
        lane: &Lane,
        queue: MessageQueue,
        message: Encoded,
        journey: &mut Journey,
    ) -> Result<Step> {
        let generation = self.member.sessions.generation(&queue.endpoints);
        let limit = journey.share(Instant::now());
        if limit.is_zero() {
            return Err(journey.last_error());
        }
        match self.attempt(&queue, message, limit, journey).await {
            Ok(entry) => {
                self.member.isolation.rejoin(&queue.endpoints);
                lane.note_accepted();
                let entry = Some(entry);
                Ok(Step::Stored(Stored { queue, entry }))
            }
            Err(error) => {
                let verdict = judge(&error, lane.has_accepted());
                self.react(verdict, &error, limit, &queue.endpoints, generation);
                self.pause(verdict, &queue, error, journey).await?;
                Ok(Step::Again)
            }
        }
    }

    /// The lane of a topic, fetched first if this is the first message for it.
    async fn open(&self, topic: &str, journey: &Journey) -> Result<Arc<Lane>> {
        if let Some(lane) = self.lane(topic) {
            return Ok(lane);
        }
        self.role.check_room(topic)?;
        let topic: Arc<str> = topic.into();
        let fetched = timeout_at(journey.deadline(), self.fetch(&topic, journey)).await;
        let unanswered = || {
            let budget = self.options.send_timeout;
            Error::new(
                ErrorKind::Timeout,
                format!("no route of topic {topic} within {budget:?}"),
            )
            .endpoint(&self.member.config.endpoints)
        };
        fetched.unwrap_or_else(|_| Err(unanswered()))
    }

    async fn fetch(&self, topic: &Arc<str>, journey: &Journey) -> Result<Arc<Lane>> {
        let mut rng = self.member.config.environment.rng();
        let mut delays = ROUTE_DELAYS.start();
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match get_route(&self.routes, topic).await {
                Ok(_) => match self.adopt(topic) {
                    Some(lane) => return Ok(lane),
                    None => Error::new(ErrorKind::Server, "the route is not committed"),
                },
                Err(error) => error,
            };
            let wait = delays.next(&mut rng);
            let last = tries >= self.options.max_attempts || !error.is_retryable();
            if last || journey.ends_within(wait, Instant::now()) {
                return Err(error);
            }
            sleep(wait).await;
        }
    }

    fn check_type(&self, message: &Message, lane: &Lane) -> Result<()> {
        let kind = message.message_type();
        if !self.role.publishing.load().validate_type || lane.route.accepts_type(kind) {
            return Ok(());
        }
        let accepted: Vec<_> = lane
            .route
            .accepted_types()
            .iter()
            .map(ToString::to_string)
            .collect();
        Err(Error::new(
            ErrorKind::TypeConflict,
            format!(
                "topic {} takes messages of type {}, this one is {kind}",
                lane.route.topic,
                accepted.join(", ")
            ),
        ))
    }

    /// The queue for the next attempt. Its endpoints are ready.
    async fn queue(
        &self,
        lane: &Lane,
        message: &Message,
        journey: &mut Journey,
    ) -> Result<MessageQueue> {
        if journey.tried().is_empty() {
            let queue = lane.next(message)?;
            let isolated = || self.member.isolation.is_isolated(&queue.endpoints);
            if self.member.is_ready(&queue.endpoints) && (message.group().is_some() || !isolated())
            {
                return Ok(queue);
            }
        }
        let breadth = usize::try_from(self.options.max_attempts).unwrap_or(1);
        loop {
            let health = self.health(lane);
            match lane.choose(message, &health, journey.tried(), breadth)? {
                Choice::Queue(queue) => return Ok(queue),
                Choice::AllTried => {
                    let mut rng = self.member.config.environment.rng();
                    let wait = journey.next_round(&mut rng);
                    if journey.ends_within(wait, Instant::now()) {
                        return Err(journey.last_error());
                    }
                    sleep(wait).await;
                }
                Choice::NoneReady => self.readiness(lane, message, journey).await?,
            }
        }
    }

    fn health(&self, lane: &Lane) -> Health {
        let member = &self.member;
        let those = |is: &dyn Fn(&Endpoints) -> bool| {
            let all = lane.endpoints.iter();
            all.filter(|endpoints| is(endpoints)).cloned().collect()
        };
        Health {
            not_ready: those(&|endpoints| !member.is_ready(endpoints)),
            isolated: those(&|endpoints| member.isolation.is_isolated(endpoints)),
        }
    }

    /// Waits until an endpoint may be sent to. That takes its time from the attempts.
    async fn readiness(&self, lane: &Lane, message: &Message, journey: &mut Journey) -> Result<()> {
        let endpoints = match message.group() {
            Some(_) => vec![lane.next(message)?.endpoints],
            None => lane.endpoints.clone(),
        };
        let now = Instant::now();
        let until = now + journey.share(now);
        let any = select_all(endpoints.iter().map(|at| self.ready(at).boxed()));
        if timeout_at(until, any).await.is_ok() || journey.missed() {
            return Ok(());
        }
        Err(self.unready(&lane.route.topic, &endpoints))
    }

    /// Why none of these endpoints may be sent to.
    fn unready(&self, topic: &str, endpoints: &[Endpoints]) -> Error {
        let text = format!("topic {topic}: the settings of this producer are not answered");
        let sessions = &self.member.sessions;
        let failure = |at| sessions.get(at).and_then(|session| session.life.failure());
        if let Some(cause) = endpoints.iter().find_map(failure) {
            return cause.context(text);
        }
        let names: Vec<_> = endpoints.iter().map(ToString::to_string).collect();
        Error::new(ErrorKind::Timeout, text).endpoint(names.join(", "))
    }

    async fn ready(&self, endpoints: &Endpoints) {
        while let Err(error) = self.member.prepare(&self.routes, endpoints).await {
            tracing::debug!(endpoint = %endpoints, %error, "no send without settings");
            sleep(NOT_READY).await;
        }
    }

    /// One request to one queue.
    async fn attempt(
        &self,
        queue: &MessageQueue,
        message: Encoded,
        limit: Duration,
        journey: &mut Journey,
    ) -> Result<pb::SendResultEntry> {
        journey.departs();
        self.stats.requests.one();
        let request = SendRequest::new(vec![message], queue.id);
        let reply = self
            .member
            .rpc
            .send_message(&queue.endpoints, request, limit)
            .await?;
        only_entry(reply.entries).map_err(|error| {
            error
                .operation("SendMessage")
                .endpoint(&queue.endpoints)
                .possibly()
        })
    }

    /// Lets others know what the failure of a request with so much time says of its endpoints.
    pub(super) fn react(
        &self,
        verdict: Verdict,
        error: &Error,
        limit: Duration,
        endpoints: &Endpoints,
        generation: Option<u64>,
    ) {
        // A time-out that was cut short says nothing about the endpoint.
        let fair = limit >= FAIR.min(self.member.rpc.timeout());
        if !fair && error.kind() == ErrorKind::Timeout {
            return;
        }
        match verdict {
            Verdict::Elsewhere => self.member.isolation.isolate(endpoints),
            Verdict::SettingsLost => {
                let session = self.member.sessions.get(endpoints);
                if let (Some(session), Some(generation)) = (session, generation) {
                    session.settings_lost(generation);
                }
            }
            Verdict::Final | Verdict::Throttled | Verdict::Doubtful => {}
        }
    }

    /// Waits until the next attempt may start, or ends with the error.
    pub(super) async fn pause(
        &self,
        verdict: Verdict,
        queue: &MessageQueue,
        error: Error,
        journey: &mut Journey,
    ) -> Result<()> {
        let wait = {
            let policy = &self.role.publishing.load().retry;
            let mut rng = self.member.config.environment.rng();
            journey.failed(&queue.broker_name, &error, verdict, policy, &mut rng)
        };
        let now = Instant::now();
        match wait.filter(|wait| !journey.ends_within(*wait, now)) {
            Some(wait) => {
                tracing::debug!(member = %self.member.path, %error, ?wait, "sent again");
                sleep(wait).await;
                Ok(())
            }
            None => Err(error),
        }
    }
}

/// The one result of the one message.
fn only_entry(mut entries: Vec<pb::SendResultEntry>) -> Result<pb::SendResultEntry> {
    match (entries.pop(), entries.len()) {
        (Some(entry), 0) => check(entry.status.as_ref()).map(|()| entry),
        (entry, others) => {
            let count = others + usize::from(entry.is_some());
            Err(Error::new(
                ErrorKind::Protocol,
                format!("{count} results for one message"),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(code: pb::Code) -> pb::SendResultEntry {
        pb::SendResultEntry {
            status: Some(pb::Status {
                code: code.into(),
                message: String::new(),
            }),
            ..pb::SendResultEntry::default()
        }
    }

    #[test]
    fn only_one_good_result_is_a_success() {
        let kind = |entries| only_entry(entries).map_err(|error| error.kind());
        assert!(kind(vec![entry(pb::Code::Ok)]).is_ok());
        for (entries, expected) in [
            (vec![], ErrorKind::Protocol),
            (vec![entry(pb::Code::Ok); 2], ErrorKind::Protocol),
            (vec![pb::SendResultEntry::default()], ErrorKind::Protocol),
            (
                vec![entry(pb::Code::MasterPersistenceTimeout)],
                ErrorKind::Timeout,
            ),
            (vec![entry(pb::Code::HaNotAvailable)], ErrorKind::Server),
        ] {
            assert_eq!(kind(entries).err(), Some(expected));
        }
    }
}
