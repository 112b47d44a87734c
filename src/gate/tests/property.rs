//! Whatever is answered in whatever order, and whoever dies: the gate against a model of it.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const TOPICS: [&str; 3] = ["t", "u", "v"];
const HOSTS: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
enum Event {
    /// A caller asks for a topic, and a fetch goes out.
    Fetch {
        topic: usize,
    },
    /// One of the fetches under way is answered.
    Fetched {
        which: usize,
        hosts: BTreeSet<usize>,
        typed: bool,
    },
    /// One of the fetches under way fails.
    FetchFailed {
        which: usize,
    },
    /// One of the sessions that were asked answers; it may die before that is looked at.
    Answer {
        which: usize,
        passes: bool,
        dies: bool,
    },
    /// A session succeeds unasked.
    Recover {
        host: usize,
    },
    /// The generation of a session ends.
    Die {
        host: usize,
    },
    Advance {
        secs: u64,
    },
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let hosts = prop::collection::btree_set(0..HOSTS.len(), 0..4);
    let host = 0..HOSTS.len();
    prop_oneof![
        6 => (0..TOPICS.len()).prop_map(|topic| Event::Fetch { topic }),
        8 => (any::<usize>(), hosts, prop::bool::weighted(0.8))
            .prop_map(|(which, hosts, typed)| Event::Fetched { which, hosts, typed }),
        1 => any::<usize>().prop_map(|which| Event::FetchFailed { which }),
        12 => (any::<usize>(), prop::bool::weighted(0.6), prop::bool::weighted(0.15))
            .prop_map(|(which, passes, dies)| Event::Answer { which, passes, dies }),
        3 => host.clone().prop_map(|host| Event::Recover { host }),
        4 => host.prop_map(|host| Event::Die { host }),
        2 => (1..40_u64).prop_map(|secs| Event::Advance { secs }),
        1 => Just(Event::Restart),
    ]
}

/// What should be true of one topic.
#[derive(Default)]
struct Expected {
    /// The newest fetch that is believed.
    newest: Option<(u64, Arc<Route>)>,
    refused: bool,
    worse_since: Option<Instant>,
    waits: bool,
}

struct Model {
    gate: Gate<Proof>,
    table: RouteTable,
    lives: Lives,
    now: Instant,
    all_or_nothing: bool,
    restarted_at: u64,
    topics: BTreeMap<&'static str, Expected>,
    fetches: Vec<(&'static str, u64)>,
    asked: Vec<Endpoints>,
    /// The last success of each session.
    proven: BTreeMap<Endpoints, Proof>,
}

impl Model {
    fn new(all_or_nothing: bool) -> Self {
        Self {
            gate: Gate::new(all_or_nothing, REFRESH),
            table: RouteTable::default(),
            lives: Lives::default(),
            now: Instant::now(),
            all_or_nothing,
            restarted_at: 0,
            topics: TOPICS
                .iter()
                .map(|name| (*name, Expected::default()))
                .collect(),
            fetches: Vec::new(),
            asked: Vec::new(),
            proven: BTreeMap::new(),
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Fetch { topic } => {
                let topic = TOPICS[topic];
                self.fetches.push((topic, self.gate.next_fetch()));
                self.topics.get_mut(topic).unwrap().waits = true;
            }
            Event::Fetched {
                which,
                hosts,
                typed,
            } => {
                if let Some((topic, fetch)) = take(&mut self.fetches, which) {
                    let hosts: Vec<_> = hosts.into_iter().map(|host| HOSTS[host]).collect();
                    self.fetched(topic, fetch, route(topic, &hosts, typed));
                }
            }
            Event::FetchFailed { which } => {
                if let Some((topic, fetch)) = take(&mut self.fetches, which) {
                    self.fetch_failed(topic, fetch);
                }
            }
            Event::Answer {
                which,
                passes,
                dies,
            } => {
                if let Some(at) = take(&mut self.asked, which) {
                    self.answer(&at, passes, dies);
                }
            }
            Event::Recover { host } => {
                let at = endpoints(HOSTS[host]);
                // The exchange under way has the same outcome, which is told twice.
                let told = self.asked.iter().filter(|asked| **asked == at).count();
                self.asked.retain(|asked| *asked != at);
                for _ in 0..=told {
                    self.answer(&at, true, false);
                    self.asked.retain(|asked| *asked != at);
                }
            }
            Event::Die { host } => self.lives.die(&endpoints(HOSTS[host])),
            Event::Advance { secs } => self.now += Duration::from_secs(secs),
            Event::Restart => self.restart(),
        }
        self.check();
    }

    /// The gate is made anew, the committed routes stay, and callers were told so.
    fn restart(&mut self) {
        self.gate = self.gate.anew();
        self.restarted_at = self.gate.sequence;
        self.asked.clear();
        for expected in self.topics.values_mut() {
            *expected = Expected::default();
        }
    }

    fn fetched(&mut self, topic: &'static str, fetch: u64, route: Arc<Route>) {
        let committed = self.table.get(topic);
        let open = self.gate.is_open(topic);
        let expected = self.topics.get_mut(topic).unwrap();
        let older = fetch <= self.restarted_at
            || expected
                .newest
                .as_ref()
                .is_some_and(|(newest, _)| *newest > fetch);
        let mut silent = older;
        if !older {
            let worse = committed
                .as_ref()
                .is_some_and(|good| route.is_worse_than(good));
            let since = worse.then(|| expected.worse_since.unwrap_or(self.now));
            if since.is_some_and(|since| self.now - since < REFRESH) {
                expected.worse_since = since;
                silent = true;
            } else {
                expected.worse_since = None;
                let last = expected.newest.replace((fetch, route.clone()));
                let same = last.is_some_and(|(_, last)| last.same_as(&route));
                silent = same && !expected.refused && (open || committed.is_some());
                expected.refused = false;
            }
        }
        let steps = self
            .gate
            .fetched(&topic.into(), fetch, route, &self.table, self.now);
        if silent {
            let quiet = steps.iter().all(|step| matches!(step, Step::Answer(..)));
            assert!(quiet, "older, worse or unchanged, yet {steps:?}");
        }
        self.take(steps);
    }

    fn fetch_failed(&mut self, topic: &'static str, fetch: u64) {
        let steps = self.gate.fetch_failed(&topic.into(), fetch, dead("x"));
        let quiet = steps.iter().all(|step| matches!(step, Step::Answer(..)));
        assert!(quiet, "a failed fetch changes nothing: {steps:?}");
        self.take(steps);
    }

    fn answer(&mut self, at: &Endpoints, passes: bool, dies: bool) {
        let answer = if passes {
            let proof = self.lives.prove(at);
            self.proven.insert(at.clone(), proof.clone());
            Ok(proof)
        } else {
            Err(dead("x"))
        };
        // A failure means that the session is not ready.
        if dies || !passes {
            self.lives.die(at);
        }
        let steps = self.gate.answered(at, answer, &self.table);
        self.take(steps);
    }

    fn take(&mut self, steps: Vec<Step<Proof>>) {
        for step in steps {
            match step {
                Step::Prepare(at) => {
                    assert!(!self.asked.contains(&at), "{at} is asked while it is asked");
                    self.asked.push(at);
                }
                Step::Commit(commit) => self.commit(commit),
                Step::Answer(topic, outcome) => {
                    let expected = self.topics.get_mut(&*topic).unwrap();
                    expected.waits = false;
                    // Only a refusal by the gate; the models of a failed fetch and of one that was
                    // overtaken are the same with it and without.
                    expected.refused |= outcome
                        .as_ref()
                        .is_err_and(|error| error.to_string().contains("did not accept"));
                    assert!(
                        outcome.is_err() || self.table.get(&topic).is_some(),
                        "{topic} is answered without a route"
                    );
                }
            }
        }
    }

    fn commit(&mut self, commit: Commit<Proof>) {
        let (topic, route) = (commit.topic().clone(), commit.route().clone());
        for at in route.endpoints() {
            let proven = self.proven.get(&at).is_some_and(Proof::is_current);
            assert!(
                self.table.contains(&at) || proven,
                "{at} was not prepared when {topic} was committed"
            );
            assert!(
                !self.gate.quarantined().contains(&at),
                "{at} is in quarantine"
            );
        }
        let (_, newest) = self.topics[&*topic].newest.as_ref().unwrap();
        let visible = newest.without(self.gate.quarantined());
        assert!(visible.same_as(&route), "not the newest route of {topic}");
        if self.all_or_nothing {
            assert!(newest.same_as(&route), "all or nothing commits all");
        }
        if let Some(before) = self.table.get(&topic) {
            assert!(!before.same_as(&route), "{topic} is committed unchanged");
        }
        self.table = self.table.with(commit);
    }

    fn check(&self) {
        for at in self.gate.quarantined() {
            assert!(
                !self.proven.get(at).is_some_and(Proof::is_current),
                "{at} is well, and will not say so again"
            );
            assert!(
                !self.table.contains(at),
                "{at} is committed and quarantined"
            );
        }
        for (topic, expected) in &self.topics {
            let under_way = self
                .fetches
                .iter()
                .any(|(of, fetch)| of == topic && *fetch > self.restarted_at);
            assert!(
                !expected.waits || under_way || self.gate.is_open(topic),
                "{topic} waits for nothing"
            );
            assert!(
                !self.gate.is_open(topic) || !self.asked.is_empty(),
                "the gate of {topic} is open and nobody is asked"
            );
        }
    }

    /// Everything that is under way comes to an end, and all sessions live.
    fn settle(&mut self) {
        while let Some((topic, fetch)) = self.fetches.pop() {
            self.fetch_failed(topic, fetch);
        }
        while let Some(at) = self.asked.pop() {
            self.answer(&at, true, false);
        }
        let quarantined: Vec<_> = self.gate.quarantined().iter().cloned().collect();
        for at in quarantined {
            self.answer(&at, true, false);
            while let Some(at) = self.asked.pop() {
                self.answer(&at, true, false);
            }
        }
        for (topic, expected) in &self.topics {
            assert!(!expected.waits, "a caller of {topic} was never answered");
            assert!(!self.gate.is_open(topic));
            if let (Some(route), Some((_, newest))) = (self.table.get(topic), &expected.newest) {
                assert!(
                    expected.refused || route.same_as(newest),
                    "with all alive {topic} has all its queues"
                );
            }
        }
    }
}

fn take<T>(items: &mut Vec<T>, which: usize) -> Option<T> {
    (!items.is_empty()).then(|| items.remove(which % items.len()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_gate_keeps_its_word_whatever_happens(
        all_or_nothing in prop::bool::weighted(0.3),
        events in prop::collection::vec(event(), 1..80),
    ) {
        let mut model = Model::new(all_or_nothing);
        for event in events {
            model.happen(event);
        }
        model.settle();
    }
}
