//! The sentences of the gate, each as a test over the state machine alone.

use super::*;

/// A gate with the table it fills, and what it said.
struct Scene {
    gate: Gate<Proof>,
    table: RouteTable,
    lives: Lives,
    now: Instant,
    asked: Vec<String>,
    commits: Vec<String>,
    answers: Vec<(String, Result<(), Error>)>,
}

impl Scene {
    fn new(all_or_nothing: bool) -> Self {
        Self {
            gate: Gate::new(all_or_nothing, REFRESH),
            table: RouteTable::default(),
            lives: Lives::default(),
            now: Instant::now(),
            asked: Vec::new(),
            commits: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn take(&mut self, steps: Vec<Step<Proof>>) {
        for step in steps {
            match step {
                Step::Prepare(endpoints) => self.asked.push(host(&endpoints)),
                Step::Commit(commit) => {
                    let hosts: Vec<_> = commit.route().endpoints().iter().map(host).collect();
                    let commit_of = format!("{} {}", commit.topic(), hosts.join("+"));
                    self.commits.push(commit_of.trim_end().to_owned());
                    self.table = self.table.with(commit);
                }
                Step::Answer(topic, outcome) => self.answers.push((topic.to_string(), outcome)),
            }
        }
    }

    fn fetch(&mut self, topic: &str, hosts: &[&str]) {
        self.fetch_route(topic, route(topic, hosts, true));
    }

    fn fetch_route(&mut self, topic: &str, route: Arc<Route>) {
        let fetch = self.gate.next_fetch();
        self.deliver(topic, fetch, route);
    }

    fn deliver(&mut self, topic: &str, fetch: u64, route: Arc<Route>) {
        let steps = self
            .gate
            .fetched(&topic.into(), fetch, route, &self.table, self.now);
        self.take(steps);
    }

    fn pass(&mut self, host: &str) {
        let at = endpoints(host);
        let proof = self.lives.prove(&at);
        let steps = self.gate.answered(&at, Ok(proof), &self.table);
        self.take(steps);
    }

    fn fail(&mut self, host: &str) {
        let steps = self
            .gate
            .answered(&endpoints(host), Err(dead(host)), &self.table);
        self.take(steps);
    }

    fn hosts(&self, topic: &str) -> Vec<String> {
        let route = self.table.get(topic);
        route.map_or_else(Vec::new, |route| {
            route.endpoints().iter().map(host).collect()
        })
    }

    /// The outcome of the last answer.
    fn last_answer(&self) -> &(String, Result<(), Error>) {
        self.answers.last().unwrap()
    }

    fn last_error(&self) -> String {
        self.last_answer().1.as_ref().unwrap_err().to_string()
    }
}

fn host(endpoints: &Endpoints) -> String {
    let text = endpoints.to_string();
    text.split(':').next().unwrap().to_owned()
}

#[test]
fn a_route_is_committed_when_all_its_new_endpoints_have_answered_and_not_before() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a", "b"]);
    assert_eq!(scene.asked, ["a", "b"]);
    scene.pass("a");
    assert!(scene.commits.is_empty() && scene.answers.is_empty());
    scene.pass("b");
    assert_eq!(scene.commits, ["t a+b"]);
    assert!(scene.last_answer().1.is_ok());
}

#[test]
fn only_endpoints_that_no_committed_route_names_are_asked() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a"]);
    scene.pass("a");
    scene.fetch("u", &["a", "b"]);
    assert_eq!(scene.asked, ["a", "b"], "a once, for t");
}

#[test]
fn when_nobody_passes_nothing_is_committed_and_the_error_names_them_all() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a", "b"]);
    scene.fail("a");
    scene.fail("b");
    assert!(scene.commits.is_empty() && scene.hosts("t").is_empty());
    let error = scene.last_error();
    for part in ["topic t", "a:8081", "b:8081", "connection refused"] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn a_refused_route_passes_the_gate_again_at_the_next_try() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a"]);
    scene.fail("a");
    scene.fetch("t", &["a"]);
    assert_eq!(scene.asked, ["a", "a"], "the same route, asked about anew");
    scene.pass("a");
    assert_eq!(scene.commits, ["t a"]);
}

#[test]
fn a_dead_endpoint_is_quarantined_and_the_route_committed_without_its_queues() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a", "b"]);
    scene.fail("b");
    scene.pass("a");
    assert_eq!(scene.commits, ["t a"]);
    assert!(scene.last_answer().1.is_ok());
    assert!(scene.gate.quarantined().contains(&endpoints("b")));
    assert!(
        scene.gate.wanted().contains(&endpoints("b")),
        "its session keeps trying"
    );
}

#[test]
fn an_endpoint_that_was_committed_before_counts_as_living() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a"]);
    scene.pass("a");
    scene.fetch("u", &["a", "b"]);
    scene.fail("b");
    assert_eq!(scene.commits, ["t a", "u a"]);
}

#[test]
fn later_fetches_do_not_wait_for_a_quarantined_endpoint_again() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a", "b"]);
    scene.fail("b");
    scene.pass("a");
    scene.fetch("u", &["a", "b"]);
    assert_eq!(scene.commits, ["t a", "u a"]);
    scene.fetch("v", &["b", "c"]);
    assert_eq!(scene.asked, ["a", "b", "c"], "b once");
    scene.pass("c");
    assert_eq!(scene.hosts("v"), ["c"]);
    scene.fetch("w", &["b"]);
    assert_eq!(scene.asked.len(), 4, "there is nobody else to ask");
}

#[test]
fn the_success_of_a_quarantined_endpoint_runs_the_gate_again() {
    let mut scene = Scene::new(false);
    for topic in ["t", "u"] {
        scene.fetch(topic, &["a", "b"]);
    }
    scene.fail("b");
    scene.pass("a");
    scene.commits.clear();
    scene.pass("b");
    assert_eq!(scene.commits, ["t a+b", "u a+b"]);
    assert!(scene.gate.quarantined().is_empty());
}

#[test]
fn a_success_counts_even_after_a_failure_while_the_gate_is_open() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a", "b"]);
    scene.fail("b");
    scene.pass("b");
    scene.fail("a");
    assert_eq!(scene.commits, ["t b"], "b lives, and will not say so again");
}

#[test]
fn a_quarantined_endpoint_that_recovers_counts_at_gates_that_are_open() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a", "b"]);
    scene.fail("b");
    scene.pass("a");
    scene.fetch("u", &["b", "c"]);
    scene.pass("b");
    scene.fail("c");
    assert_eq!(scene.hosts("u"), ["b"]);
}

#[test]
fn all_or_nothing_refuses_a_route_when_one_new_endpoint_fails() {
    let mut scene = Scene::new(true);
    scene.fetch("t", &["a"]);
    scene.pass("a");
    scene.fetch("t", &["a", "b", "c"]);
    scene.pass("b");
    scene.fail("c");
    assert_eq!(scene.commits, ["t a"], "the cache keeps what it had");
    let error = scene.last_error();
    assert!(
        error.contains("c:8081") && !error.contains("b:8081"),
        "{error}"
    );
    assert!(scene.gate.quarantined().is_empty());
    scene.fetch("t", &["a", "b", "c"]);
    scene.pass("b");
    scene.pass("c");
    assert_eq!(scene.hosts("t"), ["a", "b", "c"], "nothing is poisoned");
}

#[test]
fn two_topics_that_wait_for_one_endpoint_share_one_exchange() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a"]);
    scene.fetch("u", &["a"]);
    assert_eq!(scene.asked, ["a"]);
    scene.pass("a");
    assert_eq!(scene.commits, ["t a", "u a"]);
}

#[test]
fn while_a_gate_is_open_other_topics_commit() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a"]);
    scene.pass("a");
    scene.fetch("u", &["b"]);
    assert!(scene.gate.is_open("u"));
    scene.fetch("v", &["a"]);
    assert_eq!(scene.commits, ["t a", "v a"]);
}

#[test]
fn an_older_fetch_never_overwrites_a_newer_commit() {
    let mut scene = Scene::new(false);
    let (old, new) = (scene.gate.next_fetch(), scene.gate.next_fetch());
    scene.deliver("t", new, route("t", &["a"], true));
    scene.pass("a");
    scene.deliver("t", old, route("t", &["b"], true));
    assert_eq!((scene.hosts("t"), scene.asked.len()), (vec!["a".into()], 1));
    assert!(scene.last_answer().1.is_ok(), "its callers get the newer");
}

#[test]
fn a_fetch_from_before_a_restart_is_not_believed_and_does_not_stand_in_the_way() {
    let mut scene = Scene::new(false);
    let old = scene.gate.next_fetch();
    scene.fetch("t", &["a"]);
    scene.pass("a");
    scene.gate = scene.gate.anew();
    scene.deliver("t", old, route("t", &["b"], true));
    assert_eq!(scene.asked, ["a"]);
    scene.fetch("t", &["c"]);
    scene.pass("c");
    assert_eq!(scene.hosts("t"), ["c"], "the first fetch afterwards counts");
}

#[test]
fn a_newer_fetch_takes_over_an_open_gate() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a"]);
    scene.fetch("t", &["b"]);
    scene.pass("a");
    assert!(scene.commits.is_empty() && scene.answers.is_empty());
    scene.pass("b");
    assert_eq!(scene.commits, ["t b"]);
}

#[test]
fn a_failed_fetch_leaves_the_table_and_an_open_gate_alone() {
    let mut scene = Scene::new(false);
    let lost = scene.gate.next_fetch();
    scene.fetch("t", &["a"]);
    let steps = scene.gate.fetch_failed(&"t".into(), lost, dead("x"));
    assert!(steps.is_empty(), "who waits gets what comes of the gate");
    scene.pass("a");
    let lost = scene.gate.next_fetch();
    let steps = scene.gate.fetch_failed(&"t".into(), lost, dead("x"));
    scene.take(steps);
    assert!(scene.last_answer().1.is_err());
    assert_eq!(scene.hosts("t"), ["a"]);
}

#[test]
fn an_unchanged_fetch_commits_nothing_whatever_the_order_and_the_quarantine() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a", "b"]);
    scene.fail("b");
    scene.pass("a");
    scene.fetch("t", &["b", "a"]);
    assert_eq!((scene.commits.len(), scene.asked.len()), (1, 2));
    assert_eq!(scene.answers.len(), 2, "its callers are answered");
    scene.gate = scene.gate.anew();
    scene.fetch("t", &["a", "b"]);
    scene.fail("b");
    assert_eq!(scene.commits.len(), 1, "nor after a restart of the gate");
}

#[test]
fn a_worse_route_does_not_replace_a_better_one_within_one_refresh_period() {
    for worse in [route("t", &[], true), route("t", &["a"], false)] {
        let mut scene = Scene::new(false);
        scene.fetch("t", &["a"]);
        scene.pass("a");
        scene.fetch_route("t", worse.clone());
        scene.now += REFRESH - Duration::from_millis(1);
        scene.fetch_route("t", worse.clone());
        assert_eq!(scene.commits.len(), 1);
        assert!(scene.last_answer().1.is_ok());
        scene.now += Duration::from_millis(1);
        scene.fetch_route("t", worse.clone());
        assert_eq!(
            scene.commits.len(),
            2,
            "after a whole period it is believed"
        );
    }
}

#[test]
fn a_good_fetch_between_two_worse_ones_starts_the_period_anew() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a"]);
    scene.pass("a");
    scene.fetch("t", &[]);
    scene.now += REFRESH;
    scene.fetch("t", &["a"]);
    scene.fetch("t", &[]);
    assert_eq!(scene.commits, ["t a"]);
}

#[test]
fn an_empty_route_is_committed_where_there_is_no_better_one() {
    let mut scene = Scene::new(true);
    scene.fetch("t", &[]);
    assert_eq!(scene.commits, ["t"]);
    assert!(scene.last_answer().1.is_ok());
}

#[test]
fn a_session_that_died_between_its_answer_and_the_commit_is_asked_again() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["a", "b"]);
    scene.pass("a");
    scene.lives.die(&endpoints("a"));
    scene.pass("b");
    assert!(scene.commits.is_empty() && scene.answers.is_empty());
    assert_eq!(scene.asked, ["a", "b", "a"]);
    scene.pass("a");
    assert_eq!(scene.commits, ["t a+b"]);
}

#[test]
fn an_endpoint_that_the_commit_before_dropped_is_asked_again() {
    let mut scene = Scene::new(false);
    scene.fetch("t", &["x"]);
    scene.pass("x");
    scene.fetch("t", &["y"]);
    scene.fetch("u", &["x", "y"]);
    scene.lives.die(&endpoints("x"));
    scene.pass("y");
    assert_eq!(scene.hosts("t"), ["y"]);
    assert_eq!(scene.asked, ["x", "y", "x"], "no route names x any more");
    assert!(scene.hosts("u").is_empty());
    scene.pass("x");
    assert_eq!(scene.hosts("u"), ["x", "y"]);
}
