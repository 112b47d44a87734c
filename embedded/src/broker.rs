//! The handle to a broker.

use std::future::Future;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

use tokio::io::DuplexStream;
use tokio::time::Instant;

use crate::builder::Builder;
use crate::cluster::{Cluster, Metadata};
use crate::config::{GroupConfig, TopicConfig};
use crate::connector::Connector;
use crate::fault::{Fault, FaultHandle};
use crate::live::Live;
use crate::node::Node;
use crate::record::Record;

/// A running broker. Clones are handles to the same one; it stops when the last is dropped or
/// on [`shutdown`](Self::shutdown).
///
/// Methods that take the number of a node ignore numbers of nodes that do not exist, unless they
/// say otherwise.
#[derive(Clone, Debug)]
pub struct EmbeddedBroker {
    running: Arc<Running>,
}

/// Stops the broker when the last handle is dropped.
#[derive(Debug)]
struct Running {
    cluster: Arc<Cluster>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cluster.stopped.cancel();
    }
}

impl EmbeddedBroker {
    pub(crate) fn of(cluster: Arc<Cluster>) -> Self {
        Self {
            running: Arc::new(Running { cluster }),
        }
    }

    pub(crate) fn cluster(&self) -> &Arc<Cluster> {
        &self.running.cluster
    }

    /// What a broker can be told before it starts.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// One node on a free loopback port.
    ///
    /// # Errors
    ///
    /// When no port can be opened.
    pub async fn start() -> io::Result<Self> {
        Self::builder().start().await
    }

    /// Stops the broker and waits until all its tasks ended. Other handles stay, to look at what
    /// happened.
    pub async fn shutdown(&self) {
        self.cluster().stopped.cancel();
        self.cluster().tasks.close();
        self.cluster().tasks.wait().await;
    }

    /// The access point for clients: `host:port` of node 0.
    #[must_use]
    pub fn endpoints(&self) -> String {
        self.node_endpoints(0)
    }

    /// `host:port` of one node; empty when there is no such node.
    #[must_use]
    pub fn node_endpoints(&self, node: usize) -> String {
        self.node(node)
            .map(|node| format!("{}:{}", node.host, node.port))
            .unwrap_or_default()
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.cluster().nodes.len()
    }

    /// What the broker's wall clock shows now.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        self.cluster().clock.wall(Instant::now())
    }

    pub(crate) fn node(&self, node: usize) -> Option<&Arc<Node>> {
        self.cluster().nodes.get(node)
    }

    /// Connects to a node of an in-memory broker.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::ConnectionRefused`] when no node has this address, it is stopped, or the
    /// broker has real ports.
    pub fn connect(
        &self,
        host: &str,
        port: u16,
    ) -> impl Future<Output = io::Result<DuplexStream>> + Send + 'static {
        std::future::ready(self.connector().connect(host, port))
    }

    /// Connects like [`connect`](Self::connect), and does not keep the broker running.
    #[must_use]
    pub fn connector(&self) -> Connector {
        Connector::to(self.cluster())
    }

    /// Makes a topic, or changes one: its type, its permission, and how many queues clients are
    /// told of. Messages in queues that clients are no longer told of can still be received.
    pub fn create_topic(&self, topic: impl Into<String>, config: TopicConfig) {
        self.metadata(|metadata| metadata.topics.insert(topic.into(), config));
    }

    /// Removes a topic and its messages.
    pub fn delete_topic(&self, topic: &str) {
        self.metadata(|metadata| metadata.topics.remove(topic));
        for node in &self.cluster().nodes {
            node.state().store.drop_topic(topic);
        }
    }

    /// Makes a consumer group.
    pub fn create_group(&self, group: impl Into<String>, config: GroupConfig) {
        self.metadata(|metadata| metadata.groups.insert(group.into(), config));
    }

    /// Changes a consumer group, which is made when there is none. Clients learn of it when they
    /// send their settings next; the broker tells nobody by itself.
    pub fn update_group(&self, group: impl Into<String>, change: impl FnOnce(&mut GroupConfig)) {
        self.metadata(|metadata| change(metadata.groups.entry(group.into()).or_default()));
    }

    pub(crate) fn metadata<T>(&self, act: impl FnOnce(&mut Metadata) -> T) -> T {
        act(&mut self.cluster().metadata())
    }

    /// All calls up to now.
    #[must_use]
    pub fn record(&self) -> Record {
        self.cluster().recorder.snapshot()
    }

    /// Waits until `met` agrees. It is asked at once, then whenever a call arrives or is
    /// answered and whenever messages, streams or polls come or go; it may look at anything of
    /// the broker. Cancel safe.
    pub async fn wait_for(&self, met: impl FnMut(&Record) -> bool) {
        self.cluster().recorder.wait_for(met).await;
    }

    /// Calls that reached a node before it had answered the settings of their client with OK.
    ///
    /// Route queries and telemetry are free. A client whose settings the node lost may not know:
    /// what it does until an answer tells it so is excused, and heartbeats after that.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.cluster()
            .violations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Asserts that there are no [`violations`](Self::violations).
    ///
    /// # Panics
    ///
    /// With the list, when there are any.
    #[track_caller]
    pub fn assert_settings_first(&self) {
        let violations = self.violations();
        assert!(
            violations.is_empty(),
            "nodes were used before they answered settings:\n{}",
            violations.join("\n")
        );
    }

    /// Adds a rule for what goes wrong.
    pub fn fault(&self, fault: Fault) -> FaultHandle {
        self.cluster().faults.add(fault)
    }

    /// Removes all rules.
    pub fn clear_faults(&self) {
        self.cluster().faults.clear();
    }

    /// What is open on a node now.
    #[must_use]
    pub fn live(&self, node: usize) -> Live {
        let Some(node) = self.node(node) else {
            return Live::default();
        };
        let mut live = node.live();
        if self.cluster().options.in_memory {
            live.listening = !node.refuses();
        }
        live
    }
}
