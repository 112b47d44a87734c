//! Who is in a group right now.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Stop, child_ref::Label, control::ChildControl, spec::ChildSpec, started::Started};

/// The children of a group in start order, dynamic ones last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roster(Arc<Mutex<Vec<Entry>>>);

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    pub(super) stop: Stop,
    pub(super) dynamic: bool,
    pub(super) places: Option<Label>,
    pub(super) started: Started,
}

impl Roster {
    pub(super) fn enter(&self, spec: &ChildSpec, dynamic: bool, started: Started) {
        self.entries().push(Entry {
            name: Arc::clone(&spec.name),
            stop: spec.stop,
            dynamic,
            places: spec.wiring.places.clone(),
            started,
        });
    }

    pub(super) fn find(&self, name: &str) -> Option<Entry> {
        let entries = self.entries();
        entries.iter().find(|entry| &*entry.name == name).cloned()
    }

    /// The child that bears this very name and has not ended for good.
    pub(super) fn bearer(&self, label: &Label) -> Option<Started> {
        let entries = self.entries();
        let bears = |entry: &&Entry| {
            entry.places.as_ref().is_some_and(|own| own.is(label))
                && entry.started.control.state().end().is_none()
        };
        entries
            .iter()
            .find(bears)
            .map(|entry| entry.started.clone())
    }

    /// Takes out this very child; there may be a new one of its name.
    pub(super) fn forget(&self, control: &ChildControl) {
        let path = control.path();
        self.entries()
            .retain(|entry| !Arc::ptr_eq(entry.started.control.path(), path));
    }

    /// All static or all dynamic children, in start order.
    pub(super) fn select(&self, dynamic: bool) -> Vec<Entry> {
        let entries = self.entries();
        let selected = entries.iter().filter(|entry| entry.dynamic == dynamic);
        selected.cloned().collect()
    }

    /// Stops all children where they stand, without waiting.
    pub(super) fn abandon(&self) {
        for entry in self.entries().iter().rev() {
            entry.started.control.request_stop(Stop::Now);
        }
    }

    pub(super) fn clear(&self) {
        self.entries().clear();
    }

    /// All children as they are now.
    pub(super) fn started(&self) -> Vec<Started> {
        let entries = self.entries();
        entries.iter().map(|entry| entry.started.clone()).collect()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        // Nothing can panic under this lock, so a poisoned one holds a sound list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
