//! What a tree, and the producers and consumers in it, report.

use std::{sync::Arc, time::Duration};

use actix::{Message, Recipient};
use futures::{Stream, StreamExt, stream};
use tokio::sync::broadcast::{self, error::RecvError};

use super::{Exit, MemberReport};
use crate::Endpoints;

/// Something that happened to a supervised actor, a producer or a consumer. A message, so that
/// actors can listen.
#[derive(Debug, Clone, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub struct Event {
    /// Whom it happened to: the place in the tree, names joined by `/`. Of a producer or consumer
    /// that is in no topology, it starts with its own name.
    pub path: Arc<str>,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A generation of an actor is up: it survived its `started` hook and the first look at its
    /// mailbox.
    Started {
        /// 1 for the first.
        generation: u64,
    },
    /// It ended and will be started again.
    Restarting {
        /// Why it ended; [`Exit::Shutdown`] when it only follows a sibling.
        cause: Exit,
        /// Which restart in a row this is, from 1; 0 when it only follows a sibling.
        attempt: u32,
        /// How long it waits first.
        delay: Duration,
    },
    /// It failed more often than allowed and stays down.
    GaveUp {
        /// Why it ended the last time.
        cause: Exit,
    },
    /// It ended for good.
    Stopped {
        /// Why.
        exit: Exit,
    },
    /// A server has answered the settings: it may be used.
    SessionUp {
        /// The server.
        endpoint: Endpoints,
    },
    /// A server must not be used until it has answered the settings again.
    SessionDown {
        /// The server.
        endpoint: Endpoints,
        /// Why.
        reason: String,
    },
    /// A server did not answer the settings in time: the routes do without its queues until it
    /// does.
    Quarantined {
        /// The server.
        endpoint: Endpoints,
    },
    /// A route is used from now on.
    RouteCommitted {
        /// Its topic.
        topic: Arc<str>,
        /// How many queues it has.
        queues: usize,
    },
    /// A consumer is to receive from other queues than before.
    AssignmentChanged {
        /// Their topic.
        topic: Arc<str>,
        /// How many came.
        gained: usize,
        /// How many went.
        lost: usize,
    },
    /// A handler of a consumer has run for longer than
    /// [`slow_handler_after`](crate::PushConsumerBuilder::slow_handler_after). Told once for each
    /// delivery.
    HandlerSlow {
        /// The topic of the delivery.
        topic: Arc<str>,
        /// Its id.
        message_id: String,
        /// The name of the handler, where it is an actor that has a
        /// [`ChildRef`](crate::ChildRef).
        handler: Option<Arc<str>>,
        /// How long it has run until now, the time that it waited for an actor included.
        elapsed: Duration,
    },
    /// The thread that runs the handlers of a consumer runs nothing else any more. Every consumer
    /// of the client is told, for none of them gets on.
    ThreadBlocked {
        /// The topic of the delivery whose handler blocks it, if that is one of this consumer.
        topic: Option<Arc<str>>,
        /// Its id.
        message_id: Option<String>,
        /// For how long until now.
        silent: Duration,
    },
    /// An actor with a [`Liveness`](crate::Liveness) did not answer in time. Its generation ends
    /// with that, if it does not block its thread; if it does, when it comes back to life.
    Unresponsive {
        /// The time it had.
        within: Duration,
    },
    /// A consumer was told to receive nothing.
    Paused {
        /// From this topic only, if not from any.
        topic: Option<Arc<str>>,
    },
    /// A consumer was told to receive again.
    Resumed {
        /// From this topic only, if not from all.
        topic: Option<Arc<str>>,
    },
    /// It was shut down.
    Drained {
        /// What became of what it held.
        report: MemberReport,
    },
    /// A thread of a [`sync_pool`](crate::DeliveryHandler::sync_pool) panicked; another takes its
    /// place.
    HandlerThreadLost,
    /// A consumer moved a message to the dead letter topic of its group.
    DeadLettered {
        /// The topic it came from.
        topic: Arc<str>,
        /// Its id.
        message_id: String,
        /// Why.
        reason: String,
    },
}

/// Where events go: to as many listeners as there are, none included.
///
/// A listener that falls behind by more than the capacity misses the oldest ones.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    here: broadcast::Sender<Event>,
    /// Of the tree that this is a part of.
    tree: Option<broadcast::Sender<Event>>,
}

impl Events {
    /// How many events a slow listener may be behind.
    const CAPACITY: usize = 256;

    /// Of what is in no tree, or is the tree.
    pub(crate) fn new() -> Self {
        Self {
            here: broadcast::Sender::new(Self::CAPACITY),
            tree: None,
        }
    }

    /// Of a part of the tree, whose listeners hear everything as well.
    pub(crate) fn part_of(tree: &Self) -> Self {
        Self {
            tree: Some(tree.here.clone()),
            ..Self::new()
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.here.subscribe()
    }

    /// Everything from now on. Ends when nobody is left who could report.
    pub(crate) fn stream(&self) -> impl Stream<Item = Event> + Send + Unpin + 'static {
        stream::unfold(self.subscribe(), |mut events| async move {
            Some((next(&mut events).await?, events))
        })
        .boxed()
    }

    pub(crate) fn emit(&self, path: &Arc<str>, kind: EventKind) {
        let path = Arc::clone(path);
        let event = Event { path, kind };
        // The only error is that nobody listens.
        if let Some(tree) = &self.tree {
            let _ = tree.send(event.clone());
        }
        let _ = self.here.send(event);
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}

/// The next event, `None` when nobody is left who could report. Cancel safe.
pub(crate) async fn next(events: &mut broadcast::Receiver<Event>) -> Option<Event> {
    loop {
        match events.recv().await {
            Ok(event) => return Some(event),
            Err(RecvError::Lagged(missed)) => tracing::debug!(missed, "events were missed"),
            Err(RecvError::Closed) => return None,
        }
    }
}

/// Gives an actor the events at `root` and below, one at a time, until either is gone.
pub(crate) async fn tell(
    root: Arc<str>,
    mut events: broadcast::Receiver<Event>,
    listener: Recipient<Event>,
) {
    while let Some(event) = next(&mut events).await {
        let below = event.path.strip_prefix(&*root);
        if !below.is_some_and(|below| below.is_empty() || below.starts_with('/')) {
            continue;
        }
        // A lost reply is no lost listener: it may have crashed, and come back.
        if listener.send(event).await.is_err() && !listener.connected() {
            return;
        }
    }
}
