//! The committed routes, and what it takes to commit one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::model::{Endpoints, route::Route};

/// Proof that the settings of an endpoint were answered and applied.
pub(crate) trait Witness {
    /// Whether the session that gave it still is the one that is used.
    fn is_current(&self) -> bool;
}

/// A route that may be committed: each endpoint of it that is new has a current witness.
#[derive(Debug)]
pub(crate) struct Commit<W> {
    topic: Arc<str>,
    route: Arc<Route>,
    witnesses: BTreeMap<Endpoints, W>,
}

/// The witnesses that hold, and the endpoints that lack one.
type Unproven<W> = (BTreeMap<Endpoints, W>, BTreeSet<Endpoints>);

impl<W: Witness> Commit<W> {
    /// Fails with the endpoints that are new and have no current witness.
    pub(super) fn new(
        topic: Arc<str>,
        route: Arc<Route>,
        mut witnesses: BTreeMap<Endpoints, W>,
        table: &RouteTable,
    ) -> Result<Self, Unproven<W>> {
        witnesses.retain(|_, witness| witness.is_current());
        let unproven: BTreeSet<_> = route
            .endpoints()
            .into_iter()
            .filter(|endpoints| !table.contains(endpoints) && !witnesses.contains_key(endpoints))
            .collect();
        if unproven.is_empty() {
            Ok(Self {
                topic,
                route,
                witnesses,
            })
        } else {
            Err((witnesses, unproven))
        }
    }

    pub(crate) fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    pub(crate) fn route(&self) -> &Arc<Route> {
        &self.route
    }
}

/// The committed routes of one producer or consumer. An immutable snapshot: a commit makes a new
/// one, so readers never wait.
#[derive(Debug, Clone, Default)]
pub(crate) struct RouteTable {
    routes: BTreeMap<Arc<str>, Arc<Route>>,
    endpoints: BTreeSet<Endpoints>,
}

impl RouteTable {
    pub(crate) fn get(&self, topic: &str) -> Option<Arc<Route>> {
        self.routes.get(topic).cloned()
    }

    /// Whether some committed route names these endpoints.
    pub(crate) fn contains(&self, endpoints: &Endpoints) -> bool {
        self.endpoints.contains(endpoints)
    }

    pub(crate) fn endpoints(&self) -> &BTreeSet<Endpoints> {
        &self.endpoints
    }

    pub(crate) fn topics(&self) -> impl Iterator<Item = &Arc<str>> {
        self.routes.keys()
    }

    /// The table with one more route; consumes the witnesses of its new endpoints.
    pub(crate) fn with<W>(&self, commit: Commit<W>) -> Self {
        let table = self.after(&commit);
        drop(commit.witnesses);
        table
    }

    /// What the table will be after a commit.
    pub(super) fn after<W>(&self, commit: &Commit<W>) -> Self {
        let mut routes = self.routes.clone();
        routes.insert(commit.topic.clone(), commit.route.clone());
        let endpoints = routes
            .values()
            .flat_map(|route| route.endpoints())
            .collect();
        Self { routes, endpoints }
    }
}
