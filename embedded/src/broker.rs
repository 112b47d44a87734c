//! The handle to a broker.

use std::future::Future;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

use rocketmq_proto::v2 as pb;
use tokio::io::DuplexStream;
use tokio::time::Instant;

use crate::builder::Builder;
use crate::cluster::{Cluster, Metadata};
use crate::config::{GroupConfig, TopicConfig};
use crate::fault::{Fault, FaultHandle};
use crate::node::{Live, Node};
use crate::record::Record;
use crate::serve::bind;

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
        Connector {
            cluster: Arc::clone(self.cluster()),
        }
    }

    /// Makes a topic, or changes the type and permission of one. A topic that has messages
    /// already keeps its queues.
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
    /// the broker but [`record`](Self::record), which it gets. Cancel safe.
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
        self.node(node).map(|node| node.live()).unwrap_or_default()
    }

    /// Makes routes and assignments name another address for a node.
    pub fn advertise(&self, node: usize, host: impl Into<String>, port: u16) {
        if let Some(node) = self.node(node) {
            node.advertise(host.into(), port);
        }
    }

    /// Changes what [`Rpc::QueryRoute`](crate::Rpc::QueryRoute) answers for a topic, until
    /// [`clear_route`](Self::clear_route).
    pub fn set_route(
        &self,
        topic: impl Into<String>,
        change: impl Fn(&mut Vec<pb::MessageQueue>) + Send + Sync + 'static,
    ) {
        self.metadata(|metadata| metadata.routes.insert(topic.into(), Arc::new(change)));
    }

    /// Answers route queries for a topic as they are again.
    pub fn clear_route(&self, topic: &str) {
        self.metadata(|metadata| metadata.routes.remove(topic));
    }

    /// Answers assignment queries of a topic and group with these, until
    /// [`clear_assignment`](Self::clear_assignment).
    pub fn set_assignment(
        &self,
        topic: impl Into<String>,
        group: impl Into<String>,
        assignments: Vec<pb::Assignment>,
    ) {
        let key = (topic.into(), group.into());
        self.metadata(|metadata| metadata.assignments.insert(key, assignments));
    }

    /// Answers assignment queries of a topic and group as they are again.
    pub fn clear_assignment(&self, topic: impl Into<String>, group: impl Into<String>) {
        let key = (topic.into(), group.into());
        self.metadata(|metadata| metadata.assignments.remove(&key));
    }

    /// Stops a node like a killed process: its connections are cut, new ones are refused, the
    /// settings of its clients are lost. Its messages are kept.
    pub fn stop_node(&self, node: usize) {
        let Some(node) = self.node(node) else { return };
        node.running().cancel();
        let clients: Vec<Arc<str>> = {
            let mut state = node.state();
            state.standings.all_forgotten();
            state.observers.clear();
            state.clients.keys().cloned().collect()
        };
        for client in clients {
            self.cluster().forget_unrenewed(node, &client);
        }
    }

    /// Starts a stopped node again, with its old address.
    ///
    /// # Errors
    ///
    /// When its port is taken meanwhile.
    pub async fn start_node(&self, node: usize) -> io::Result<()> {
        let Some(node) = self.node(node) else {
            return Ok(());
        };
        if !node.running().is_cancelled() || self.cluster().stopped.is_cancelled() {
            return Ok(());
        }
        let listener = if self.cluster().options.in_memory {
            None
        } else {
            Some(bind(node.port).await?.0)
        };
        node.restart(self.cluster().stopped.child_token());
        if let Some(listener) = listener {
            self.cluster().listen(node, listener);
        }
        Ok(())
    }

    /// While on, a node takes connections, and neither reads nor writes on any.
    pub fn black_hole(&self, node: usize, on: bool) {
        if let Some(node) = self.node(node) {
            node.valve.set(on);
        }
    }
}

/// Connects to the nodes of an in-memory broker; what a client's own connector calls.
#[derive(Clone, Debug)]
pub struct Connector {
    cluster: Arc<Cluster>,
}

impl Connector {
    /// Opens a pipe to the node with this address.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::ConnectionRefused`] when no node has it, it is stopped, or the broker
    /// has real ports.
    pub fn connect(&self, host: &str, port: u16) -> io::Result<DuplexStream> {
        if !self.cluster.options.in_memory {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        self.cluster.pipe(host, port)
    }
}
