//! A name for a producer or consumer in a topology, under which its handle is found.

use std::{fmt, sync::Arc};

use tokio::sync::watch;

use super::{child_ref::Label, wiring::sealed::Named};

/// A name under which the handle of a producer or consumer is found once its topology has started
/// it: of a producer, to send; of a consumer, for its statistics.
///
/// Can be given to other actors before the member exists. Clones are the same reference.
///
/// ```
/// use rocketmq_actors::{ChildSpec, Client, MemberRef, Producer, ProducerSpec, Topology};
///
/// # fn compose(client: &Client, spec: ProducerSpec) {
/// let out = MemberRef::<Producer>::new("out");
/// let topology = Topology::named("app").child(ChildSpec::member(&out, client, spec));
/// // In some actor of it: `out.ready().await.send(message).await`.
/// # }
/// ```
pub struct MemberRef<H> {
    label: Label,
    handle: watch::Sender<Option<H>>,
}

impl<H: Clone> MemberRef<H> {
    /// A reference to the member of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            label: Label::member(name),
            handle: watch::Sender::new(None),
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.label.name
    }

    /// The handle, unless the member is not up right now. A restart of the member makes a new
    /// one, so do not keep it for long.
    #[must_use]
    pub fn get(&self) -> Option<H> {
        self.handle.borrow().clone()
    }

    /// Waits until the member is up: for ever, if it never is. Cancel safe.
    pub async fn ready(&self) -> H {
        let mut handles = self.handle.subscribe();
        loop {
            let found = handles.borrow_and_update().clone();
            if let Some(handle) = found {
                return handle;
            }
            if handles.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    pub(super) fn resolve(&self, handle: H) {
        self.handle.send_replace(Some(handle));
    }

    pub(super) fn clear(&self) {
        self.handle.send_replace(None);
    }
}

impl<H: Clone> Named for MemberRef<H> {
    fn label(&self) -> &Label {
        &self.label
    }

    fn is_up(&self) -> bool {
        self.handle.borrow().is_some()
    }
}

impl<H> Clone for MemberRef<H> {
    fn clone(&self) -> Self {
        Self {
            label: self.label.clone(),
            handle: self.handle.clone(),
        }
    }
}

impl<H: Clone> From<&str> for MemberRef<H> {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl<H: Clone> From<&Self> for MemberRef<H> {
    fn from(reference: &Self) -> Self {
        reference.clone()
    }
}

impl<H> fmt::Debug for MemberRef<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberRef")
            .field("name", &self.label.name)
            .field("up", &self.handle.borrow().is_some())
            .finish()
    }
}
