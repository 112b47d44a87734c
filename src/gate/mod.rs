//! The gate: a route is committed only after the settings of its new endpoints were applied.
//!
//! A state machine without I/O. The route actor feeds it what was fetched and what the sessions
//! answered, and carries out the [`Step`]s it returns, in their order.

mod commit;
#[cfg(test)]
mod tests;
mod topic;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

pub(crate) use commit::{Commit, RouteTable, Witness};

use self::topic::{Open, Topic, refusal};
use crate::{
    Error,
    model::{Endpoints, route::Route},
};

/// What the route actor has to do next.
#[derive(Debug)]
pub(crate) enum Step<W> {
    /// Ask the session of these endpoints for its settings, and report the answer.
    Prepare(Endpoints),
    /// Put this in the cache, then publish it.
    Commit(Commit<W>),
    /// Answer who waits for this topic: from the cache, or with the error.
    Answer(Arc<str>, Result<(), Error>),
}

/// The gate of one producer or consumer, over all its topics.
#[derive(Debug)]
pub(crate) struct Gate<W> {
    all_or_nothing: bool,
    refresh: Duration,
    sequence: u64,
    /// Fetches up to this number are of an earlier gate.
    forgotten: u64,
    topics: BTreeMap<Arc<str>, Topic<W>>,
    quarantined: BTreeSet<Endpoints>,
    /// Endpoints whose session was asked and did not answer yet.
    asked: BTreeSet<Endpoints>,
}

impl<W: Witness> Gate<W> {
    /// `refresh` is the period of route refreshes: for so long a worse answer is not believed.
    pub(crate) fn new(all_or_nothing: bool, refresh: Duration) -> Self {
        Self {
            all_or_nothing,
            refresh,
            sequence: 0,
            forgotten: 0,
            topics: BTreeMap::new(),
            quarantined: BTreeSet::new(),
            asked: BTreeSet::new(),
        }
    }

    /// The gate after a restart: it knows nothing, and believes no answer to an earlier fetch.
    pub(crate) fn anew(&self) -> Self {
        Self {
            sequence: self.sequence,
            forgotten: self.sequence,
            ..Self::new(self.all_or_nothing, self.refresh)
        }
    }

    /// The number of a fetch that starts now. Answers are looked at in this order only.
    pub(crate) fn next_fetch(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub(crate) fn quarantined(&self) -> &BTreeSet<Endpoints> {
        &self.quarantined
    }

    /// Whether a route of this topic waits for sessions.
    pub(crate) fn is_open(&self, name: &str) -> bool {
        self.topics
            .get(name)
            .is_some_and(|topic| topic.open.is_some())
    }

    /// Every endpoint that the newest fetch of some topic names.
    pub(crate) fn wanted(&self) -> BTreeSet<Endpoints> {
        self.topics
            .values()
            .filter_map(|topic| topic.fetched.as_ref())
            .flat_map(|(_, route)| route.endpoints())
            .collect()
    }

    /// A fetch was answered with a route.
    pub(crate) fn fetched(
        &mut self,
        name: &Arc<str>,
        fetch: u64,
        route: Arc<Route>,
        table: &RouteTable,
        now: Instant,
    ) -> Vec<Step<W>> {
        if fetch <= self.forgotten {
            return Vec::new();
        }
        let refresh = self.refresh;
        let topic = self.topics.entry(name.clone()).or_default();
        let committed = table.get(name);
        if topic
            .fetched
            .as_ref()
            .is_some_and(|(newest, _)| *newest > fetch)
        {
            return topic.overtaken(name, committed.is_some());
        }
        if let Some(good) = &committed
            && route.is_worse_than(good)
            && now.duration_since(*topic.worse_since.get_or_insert(now)) < refresh
        {
            return vec![Step::Answer(name.clone(), Ok(()))];
        }
        topic.worse_since = None;
        let same = !topic.refused
            && topic
                .fetched
                .as_ref()
                .is_some_and(|(_, last)| last.same_as(&route));
        topic.fetched = Some((fetch, route.clone()));
        topic.refused = false;
        if same && topic.open.is_some() {
            return Vec::new();
        }
        if same && committed.is_some() {
            return vec![Step::Answer(name.clone(), Ok(()))];
        }
        let wanted = self.wanted();
        self.quarantined
            .retain(|endpoints| wanted.contains(endpoints));
        self.open(name, route, table)
    }

    /// A fetch failed: what is committed stays, who waits gets the error.
    pub(crate) fn fetch_failed(
        &mut self,
        name: &Arc<str>,
        fetch: u64,
        error: Error,
    ) -> Vec<Step<W>> {
        // Who waits while the gate is open gets what comes of that.
        if fetch <= self.forgotten || self.is_open(name) {
            Vec::new()
        } else {
            vec![Step::Answer(name.clone(), Err(error))]
        }
    }

    /// A session answered: its settings are applied, or not within its time.
    ///
    /// Also called unasked, when the session of a quarantined endpoint succeeds at last.
    pub(crate) fn answered(
        &mut self,
        endpoints: &Endpoints,
        answer: Result<W, Error>,
        table: &RouteTable,
    ) -> Vec<Step<W>>
    where
        W: Clone,
    {
        self.asked.remove(endpoints);
        let recovered = answer.is_ok() && self.quarantined.remove(endpoints);
        let concerned = self.concerned(endpoints, answer.is_ok());
        let mut turns = Turns::new(table);
        for name in &concerned {
            self.note(name, endpoints, answer.clone());
            let steps = self.settle(name, &turns.table);
            turns.take(steps);
        }
        if recovered && let Ok(witness) = answer {
            self.rejoin(endpoints, &witness, &concerned, &mut turns);
        }
        turns.steps
    }

    /// The topics at an open gate that wait for these endpoints. A success also counts where it
    /// is not waited for any more: the endpoints had failed, or were quarantined.
    fn concerned(&self, endpoints: &Endpoints, passed: bool) -> Vec<Arc<str>> {
        self.topics
            .iter()
            .filter(|(_, topic)| {
                topic.open.as_ref().is_some_and(|open| {
                    open.awaited.contains(endpoints)
                        || (passed && open.route.endpoints().contains(endpoints))
                })
            })
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Opens the gate for a route and closes it at once if nothing has to be waited for.
    fn open(&mut self, name: &Arc<str>, route: Arc<Route>, table: &RouteTable) -> Vec<Step<W>> {
        let (known, fresh): (BTreeSet<_>, BTreeSet<_>) = route
            .endpoints()
            .into_iter()
            .partition(|endpoints| table.contains(endpoints));
        // Who failed before is not waited for, unless there is nobody else.
        let hopeful: BTreeSet<_> = fresh.difference(&self.quarantined).cloned().collect();
        let nobody = known.is_empty() && hopeful.is_empty();
        let awaited = if nobody || self.all_or_nothing {
            fresh
        } else {
            hopeful
        };
        let topic = self.topics.entry(name.clone()).or_default();
        topic.open = Some(Open {
            route,
            awaited: awaited.clone(),
            passed: BTreeMap::new(),
            failed: BTreeMap::new(),
        });
        let mut steps = self.ask(awaited);
        steps.extend(self.settle(name, table));
        steps
    }

    /// One question a session, however many topics wait for it.
    fn ask(&mut self, awaited: impl IntoIterator<Item = Endpoints>) -> Vec<Step<W>> {
        awaited
            .into_iter()
            .filter(|endpoints| self.asked.insert(endpoints.clone()))
            .map(Step::Prepare)
            .collect()
    }

    fn note(&mut self, name: &Arc<str>, endpoints: &Endpoints, answer: Result<W, Error>) {
        let Some(open) = self
            .topics
            .get_mut(name)
            .and_then(|topic| topic.open.as_mut())
        else {
            return;
        };
        open.awaited.remove(endpoints);
        match answer {
            Ok(witness) => {
                open.failed.remove(endpoints);
                open.passed.insert(endpoints.clone(), witness);
            }
            Err(error) => {
                open.failed.insert(endpoints.clone(), error);
            }
        }
    }

    /// Closes the gate of a topic if every session it waits for has answered.
    fn settle(&mut self, name: &Arc<str>, table: &RouteTable) -> Vec<Step<W>> {
        let Some(topic) = self.topics.get_mut(name) else {
            return Vec::new();
        };
        let Some(mut open) = topic.open.take_if(|open| open.awaited.is_empty()) else {
            return Vec::new();
        };
        // Another topic may have committed them since.
        open.failed
            .retain(|endpoints, _| !table.contains(endpoints));
        let usable = open
            .route
            .endpoints()
            .iter()
            .any(|endpoints| table.contains(endpoints) || open.passed.contains_key(endpoints));
        let refused = if self.all_or_nothing {
            !open.failed.is_empty()
        } else {
            !usable
        };
        if refused && !open.route.is_empty() {
            topic.refused = true;
            let error = refusal(name, &open, &self.quarantined);
            return vec![Step::Answer(name.clone(), Err(error))];
        }
        self.quarantined.extend(open.failed.into_keys());
        self.commit(name, open.route, open.passed, table)
    }

    /// Commits a route without its quarantined queues, or asks again where a session died since.
    fn commit(
        &mut self,
        name: &Arc<str>,
        route: Arc<Route>,
        passed: BTreeMap<Endpoints, W>,
        table: &RouteTable,
    ) -> Vec<Step<W>> {
        let visible = route.without(&self.quarantined);
        if table
            .get(name)
            .is_some_and(|committed| committed.same_as(&visible))
        {
            return vec![Step::Answer(name.clone(), Ok(()))];
        }
        match Commit::new(name.clone(), Arc::new(visible), passed, table) {
            Ok(commit) => vec![Step::Commit(commit), Step::Answer(name.clone(), Ok(()))],
            Err((passed, stale)) => {
                let awaited = stale.clone();
                let failed = BTreeMap::new();
                let topic = self.topics.entry(name.clone()).or_default();
                topic.open = Some(Open {
                    route,
                    awaited,
                    passed,
                    failed,
                });
                self.ask(stale)
            }
        }
    }

    /// A quarantined endpoint passed: its queues join the routes that name it.
    fn rejoin(
        &mut self,
        endpoints: &Endpoints,
        witness: &W,
        settled: &[Arc<str>],
        turns: &mut Turns<W>,
    ) where
        W: Clone,
    {
        let routes: Vec<_> = self
            .topics
            .iter()
            .filter(|(name, topic)| topic.open.is_none() && !settled.contains(name))
            .filter_map(|(name, topic)| Some((name.clone(), topic.fetched.as_ref()?.1.clone())))
            .filter(|(name, route)| {
                route.endpoints().contains(endpoints) && turns.table.get(name).is_some()
            })
            .collect();
        for (name, route) in routes {
            let passed = BTreeMap::from([(endpoints.clone(), witness.clone())]);
            let steps = self.commit(&name, route, passed, &turns.table);
            turns.take(steps);
        }
    }
}

/// The steps of one topic after another; each sees the commits of those before it.
#[derive(Debug)]
struct Turns<W> {
    table: RouteTable,
    steps: Vec<Step<W>>,
}

impl<W> Turns<W> {
    fn new(table: &RouteTable) -> Self {
        Self {
            table: table.clone(),
            steps: Vec::new(),
        }
    }

    fn take(&mut self, steps: Vec<Step<W>>) {
        for step in &steps {
            if let Step::Commit(commit) = step {
                self.table = self.table.after(commit);
            }
        }
        self.steps.extend(steps);
    }
}
