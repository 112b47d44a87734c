//! A name for an actor that can be wired before the actor exists.

use std::{fmt, sync::Arc};

use actix::{Actor, Addr};
use tokio::sync::watch;

/// Where the actor of this name is, once its group has started it.
pub(crate) struct ChildRef<A: Actor> {
    name: Arc<str>,
    addr: watch::Sender<Option<Addr<A>>>,
}

impl<A: Actor> ChildRef<A> {
    pub(crate) fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            addr: watch::Sender::new(None),
        }
    }

    /// The name.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The address, once there is one. It stays the same over restarts of the actor, and changes
    /// when its group is started anew.
    pub(crate) fn addr(&self) -> Option<Addr<A>> {
        self.addr.borrow().clone()
    }

    pub(super) fn resolve(&self, addr: Addr<A>) {
        self.addr.send_replace(Some(addr));
    }
}

impl<A: Actor> Clone for ChildRef<A> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            addr: self.addr.clone(),
        }
    }
}

impl<A: Actor> fmt::Debug for ChildRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.addr.borrow().is_some();
        f.debug_struct("ChildRef")
            .field("name", &self.name)
            .field("known", &known)
            .finish()
    }
}
