//! A name for an actor that can be wired before the actor exists.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use actix::{Actor, Addr};
use tokio::sync::watch;

use super::{live::Counted, wiring::sealed::Named};

/// A name for an actor of a topology, which can be wired before the actor exists.
///
/// Place the actor in a topology by [`ChildSpec::actor`](crate::ChildSpec::actor), and give the
/// reference to whoever shall reach it: [`deliver`](Self::deliver) makes it the handler of a
/// consumer. One reference stands for one child: do not place it twice. Clones are the same
/// reference.
pub struct ChildRef<A: Actor> {
    label: Label,
    addr: watch::Sender<Option<Addr<A>>>,
}

/// A name, and whether some child bears it.
#[derive(Debug, Clone)]
pub struct Label {
    pub(crate) name: Arc<str>,
    placed: Arc<AtomicBool>,
    /// The function that makes a child of this name.
    made_by: &'static str,
    /// Deliveries that wait for the child, or that it handles.
    deliveries: Arc<AtomicUsize>,
}

impl Label {
    /// Of an actor.
    pub(super) fn actor(name: impl Into<Arc<str>>) -> Self {
        Self::new(name.into(), "ChildSpec::actor")
    }

    /// Of a producer or consumer.
    pub(super) fn member(name: impl Into<Arc<str>>) -> Self {
        Self::new(name.into(), "ChildSpec::member")
    }

    fn new(name: Arc<str>, made_by: &'static str) -> Self {
        Self {
            name,
            placed: Arc::default(),
            made_by,
            deliveries: Arc::default(),
        }
    }

    pub(crate) fn is_placed(&self) -> bool {
        self.placed.load(Ordering::Acquire)
    }

    /// Some child bears the name from now on.
    pub(super) fn place(&self) {
        self.placed.store(true, Ordering::Release);
    }

    /// Whether it is the label of the same reference; others may have the same name.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.placed, &other.placed)
    }

    pub(super) fn how_to_add(&self) -> String {
        format!("{}(&{}, ..)", self.made_by, self.name)
    }

    pub(super) fn deliveries(&self) -> usize {
        self.deliveries.load(Ordering::Acquire)
    }

    /// Counts a delivery until dropped.
    pub(crate) fn delivery(&self) -> Counted {
        Counted::one(&self.deliveries)
    }
}

impl<A: Actor> ChildRef<A> {
    /// A reference to the child of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            label: Label::actor(name),
            addr: watch::Sender::new(None),
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.label.name
    }

    /// The address, once there is one. It stays the same over restarts of the actor, and changes
    /// when the topology around it is restarted.
    #[must_use]
    pub fn addr(&self) -> Option<Addr<A>> {
        self.addr.borrow().clone()
    }

    /// Waits for an address under which there is an actor, or will be after its restart: for
    /// ever, if there never is. Cancel safe.
    pub async fn ready(&self) -> Addr<A> {
        let mut addrs = self.addr.subscribe();
        loop {
            let addr = addrs.borrow_and_update().clone();
            if let Some(addr) = addr.filter(Addr::connected) {
                return addr;
            }
            if addrs.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    pub(crate) fn label(&self) -> &Label {
        &self.label
    }

    pub(super) fn resolve(&self, addr: Addr<A>) {
        self.addr.send_replace(Some(addr));
    }
}

impl<A: Actor> Named for ChildRef<A> {
    fn label(&self) -> &Label {
        &self.label
    }

    fn is_up(&self) -> bool {
        self.addr().is_some_and(|addr| addr.connected())
    }
}

impl<A: Actor> Clone for ChildRef<A> {
    fn clone(&self) -> Self {
        Self {
            label: self.label.clone(),
            addr: self.addr.clone(),
        }
    }
}

impl<A: Actor> fmt::Debug for ChildRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildRef")
            .field("name", &self.label.name)
            .field("placed", &self.label.is_placed())
            .field("known", &self.addr.borrow().is_some())
            .finish()
    }
}
