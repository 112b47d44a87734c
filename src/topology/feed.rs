//! The events of a producer or consumer for the tree it is in.

use tokio::sync::broadcast::{Receiver, error::TryRecvError};

use super::event::{Event, Events, next};

/// The events of one member, which has its path in the tree.
#[derive(Debug)]
pub struct Feed(Receiver<Event>);

impl Feed {
    pub(crate) fn new(events: &Events) -> Self {
        Self(events.subscribe())
    }

    /// Passes everything on, for ever.
    pub(super) async fn pass_on(&mut self, to: &Events) {
        while let Some(event) = next(&mut self.0).await {
            to.pass_on(event);
        }
        std::future::pending().await
    }

    /// Passes on what is there already.
    pub(super) fn pass_rest_on(&mut self, to: &Events) {
        loop {
            match self.0.try_recv() {
                Ok(event) => to.pass_on(event),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }
}
