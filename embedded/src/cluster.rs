//! What all nodes share, and what happens on them by itself.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocketmq_proto::v2 as pb;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backoff::Backoff;
use crate::builder::Options;
use crate::clock::Clock;
use crate::config::{GroupConfig, TopicConfig};
use crate::fault::Faults;
use crate::history::History;
use crate::node::Node;
use crate::record::Recorder;
use crate::store::dead_letters::dead_letter_topic;
use crate::store::log::Entry;
use crate::store::timers::Event;
use crate::store::{Holder, Position, Store};

/// A client's messages come back this long after it left.
pub(crate) const RETURN_DELAY: Duration = Duration::from_secs(1);

/// How long a message stays invisible whose renewal just ended.
const LAST_RENEWAL: Duration = Duration::from_secs(60);

pub(crate) type RouteChange = Arc<dyn Fn(&mut Vec<pb::MessageQueue>) + Send + Sync>;

/// Topics, groups and scripted routes.
#[derive(Default)]
pub(crate) struct Metadata {
    pub(crate) topics: BTreeMap<String, TopicConfig>,
    pub(crate) groups: HashMap<String, GroupConfig>,
    pub(crate) routes: HashMap<String, RouteChange>,
    pub(crate) assignments: HashMap<(String, String), Vec<pb::Assignment>>,
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata")
            .field("topics", &self.topics)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) clock: Clock,
    pub(crate) options: Options,
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) recorder: Recorder,
    pub(crate) faults: Faults,
    pub(crate) history: History,
    pub(crate) violations: Mutex<Vec<String>>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stopped: CancellationToken,
    metadata: Mutex<Metadata>,
    numbers: AtomicU64,
}

impl Cluster {
    pub(crate) fn new(clock: Clock, options: Options, nodes: Vec<Arc<Node>>) -> Self {
        Self {
            recorder: Recorder::keeping(options.record_limit),
            history: History::keeping(options.record_limit),
            faults: Faults::default(),
            violations: Mutex::default(),
            tasks: TaskTracker::new(),
            stopped: options.stopped.clone(),
            metadata: Mutex::default(),
            numbers: AtomicU64::new(0),
            clock,
            options,
            nodes,
        }
    }

    /// Held for moments only, and never while a node's state is being waited for.
    pub(crate) fn metadata(&self) -> MutexGuard<'_, Metadata> {
        self.metadata.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers connections and streams.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn topic(&self, name: &str) -> Option<TopicConfig> {
        self.metadata().topics.get(name).cloned()
    }

    pub(crate) fn group(&self, name: &str) -> Option<GroupConfig> {
        self.metadata().groups.get(name).cloned()
    }

    /// The group's configuration, made when it is first used.
    pub(crate) fn group_or_new(&self, name: &str) -> GroupConfig {
        self.metadata()
            .groups
            .entry(name.to_owned())
            .or_default()
            .clone()
    }

    pub(crate) fn node_of_broker(&self, broker: &str) -> Option<&Arc<Node>> {
        self.nodes.iter().find(|node| node.broker == broker)
    }

    /// Copies messages to the group's dead letters on `node`.
    pub(crate) fn bury(&self, node: &Node, group: &str, entries: &[Entry]) {
        if entries.is_empty() {
            return;
        }
        self.metadata()
            .topics
            .entry(dead_letter_topic(group))
            .or_insert_with(|| TopicConfig::normal(1));
        let mut state = node.state();
        for entry in entries {
            state.store.bury(group, entry, self.clock.millis());
        }
        drop(state);
        self.recorder.touch();
    }

    /// Forgets a client of `node`, and returns what was renewed for it.
    pub(crate) fn forget(&self, node: &Node, client: &str, left: bool, delay: Duration) -> bool {
        let known = {
            let mut state = node.state();
            if left {
                state.standings.left(client);
            } else {
                state.standings.forgotten(client);
            }
            state.remove_client(client)
        };
        self.release(&node.holder(client), delay);
        known
    }

    /// Forgets a client because the node went down: nobody renews its messages any more, and
    /// the last renewal runs out.
    pub(crate) fn forget_unrenewed(&self, node: &Node, client: &str) {
        self.forget(node, client, false, LAST_RENEWAL);
    }

    pub(crate) fn release(&self, holder: &Holder, delay: Duration) {
        for node in &self.nodes {
            node.state().store.release(holder, delay);
        }
    }

    /// Makes everything happen on `node` that is due, until the broker stops.
    pub(crate) async fn keep_time(self: Arc<Self>, node: Arc<Node>) {
        let earlier = node.state().store.timers.earlier();
        loop {
            self.fire(&node);
            let next = node.state().store.timers.first();
            let due = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = earlier.notified() => {}
                () = self.stopped.cancelled() => return,
            }
        }
    }

    fn fire(&self, node: &Node) {
        let now = tokio::time::Instant::now();
        let mut expired = Vec::new();
        let mut state = node.state();
        while let Some(event) = state.store.timers.pop_due(now) {
            match event {
                Event::Lease {
                    topic,
                    group,
                    position,
                } => self.lease_due(&mut state.store, &topic, &group, position),
                Event::Order {
                    topic,
                    group,
                    queue,
                } => state.store.order_due(&topic, &group, queue),
                Event::Due { topic, stored } => state.store.deliver_due(&topic, stored),
                Event::Check { topic, id } => state.check(&topic, &id),
                Event::Client { id } => {
                    if state.expired(&id, self.options.client_expiry) {
                        expired.push(id);
                    }
                }
            }
        }
        drop(state);
        for id in expired {
            self.forget(node, &id, false, RETURN_DELAY);
        }
        self.recorder.touch();
    }

    /// A message is visible again; one that was renewed for as long as it may be is so after
    /// the delay of its group.
    fn lease_due(&self, store: &mut Store, topic: &str, group: &str, position: Position) {
        let Some(failed) = store.renewed_to_the_end(topic, group, position) else {
            store.revive(topic, group, position);
            return;
        };
        let backoff = self
            .group(group)
            .map_or_else(Backoff::default, |group| group.backoff);
        store.shorten(topic, group, position, backoff.server_delay(failed), false);
    }
}
