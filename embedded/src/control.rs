//! Interfering with clients: commands, broken streams, lost settings.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rocketmq_proto::v2 as pb;
use tonic::Status;

use crate::broker::EmbeddedBroker;
use crate::cluster::RETURN_DELAY;
use crate::node::Observer;
use crate::service::Port;

/// How a telemetry stream is closed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Close {
    /// In good order.
    End,
    /// With a gRPC status.
    Error(tonic::Code, String),
    /// By cutting its connection.
    Reset,
}

impl EmbeddedBroker {
    /// Stores messages on a node as if a producer had sent them in one call, which the record
    /// does not have. On a node that does not exist nothing is stored.
    ///
    /// # Errors
    ///
    /// The status a producer would have got.
    pub fn put(
        &self,
        node: usize,
        messages: Vec<pb::Message>,
    ) -> Result<Vec<pb::SendResultEntry>, pb::Status> {
        let Some(node) = self.node(node) else {
            return Ok(Vec::new());
        };
        let port = Port {
            cluster: Arc::clone(self.cluster()),
            node: Arc::clone(node),
            connection: node.running(),
            number: self.cluster().number(),
        };
        let sent = port.take_in(pb::SendMessageRequest { messages })?;
        Ok(sent.entries)
    }

    /// Sends a command on the telemetry streams of a client, on all nodes. Says on how many: a
    /// stream whose client reads nothing may be full.
    pub fn push_command(&self, client_id: &str, command: &pb::TelemetryCommand) -> usize {
        (0..self.nodes())
            .filter(|node| self.push_command_on(*node, client_id, command.clone()))
            .count()
    }

    /// Sends a command on the telemetry stream that a client has on one node, if it has one.
    pub fn push_command_on(
        &self,
        node: usize,
        client_id: &str,
        command: pb::TelemetryCommand,
    ) -> bool {
        self.observer(node, client_id)
            .is_some_and(|observer| observer.commands.try_send(Ok(command)).is_ok())
    }

    /// Closes the telemetry stream that a client has on a node. Its settings are kept. Says
    /// whether there was one.
    pub fn close_telemetry(&self, node: usize, client_id: &str, how: Close) -> bool {
        let Some(observer) = self.observer(node, client_id) else {
            return false;
        };
        match how {
            Close::End => {}
            Close::Error(code, message) => {
                // A stream that is full or gone is ended just as well.
                let _ = observer.commands.try_send(Err(Status::new(code, message)));
            }
            Close::Reset => observer.connection.cancel(),
        }
        observer.stop.cancel();
        true
    }

    /// Makes a node forget a client's settings, as after a restart of the proxy; its streams
    /// stay open. Says whether it had any.
    pub fn forget_settings(&self, node: usize, client_id: &str) -> bool {
        self.node(node)
            .is_some_and(|node| self.cluster().forget(node, client_id, false, RETURN_DELAY))
    }

    /// While on, a node takes no new connections; those it has, and its clients' settings, stay.
    /// A real port takes them and resets them at once.
    pub fn refuse_connections(&self, node: usize, on: bool) {
        if let Some(node) = self.node(node) {
            node.refusing.store(on, Ordering::Release);
        }
    }

    /// Cuts all connections of a node; it goes on to take new ones.
    pub fn reset_connections(&self, node: usize) {
        if let Some(node) = self.node(node) {
            node.reset.notify_waiters();
        }
    }

    /// The ids of the clients whose settings a node holds, sorted.
    #[must_use]
    pub fn clients(&self, node: usize) -> Vec<String> {
        let mut ids: Vec<String> = self
            .node(node)
            .map(|node| {
                let state = node.state();
                state.clients.keys().map(|id| id.to_string()).collect()
            })
            .unwrap_or_default();
        ids.sort_unstable();
        ids
    }

    /// The settings that a node holds for a client, as it answered them.
    #[must_use]
    pub fn settings(&self, node: usize, client_id: &str) -> Option<pb::Settings> {
        let client = self.node(node)?.client(client_id)?;
        Some(client.settings.as_ref().clone())
    }

    fn observer(&self, node: usize, client_id: &str) -> Option<Observer> {
        self.node(node)?.state().observers.get(client_id).cloned()
    }
}
