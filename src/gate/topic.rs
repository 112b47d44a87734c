//! What the gate knows of one topic.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::time::Instant;

use super::Step;
use crate::{
    Error, ErrorKind,
    model::{Endpoints, route::Route},
};

/// What is known of one topic.
#[derive(Debug)]
pub(super) struct Topic<W> {
    /// The newest fetch that was looked at, queues of quarantined endpoints included.
    pub(super) fetched: Option<(u64, Arc<Route>)>,
    /// Whether that route was refused, so that the same one has to pass the gate again.
    pub(super) refused: bool,
    /// Since when answers are worse than what is committed.
    pub(super) worse_since: Option<Instant>,
    pub(super) open: Option<Open<W>>,
}

impl<W> Default for Topic<W> {
    fn default() -> Self {
        Self {
            fetched: None,
            refused: false,
            worse_since: None,
            open: None,
        }
    }
}

impl<W> Topic<W> {
    /// What a fetch means that was overtaken by a newer one: who waits for it gets the outcome of
    /// that one.
    pub(super) fn overtaken(&self, name: &Arc<str>, committed: bool) -> Vec<Step<W>> {
        if self.open.is_some() {
            return Vec::new();
        }
        let outcome = if committed {
            Ok(())
        } else {
            Err(Error::new(
                ErrorKind::Server,
                format!("the route of topic {name} was refused"),
            ))
        };
        vec![Step::Answer(name.clone(), outcome)]
    }
}

/// A gate that waits for sessions.
#[derive(Debug)]
pub(super) struct Open<W> {
    pub(super) route: Arc<Route>,
    pub(super) awaited: BTreeSet<Endpoints>,
    pub(super) passed: BTreeMap<Endpoints, W>,
    pub(super) failed: BTreeMap<Endpoints, Error>,
}

/// The error of a route none of whose endpoints (or, all or nothing, one of whose) passed.
pub(super) fn refusal<W>(topic: &str, open: &Open<W>, quarantined: &BTreeSet<Endpoints>) -> Error {
    let dead =
        open.route.endpoints().into_iter().filter(|endpoints| {
            open.failed.contains_key(endpoints) || quarantined.contains(endpoints)
        });
    let names: Vec<_> = dead.map(|endpoints| endpoints.to_string()).collect();
    let names = names.join(", ");
    let context = format!(
        "the route of topic {topic} names {names}, which did not accept the settings of this client"
    );
    match open.failed.values().next() {
        Some(error) => error.clone().context(context),
        None => Error::new(
            ErrorKind::Protocol,
            format!("{context}: the route is unusable"),
        ),
    }
}
