//! Whether a producer, a consumer or a topology is well, and if not, why.

use std::{fmt, sync::Arc, time::Duration};

use crate::{ChildState, Endpoints};

/// How a producer, a consumer or a topology is, as a probe of a container platform would ask.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Whether it runs or will by itself: not, when it gave up or was stopped.
    pub live: bool,
    /// Whether it can do its work now.
    pub ready: bool,
    /// All that is amiss. There may be some although it is ready: with one of several servers
    /// gone, for example.
    pub reasons: Vec<Reason>,
}

impl Health {
    pub(crate) fn starting() -> Self {
        Self {
            live: true,
            ready: false,
            reasons: vec![Reason::Starting],
        }
    }
}

/// Something that is amiss.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It is not up yet.
    Starting,
    /// The topic has no committed route.
    NoRoute {
        /// The topic.
        topic: Arc<str>,
    },
    /// The server has not answered this client's settings, or lost them: nothing is sent there and
    /// nothing received. Takes readiness away where it is true of every server.
    NoSession {
        /// The server.
        endpoint: Endpoints,
    },
    /// No receive has succeeded for this time, see
    /// [`unready_after`](crate::PushConsumerBuilder::unready_after).
    NotReceiving {
        /// The limit.
        within: Duration,
    },
    /// The thread that runs its handlers is blocked, see
    /// [`ThreadBlocked`](crate::EventKind::ThreadBlocked).
    ThreadBlocked {
        /// The message whose handler blocks it, if that is one of this consumer.
        message_id: Option<String>,
    },
    /// It receives nothing because it was told so; what it has is handled. No failure: it stays
    /// ready.
    Paused {
        /// The topic, where not all are paused.
        topic: Option<Arc<str>>,
    },
    /// It is being shut down.
    Draining,
    /// It was shut down.
    Stopped,
    /// It failed for good.
    GaveUp {
        /// Why.
        error: String,
    },
    /// A child of the topology is not up.
    Child {
        /// Its place in the tree.
        path: Arc<str>,
        /// Where it is in its life.
        state: ChildState,
    },
    /// A child of the topology does not answer, and its thread may be blocked.
    Unresponsive {
        /// Its place in the tree.
        path: Arc<str>,
    },
    /// Something is amiss in a producer or consumer of the topology.
    Member {
        /// Its place in the tree.
        path: Arc<str>,
        /// What.
        reason: Box<Reason>,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => write!(out, "it is starting"),
            Self::NoRoute { topic } => write!(out, "no route of topic {topic}"),
            Self::NoSession { endpoint } => write!(out, "no session at {endpoint}"),
            Self::NotReceiving { within } => write!(out, "nothing received for {within:?}"),
            Self::ThreadBlocked { message_id: None } => {
                write!(out, "the thread of the handlers is blocked")
            }
            Self::ThreadBlocked {
                message_id: Some(id),
            } => write!(out, "the handler of message {id} blocks its thread"),
            Self::Unresponsive { path } => write!(out, "{path} does not answer"),
            Self::Paused { topic: None } => write!(out, "it is paused"),
            Self::Paused { topic: Some(topic) } => write!(out, "topic {topic} is paused"),
            Self::Draining => write!(out, "it is being shut down"),
            Self::Stopped => write!(out, "it was shut down"),
            Self::GaveUp { error } => write!(out, "it gave up: {error}"),
            Self::Child { path, state } => write!(out, "{path} is {state}"),
            Self::Member { path, reason } => write!(out, "{path}: {reason}"),
        }
    }
}
