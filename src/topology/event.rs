//! What supervision reports.

use std::{sync::Arc, time::Duration};

use tokio::sync::broadcast;

use super::Exit;

/// A turn in the life of a supervised actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifeEvent {
    /// The actor's place in the tree, names joined by `/`.
    pub path: Arc<str>,
    /// What happened to it.
    pub kind: LifeEventKind,
}

/// What happened to a supervised actor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LifeEventKind {
    /// A generation of it is up: it survived its `started` hook and the first look at its mailbox.
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
}

/// Where events go: to as many listeners as there are, none included.
///
/// A listener that falls behind by more than the capacity misses the oldest ones.
#[derive(Debug, Clone)]
pub(crate) struct Events(broadcast::Sender<LifeEvent>);

impl Events {
    /// How many events a slow listener may be behind.
    const CAPACITY: usize = 256;

    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(Self::CAPACITY))
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<LifeEvent> {
        self.0.subscribe()
    }

    pub(super) fn emit(&self, path: &Arc<str>, kind: LifeEventKind) {
        let path = Arc::clone(path);
        // The only error is that nobody listens.
        let _ = self.0.send(LifeEvent { path, kind });
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}
