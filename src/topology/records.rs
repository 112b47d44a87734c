//! What the members of a tree have to say beyond an exit.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{Error, ProducerShutdownReport, ShutdownReport};

/// What a producer or consumer reported when it was shut down.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberReport {
    /// Of a push consumer.
    Consumer(ShutdownReport),
    /// Of a producer.
    Producer(ProducerShutdownReport),
}

/// The error of the member that failed last, and the last report of each, by path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    failure: Option<Error>,
    reports: BTreeMap<Arc<str>, MemberReport>,
}

impl Records {
    pub(super) fn failed(&self, error: Error) {
        self.kept().failure = Some(error);
    }

    pub(super) fn last_failure(&self) -> Option<Error> {
        self.kept().failure.clone()
    }

    pub(super) fn reported(&self, path: Arc<str>, report: MemberReport) {
        self.kept().reports.insert(path, report);
    }

    pub(super) fn reports(&self) -> BTreeMap<Arc<str>, MemberReport> {
        self.kept().reports.clone()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing can panic under this lock, so a poisoned one holds sound records.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
