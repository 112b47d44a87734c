//! Figures of the nodes of a tree.

use std::{fmt, sync::Arc};

use crate::Endpoints;

/// What a look at the tree shows of a node beside its state, as it is at that moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Details {
    /// Nothing more, or it is not up.
    #[default]
    None,
    /// Of an actor of the application that has a [`ChildRef`](crate::ChildRef).
    Actor(ActorDetails),
    /// Of a push consumer.
    Consumer(ConsumerDetails),
    /// Of a producer.
    Producer(ProducerDetails),
    /// Of the session with an endpoint.
    Session(SessionDetails),
    /// Of a queue that a consumer receives from.
    Queue(QueueDetails),
}

/// An actor that consumers may deliver to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActorDetails {
    /// Deliveries that wait for the actor, or that it handles.
    pub deliveries: usize,
}

/// What a push consumer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerDetails {
    /// Its group.
    pub group: Arc<str>,
    /// The topics that are paused.
    pub paused: Vec<Arc<str>>,
    /// Handlers that run.
    pub handlers: usize,
    /// How many may.
    pub concurrency: usize,
    /// Messages cached, those being handled and settled included.
    pub cached_messages: usize,
    /// How many may be.
    pub max_cached_messages: usize,
    /// Bytes of the bodies of these.
    pub cached_bytes: usize,
    /// How many they may have.
    pub max_cached_bytes: usize,
    /// Receives under way.
    pub receives: usize,
    /// Deliveries neither settled nor given back.
    pub unsettled: usize,
}

/// What a producer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProducerDetails {
    /// Messages in flight.
    pub in_flight_messages: usize,
    /// How many may be.
    pub max_in_flight_messages: usize,
    /// Bytes of the bodies of these.
    pub in_flight_bytes: usize,
    /// How many they may have.
    pub max_in_flight_bytes: usize,
    /// Topics declared or sent to.
    pub topics: usize,
}

/// How it is with one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionDetails {
    /// The endpoint.
    pub endpoint: Endpoints,
    /// Whether it has answered the settings, and may be used.
    pub ready: bool,
}

/// How far one queue is consumed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueDetails {
    /// Its topic.
    pub topic: Arc<str>,
    /// Its broker.
    pub broker: Arc<str>,
    /// Its number at that broker; -1 where the server names all queues of the broker at once.
    pub id: i32,
    /// Where it is received from.
    pub endpoint: Endpoints,
    /// Whether it is assigned; if not, it only settles what it has.
    pub assigned: bool,
    /// Messages whose handler has not started.
    pub waiting: usize,
    /// Deliveries neither settled nor given back, those that wait included.
    pub unsettled: usize,
    /// Its receive loops. One may be waiting: for room in the cache, or the end of a pause.
    pub receive_loops: usize,
    /// The offset of the message that came last.
    pub received: Option<i64>,
    /// The offset of the message whose handler was started last.
    pub handed_out: Option<i64>,
}

impl fmt::Display for Details {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Actor(actor) => write!(out, "deliveries {}", actor.deliveries),
            Self::Consumer(consumer) => consumer.fmt(out),
            Self::Producer(producer) => producer.fmt(out),
            Self::Session(session) if session.ready => write!(out, "settings applied"),
            Self::Session(_) => write!(out, "settings not answered"),
            Self::Queue(queue) => queue.fmt(out),
        }
    }
}

impl fmt::Display for ConsumerDetails {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            handlers,
            concurrency,
            cached_messages,
            max_cached_messages,
            cached_bytes,
            max_cached_bytes,
            receives,
            unsettled,
            ..
        } = self;
        write!(
            out,
            "handlers {handlers}/{concurrency}, cached {cached_messages}/{max_cached_messages} \
             messages {cached_bytes}/{max_cached_bytes} bytes, receives {receives}, \
             unsettled {unsettled}"
        )?;
        match &self.paused[..] {
            [] => Ok(()),
            topics => write!(out, ", paused {}", topics.join(" ")),
        }
    }
}

impl fmt::Display for ProducerDetails {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            in_flight_messages,
            max_in_flight_messages,
            in_flight_bytes,
            max_in_flight_bytes,
            topics,
        } = self;
        write!(
            out,
            "in flight {in_flight_messages}/{max_in_flight_messages} messages \
             {in_flight_bytes}/{max_in_flight_bytes} bytes, topics {topics}"
        )
    }
}

impl fmt::Display for QueueDetails {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            waiting,
            unsettled,
            receive_loops,
            ..
        } = self;
        let offset = |offset: Option<i64>| offset.map_or("-".to_owned(), |at| at.to_string());
        let (received, handed_out) = (offset(self.received), offset(self.handed_out));
        write!(
            out,
            "waiting {waiting}, unsettled {unsettled}, receive loops {receive_loops}, \
             received {received}, handed out {handed_out}"
        )?;
        if self.assigned {
            Ok(())
        } else {
            write!(out, ", no longer assigned")
        }
    }
}
