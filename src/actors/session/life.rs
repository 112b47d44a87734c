//! What others may know of a session: whether its settings are applied.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use crate::{Error, gate::Witness, model::Endpoints};

/// The life of one session, as seen from outside; it outlasts restarts of the actor.
///
/// A generation starts with the actor, and ends when it restarts, when the transport is rebuilt,
/// or when the server lost the settings. The end of a stream does not end it.
#[derive(Debug)]
pub(crate) struct SessionLife {
    endpoints: Endpoints,
    generation: AtomicU64,
    /// The generation whose settings are applied; 0 for none.
    applied: AtomicU64,
    /// Why the settings are not applied, if that is known.
    failure: Mutex<Option<Error>>,
}

impl SessionLife {
    pub(crate) fn new(endpoints: Endpoints) -> Arc<Self> {
        Arc::new(Self {
            endpoints,
            generation: AtomicU64::new(0),
            applied: AtomicU64::new(0),
            failure: Mutex::default(),
        })
    }

    pub(crate) fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether receives and sends may go there now.
    pub(crate) fn is_ready(&self) -> bool {
        let generation = self.generation();
        generation > 0 && self.applied.load(Ordering::Acquire) == generation
    }

    /// Why the last exchange of settings failed, if none was good since.
    pub(crate) fn failure(&self) -> Option<Error> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone()
    }

    pub(super) fn set_failure(&self, error: Option<Error>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    /// The witness of the current generation, if its settings are applied.
    pub(super) fn witness(self: &Arc<Self>) -> Option<SettingsApplied> {
        self.is_ready().then(|| SettingsApplied {
            life: self.clone(),
            generation: self.generation(),
        })
    }

    /// Ends the current generation; nothing is applied in the next one yet.
    pub(super) fn next_generation(&self) -> u64 {
        let next = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        self.applied.store(0, Ordering::Release);
        next
    }

    /// The settings of the current generation are applied.
    pub(super) fn apply(self: &Arc<Self>) -> SettingsApplied {
        let generation = self.generation();
        self.set_failure(None);
        self.applied.store(generation, Ordering::Release);
        SettingsApplied {
            life: self.clone(),
            generation,
        }
    }
}

/// Proof that the settings of an endpoint were answered and applied. Only its session makes it.
#[derive(Debug, Clone)]
pub(crate) struct SettingsApplied {
    life: Arc<SessionLife>,
    generation: u64,
}

impl Witness for SettingsApplied {
    fn is_current(&self) -> bool {
        self.life.generation() == self.generation && self.life.is_ready()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_witness_ends_with_its_generation() {
        let life = SessionLife::new(Endpoints::parse("10.0.0.1:8081").unwrap());
        assert!(
            !life.is_ready(),
            "nothing is applied before the first generation"
        );
        life.next_generation();
        let witness = life.apply();
        assert!(witness.is_current() && life.is_ready());
        life.next_generation();
        assert!(!witness.is_current() && !life.is_ready());
        assert!(life.apply().is_current() && !witness.is_current());
    }
}
