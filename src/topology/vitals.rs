//! The health of a whole tree.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use super::{ChildState, Exit};
use crate::health::{Health, Reason};

/// What is known of the health of everything in a tree. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Vitals(Arc<Board>);

#[derive(Debug)]
struct Board {
    known: Mutex<Tree>,
    published: watch::Sender<Health>,
}

/// By path, so that the root is the first.
type Tree = BTreeMap<Arc<str>, Vital>;

#[derive(Debug)]
struct Vital {
    state: ChildState,
    /// Of a producer or consumer that is up.
    member: Option<Health>,
    /// It did not answer in time, and has come to no other state since.
    unresponsive: bool,
}

impl Default for Vitals {
    fn default() -> Self {
        Self(Arc::new(Board {
            known: Mutex::default(),
            published: watch::Sender::new(Health::starting()),
        }))
    }
}

impl Vitals {
    pub(super) fn subscribe(&self) -> watch::Receiver<Health> {
        self.0.published.subscribe()
    }

    /// A child of the tree, or its root, has come to this state.
    pub(super) fn state(&self, path: &Arc<str>, state: &ChildState) {
        self.change(|tree| {
            let below = format!("{path}/");
            if *state == ChildState::Starting {
                // Those of a generation before; they are entered anew.
                tree.retain(|other, _| !other.starts_with(&below));
            }
            let is_root = tree.keys().next().is_none_or(|root| root == path);
            if matches!(state, ChildState::Stopped(exit) if !exit.is_failure()) && !is_root {
                tree.remove(path);
            } else {
                // Heard of before it was seen to be up.
                let known = tree.remove(path).and_then(|vital| vital.member);
                let member = known.filter(|_| *state == ChildState::Running);
                let state = state.clone();
                let vital = Vital {
                    state,
                    member,
                    unresponsive: false,
                };
                tree.insert(Arc::clone(path), vital);
            }
        });
    }

    /// How a producer or consumer that is up is.
    pub(super) fn member(&self, path: &Arc<str>, health: Health) {
        self.change(|tree| {
            if let Some(vital) = tree.get_mut(path) {
                vital.member = Some(health);
            }
        });
    }

    /// A child does not answer.
    pub(super) fn unresponsive(&self, path: &Arc<str>) {
        self.change(|tree| {
            if let Some(vital) = tree.get_mut(path) {
                vital.unresponsive = true;
            }
        });
    }

    /// A child was removed for good.
    pub(super) fn forget(&self, path: &str) {
        let below = format!("{path}/");
        self.change(|tree| {
            tree.retain(|other, _| **other != *path && !other.starts_with(&below));
        });
    }

    fn change(&self, change: impl FnOnce(&mut Tree)) {
        // Looked at under the lock, so that an older view never replaces a newer one.
        self.0.published.send_if_modified(|published| {
            let mut tree = self.tree();
            change(&mut tree);
            let now = assess(&tree);
            let changed = *published != now;
            *published = now;
            changed
        });
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn assess(tree: &Tree) -> Health {
    let mut vitals = tree.iter();
    let mut health = match vitals.next().map(|(_, root)| &root.state) {
        None | Some(ChildState::Starting) => Health::starting(),
        Some(ChildState::Running) => Health {
            live: true,
            ready: true,
            reasons: Vec::new(),
        },
        Some(ended) => {
            let reason = match ended.end() {
                Some(Exit::Normal | Exit::Shutdown) => Reason::Stopped,
                Some(exit) => Reason::GaveUp {
                    error: exit.to_string(),
                },
                // A root is not restarted: it is on its way down.
                None => Reason::Draining,
            };
            return Health {
                live: ended.end().is_none(),
                ready: false,
                reasons: vec![reason],
            };
        }
    };
    for (path, vital) in vitals {
        let path = Arc::clone(path);
        let Vital { state, member, .. } = vital;
        if *state != ChildState::Running {
            // One that ended for good, and was allowed to, is not waited for.
            health.ready &= state.end().is_some();
            let state = state.clone();
            health.reasons.push(Reason::Child { path, state });
        } else if vital.unresponsive {
            health.ready = false;
            health.reasons.push(Reason::Unresponsive { path });
        } else if let Some(member) = member {
            health.ready &= member.ready;
            let reasons = member.reasons.iter().cloned().map(|reason| Reason::Member {
                path: Arc::clone(&path),
                reason: Box::new(reason),
            });
            health.reasons.extend(reasons);
        }
    }
    health
}
