//! The events of a producer or consumer as those of its place in a tree.

use std::sync::Arc;

use tokio::sync::broadcast::{Receiver, error::TryRecvError};

use super::event::{Event, Events, next};

/// The events of one member, under its own name.
#[derive(Debug)]
pub struct Feed {
    name: Arc<str>,
    events: Receiver<Event>,
}

impl Feed {
    pub(crate) fn new(name: Arc<str>, events: &Events) -> Self {
        let events = events.subscribe();
        Self { name, events }
    }

    /// Passes everything on under another name, for ever.
    pub(super) async fn pass_on(&mut self, path: &Arc<str>, to: &Events) {
        while let Some(event) = next(&mut self.events).await {
            self.renamed(event, path, to);
        }
        std::future::pending().await
    }

    /// Passes on what is there already.
    pub(super) fn pass_rest_on(&mut self, path: &Arc<str>, to: &Events) {
        loop {
            match self.events.try_recv() {
                Ok(event) => self.renamed(event, path, to),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    fn renamed(&self, event: Event, path: &Arc<str>, to: &Events) {
        match event.path.strip_prefix(&*self.name) {
            None | Some("") => to.emit(path, event.kind),
            Some(below) => to.emit(&format!("{path}{below}").into(), event.kind),
        }
    }
}
