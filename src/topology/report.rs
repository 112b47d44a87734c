//! What a supervising future tells the world.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{
    Exit,
    control::{ChildState, Status},
    event::{EventKind, Events},
    supervisor::ChildPolicy,
    tasks::Generation,
    vitals::Vitals,
};

/// Publishes the state and the events of one child. However the supervising future goes, even
/// with its thread, an end is reported.
#[derive(Debug)]
pub(super) struct Reporter {
    path: Arc<str>,
    status: watch::Sender<Status>,
    events: Events,
    vitals: Vitals,
}

impl Reporter {
    pub(super) fn new(path: Arc<str>, generation: Generation, policy: &ChildPolicy) -> Self {
        let vitals = policy.vitals.clone();
        vitals.state(&path, &ChildState::Starting);
        let status = watch::Sender::new(Status {
            state: ChildState::Starting,
            generation,
            restarts: 0,
        });
        Self {
            path,
            status,
            events: policy.events.clone(),
            vitals,
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    pub(super) fn generation_starts(&self, generation: Generation) {
        self.status.send_modify(|status| {
            status.state = ChildState::Starting;
            status.generation = generation;
            status.restarts += 1;
        });
        self.vitals.state(&self.path, &ChildState::Starting);
    }

    pub(super) fn up(&self, Generation(generation): Generation) {
        self.state(ChildState::Running);
        tracing::debug!(actor = &*self.path, generation, "started");
        self.emit(EventKind::Started { generation });
    }

    pub(super) fn down(&self, exit: Exit) {
        self.state(ChildState::Down(exit));
    }

    pub(super) fn restarting(&self, cause: Exit, attempt: u32, delay: Duration) {
        self.state(ChildState::Restarting {
            cause: cause.clone(),
            delay,
        });
        tracing::warn!(actor = &*self.path, %cause, attempt, ?delay, "restarting");
        self.emit(EventKind::Restarting {
            cause,
            attempt,
            delay,
        });
    }

    /// Reports the end. Only the first counts.
    pub(super) fn end(&self, state: ChildState) {
        if self.status.borrow().state.end().is_some() {
            return;
        }
        let event = match state.clone() {
            ChildState::GaveUp(cause) => {
                tracing::error!(actor = &*self.path, %cause, "gave up");
                EventKind::GaveUp { cause }
            }
            ChildState::Stopped(exit) => {
                tracing::debug!(actor = &*self.path, %exit, "stopped");
                EventKind::Stopped { exit }
            }
            _ => return,
        };
        self.state(state);
        self.emit(event);
    }

    fn state(&self, state: ChildState) {
        self.vitals.state(&self.path, &state);
        self.status.send_modify(|status| status.state = state);
    }

    fn emit(&self, kind: EventKind) {
        self.events.emit(&self.path, kind);
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        let exit = Exit::Failed("the thread it ran on has ended".to_owned());
        self.end(ChildState::Stopped(exit));
    }
}
