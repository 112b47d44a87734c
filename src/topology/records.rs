//! What is kept of the children of a tree beyond their exits.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::Exit;
use crate::{Error, ErrorKind, ProducerShutdownReport, ShutdownReport};

/// What a producer or consumer reported when it was shut down.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberReport {
    /// Of a push consumer.
    Consumer(ShutdownReport),
    /// Of a producer.
    Producer(ProducerShutdownReport),
}

/// The error of the member that failed last, the last report of each, and who did not end in
/// time. Bounded: where names never repeat, some are forgotten.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    failure: Option<Error>,
    reports: BTreeMap<Arc<str>, MemberReport>,
    cut_off: BTreeSet<Arc<str>>,
}

/// Of how many children something is kept.
const KEPT: usize = 1024;

impl Records {
    pub(super) fn failed(&self, error: Error) {
        self.kept().failure = Some(error);
    }

    /// The error of a member that this exit tells of.
    fn cause_of(&self, exit: &Exit) -> Option<Error> {
        let told = |error: &Error| match exit {
            Exit::Failed(text) => text.ends_with(&error.to_string()),
            _ => false,
        };
        self.kept().failure.clone().filter(told)
    }

    /// The error of a start that ended so.
    pub(super) fn start_error(&self, text: String, exit: &Exit) -> Error {
        match self.cause_of(exit) {
            Some(cause) => Error::new(cause.kind(), text).caused_by(cause),
            None => Error::new(ErrorKind::GaveUp, text),
        }
    }

    pub(super) fn reported(&self, path: Arc<str>, report: MemberReport) {
        let mut kept = self.kept();
        kept.reports.insert(path, report);
        if kept.reports.len() > KEPT {
            kept.reports.pop_first();
        }
    }

    /// A child was dropped, for its time to stop was over.
    pub(super) fn cut_off(&self, path: Arc<str>) {
        let mut kept = self.kept();
        kept.cut_off.insert(path);
        if kept.cut_off.len() > KEPT {
            kept.cut_off.pop_first();
        }
    }

    pub(super) fn all_cut_off(&self) -> BTreeSet<Arc<str>> {
        self.kept().cut_off.clone()
    }

    /// Forgets a child that is in the tree no more.
    pub(super) fn forget(&self, path: &str) {
        let mut kept = self.kept();
        kept.reports.remove(path);
        kept.cut_off.remove(path);
    }

    pub(super) fn reports(&self) -> BTreeMap<Arc<str>, MemberReport> {
        self.kept().reports.clone()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing can panic under this lock, so a poisoned one holds sound records.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
