//! The health of one producer or consumer.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use super::Member;
use crate::{ChildState, Exit, Health, health::Reason};

/// Where a member is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Starting,
    Running,
    Draining,
    Stopped,
}

/// What is known of a member's health beside its routes and sessions, and what was published.
#[derive(Debug)]
pub(super) struct Condition {
    known: Mutex<Known>,
    published: watch::Sender<Health>,
}

#[derive(Debug, Clone)]
struct Known {
    phase: Phase,
    /// Nothing was received for this time.
    silent: Option<Duration>,
    /// What was paused on purpose.
    paused: Vec<Reason>,
    /// Its thread runs nothing any more.
    blocked: Option<Reason>,
}

impl Default for Condition {
    fn default() -> Self {
        Self {
            known: Mutex::new(Known {
                phase: Phase::Starting,
                silent: None,
                paused: Vec::new(),
                blocked: None,
            }),
            published: watch::Sender::new(Health::starting()),
        }
    }
}

impl Condition {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    /// A subscription to the health.
    pub(crate) fn health(&self) -> watch::Receiver<Health> {
        self.condition.published.subscribe()
    }

    /// The member has come to this phase of its life; there is no way back.
    pub(crate) fn enter(&self, phase: Phase) {
        let mut known = self.condition.known();
        known.phase = known.phase.max(phase);
        drop(known);
        self.review();
    }

    /// Nothing was received for this time; or something was.
    pub(crate) fn silent(&self, within: Option<Duration>) {
        let before = std::mem::replace(&mut self.condition.known().silent, within);
        if before != within {
            self.review();
        }
    }

    /// Its thread is blocked, or no longer.
    pub(crate) fn blocked(&self, reason: Option<Reason>) {
        self.condition.known().blocked = reason;
        self.review();
    }

    /// What of it is paused now.
    pub(crate) fn paused(&self, reasons: Vec<Reason>) {
        self.condition.known().paused = reasons;
        self.review();
    }

    /// Where it is in its life, as one would say of a supervised actor.
    pub(crate) fn state(&self) -> ChildState {
        if let Some(error) = self.failure() {
            return ChildState::GaveUp(Exit::Failed(error.to_string()));
        }
        match self.condition.known().phase {
            Phase::Starting => ChildState::Starting,
            Phase::Running | Phase::Draining => ChildState::Running,
            Phase::Stopped => ChildState::Stopped(Exit::Shutdown),
        }
    }

    /// Looks at everything again, and publishes the health if it changed. To be called after each
    /// change of what it is made of.
    pub(crate) fn review(&self) {
        // Looked at under the lock, so that an older view never replaces a newer one.
        self.condition.published.send_if_modified(|published| {
            let now = self.assess();
            let changed = *published != now;
            *published = now;
            changed
        });
    }

    fn assess(&self) -> Health {
        let Known {
            phase,
            silent,
            paused,
            blocked,
        } = self.condition.known().clone();
        let ended = match (self.failure(), phase) {
            (Some(error), _) => Some(Reason::GaveUp {
                error: error.to_string(),
            }),
            (None, Phase::Stopped) => Some(Reason::Stopped),
            (None, _) => None,
        };
        if let Some(reason) = ended {
            return Health {
                live: false,
                ready: false,
                reasons: vec![reason],
            };
        }
        let mut reasons = Vec::new();
        match phase {
            Phase::Starting => reasons.push(Reason::Starting),
            Phase::Draining | Phase::Stopped => reasons.push(Reason::Draining),
            Phase::Running => {}
        }
        reasons.extend(blocked);
        reasons.extend(silent.map(|within| Reason::NotReceiving { within }));
        let routes = self.routes.load();
        let unrouted = self.role.topics().into_iter();
        reasons.extend(
            unrouted
                .filter(|topic| routes.get(topic).is_none())
                .map(|topic| Reason::NoRoute { topic }),
        );
        let ready_but_for_sessions = reasons.is_empty();
        let wanted = self.sessions.wanted();
        let down = wanted.iter().filter(|endpoint| !self.is_ready(endpoint));
        reasons.extend(down.cloned().map(|endpoint| Reason::NoSession { endpoint }));
        let some_up = wanted.is_empty() || reasons.len() < wanted.len();
        reasons.extend(paused);
        Health {
            live: true,
            ready: ready_but_for_sessions && some_up,
            reasons,
        }
    }
}
