//! Counting what is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::node::Node;

/// What is open on a node now, and what was opened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Live {
    /// Whether connections are taken.
    pub listening: bool,
    /// Connections open now.
    pub connections: usize,
    /// Connections accepted since the start.
    pub connections_accepted: usize,
    /// Telemetry streams open now.
    pub telemetry_streams: usize,
    /// Telemetry streams opened since the start.
    pub telemetry_streams_opened: usize,
    /// Receives that wait for a message now.
    pub parked_polls: usize,
    /// Clients whose settings the node holds.
    pub clients: usize,
}

/// Counts what is open now and what ever was.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    now: AtomicUsize,
    ever: AtomicUsize,
}

/// One that is open, until it is dropped.
#[derive(Debug)]
pub(crate) struct Open {
    node: Arc<Node>,
    gauge: fn(&Node) -> &Gauge,
}

impl Open {
    pub(crate) fn new(node: &Arc<Node>, gauge: fn(&Node) -> &Gauge) -> Self {
        gauge(node).now.fetch_add(1, Ordering::AcqRel);
        gauge(node).ever.fetch_add(1, Ordering::AcqRel);
        Self {
            node: Arc::clone(node),
            gauge,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        (self.gauge)(&self.node).now.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Gauge {
    pub(crate) fn now(&self) -> usize {
        self.now.load(Ordering::Acquire)
    }

    pub(crate) fn ever(&self) -> usize {
        self.ever.load(Ordering::Acquire)
    }
}
