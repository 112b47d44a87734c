//! Scripted routes and assignments, and nodes that stop, move and hang.

use std::io;
use std::sync::Arc;

use rocketmq_proto::v2 as pb;

use crate::broker::EmbeddedBroker;
use crate::serve::bind;

impl EmbeddedBroker {
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

    /// Makes routes and assignments name another address for a node.
    pub fn advertise(&self, node: usize, host: impl Into<String>, port: u16) {
        if let Some(node) = self.node(node) {
            node.advertise(host.into(), port);
        }
    }

    /// Stops a node like a killed process: its connections are cut, new ones are refused, the
    /// settings of its clients are lost. Its messages are kept. A pipe is refused at once; a real
    /// port is closed a moment later, when [`Live::listening`](crate::Live::listening) is off.
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
