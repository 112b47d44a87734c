//! Pipes to an in-memory broker.

use std::io;
use std::sync::Arc;

use tokio::io::DuplexStream;

use crate::cluster::Cluster;

/// Connects to the nodes of an in-memory broker; what a client's own connector calls.
#[derive(Clone, Debug)]
pub struct Connector {
    cluster: Arc<Cluster>,
}

impl Connector {
    pub(crate) fn to(cluster: &Arc<Cluster>) -> Self {
        Self {
            cluster: Arc::clone(cluster),
        }
    }

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
