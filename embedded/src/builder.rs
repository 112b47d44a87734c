//! Setting up a broker.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::Credentials;
use crate::broker::EmbeddedBroker;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::node::Node;
use crate::serve::bind;
use crate::store::Store;
use crate::store::half::Checks;

/// The port of nodes that are reached by pipes.
const PIPE_PORT: u16 = 8081;

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) auto_create_groups: bool,
    pub(crate) client_expiry: Duration,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) max_concurrent_streams: Option<u32>,
    pub(crate) record_limit: usize,
    pub(crate) in_memory: bool,
    pub(crate) pull: bool,
    pub(crate) recall: bool,
    pub(crate) legacy_batch: bool,
    pub(crate) stopped: CancellationToken,
}

/// What a broker is like. Made by [`EmbeddedBroker::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is started"]
pub struct Builder {
    nodes: usize,
    redelivery_slack: Duration,
    retention: usize,
    check_timeout: Duration,
    check_interval: Duration,
    wall_clock: SystemTime,
    options: Options,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            nodes: 1,
            redelivery_slack: Duration::from_millis(20),
            retention: 1_000_000,
            check_timeout: Duration::from_secs(6),
            check_interval: Duration::from_secs(30),
            wall_clock: SystemTime::now(),
            options: Options {
                auto_create_groups: true,
                client_expiry: Duration::from_secs(120),
                credentials: None,
                max_concurrent_streams: None,
                record_limit: 1_000_000,
                in_memory: false,
                pull: false,
                recall: false,
                legacy_batch: false,
                stopped: CancellationToken::new(),
            },
        }
    }

    /// How many nodes there are, 1 when not said, 250 at most. Each is an endpoint of its own
    /// with a broker behind it (`broker-0`, `broker-1`, …) that has all queues of every topic.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes.clamp(1, 250);
        self
    }

    /// Opens no port: nodes are called `10.0.0.1:8081`, `10.0.0.2:8081`, … and are reached with
    /// [`EmbeddedBroker::connect`]. For tests under a paused clock.
    pub fn in_memory(mut self) -> Self {
        self.options.in_memory = true;
        self
    }

    /// How much later than its invisible time a message is visible again. 20 ms when not said;
    /// a real broker takes about two seconds.
    pub fn redelivery_slack(mut self, slack: Duration) -> Self {
        self.redelivery_slack = slack;
        self
    }

    /// Whether groups that nobody made are made when a client names them, which is the default
    /// (a real cluster does so). If not, their clients' settings are refused.
    pub fn auto_create_groups(mut self, create: bool) -> Self {
        self.options.auto_create_groups = create;
        self
    }

    /// How long a client may send no heartbeat before it is forgotten. 120 s when not said.
    pub fn client_expiry(mut self, expiry: Duration) -> Self {
        self.options.client_expiry = expiry;
        self
    }

    /// Demands that every call is signed with these.
    pub fn credentials(mut self, access_key: impl Into<String>, secret: impl Into<String>) -> Self {
        self.options.credentials = Some(Credentials {
            access_key: access_key.into(),
            secret: secret.into(),
        });
        self
    }

    /// How many calls at a time one connection may have. No limit when not said.
    pub fn max_concurrent_streams(mut self, streams: u32) -> Self {
        self.options.max_concurrent_streams = Some(streams);
        self
    }

    /// How many calls, deliveries and acknowledgements are remembered, at the price of the
    /// oldest. 1,000,000 when not said.
    pub fn record_limit(mut self, calls: usize) -> Self {
        self.options.record_limit = calls;
        self
    }

    /// Remembers no calls, deliveries and acknowledgements. [`EmbeddedBroker::wait_for`] then
    /// sees an empty record, and the other counters still work.
    pub fn without_record(self) -> Self {
        self.record_limit(0)
    }

    /// Serves the methods of pulling and takes pull consumers, as the protocol describes it. No
    /// real proxy does, and this broker does not when not said.
    pub fn pull_rpcs(mut self, serve: bool) -> Self {
        self.options.pull = serve;
        self
    }

    /// Lets delayed messages be recalled. A real broker forbids it when not told otherwise, and
    /// so does this one.
    pub fn recall(mut self, allow: bool) -> Self {
        self.options.recall = allow;
        self
    }

    /// Damages batches as real servers up to 5.3.3 do: each message of a send with several gets the
    /// id, tag, keys and properties of the first, and keeps its own only where that has none. Off
    /// when not said: newer servers keep them apart.
    pub fn legacy_batch(mut self, damage: bool) -> Self {
        self.options.legacy_batch = damage;
        self
    }

    /// How many messages every queue keeps, at the price of the oldest, consumed or not.
    /// 1,000,000 when not said.
    pub fn retention(mut self, messages: usize) -> Self {
        self.retention = messages.max(1);
        self
    }

    /// How old a half message is before its producer is asked, and how often the broker looks.
    /// 6 s and 30 s when not said.
    pub fn transaction_checks(mut self, timeout: Duration, interval: Duration) -> Self {
        self.check_timeout = timeout;
        self.check_interval = interval;
        self
    }

    /// What the broker's wall clock shows when it starts; then it moves with tokio's clock.
    /// The time of building when not said.
    pub fn wall_clock(mut self, start: SystemTime) -> Self {
        self.wall_clock = start;
        self
    }

    /// Starts it on the current runtime.
    ///
    /// # Errors
    ///
    /// When no loopback port can be opened.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its clock enabled.
    pub async fn start(mut self) -> io::Result<EmbeddedBroker> {
        // Clones of a builder start brokers of their own.
        self.options.stopped = CancellationToken::new();
        let checks = Checks {
            timeout: self.check_timeout,
            interval: self.check_interval,
            started: Instant::now(),
        };
        let mut nodes = Vec::with_capacity(self.nodes);
        let mut listeners = Vec::new();
        for index in 0..self.nodes {
            let address = if self.options.in_memory {
                (format!("10.0.0.{}", index + 1), PIPE_PORT)
            } else {
                let (listener, address) = bind(0).await?;
                listeners.push(listener);
                (address.ip().to_string(), address.port())
            };
            let store = Store::new(
                format!("broker-{index}"),
                self.retention,
                self.redelivery_slack,
                checks,
            );
            let running = self.options.stopped.child_token();
            nodes.push(Arc::new(Node::new(index, address, store, running)));
        }
        let clock = Clock::starting_at(self.wall_clock);
        let cluster = Arc::new(Cluster::new(clock, self.options, nodes));
        for node in &cluster.nodes {
            let time = Arc::clone(&cluster).keep_time(Arc::clone(node));
            cluster.tasks.spawn(time);
        }
        for (node, listener) in cluster.nodes.iter().zip(listeners) {
            cluster.listen(node, listener);
        }
        Ok(EmbeddedBroker::of(cluster))
    }
}
