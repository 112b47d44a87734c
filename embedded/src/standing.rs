//! The rule that a node is used by nobody before it answered his settings.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::rpc::Rpc;

/// Calls that were on their way when their client was told that its settings are lost.
const CROSSING: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug)]
enum Standing {
    /// Settings were answered with OK.
    Answered,
    /// The node lost them and the client does not know.
    Forgotten,
    /// The client was told.
    Told(Instant),
}

/// What every client of a node may do.
#[derive(Debug, Default)]
pub(crate) struct Standings {
    of: HashMap<Arc<str>, Standing>,
}

impl Standings {
    pub(crate) fn answered(&mut self, client: &str) {
        self.of.insert(client.into(), Standing::Answered);
    }

    pub(crate) fn forgotten(&mut self, client: &str) {
        if let Some(standing) = self.of.get_mut(client) {
            *standing = Standing::Forgotten;
        }
    }

    pub(crate) fn all_forgotten(&mut self) {
        self.of
            .values_mut()
            .for_each(|standing| *standing = Standing::Forgotten);
    }

    /// The client left by itself.
    pub(crate) fn left(&mut self, client: &str) {
        self.of.remove(client);
    }

    pub(crate) fn told(&mut self, client: &str) {
        if let Some(standing @ Standing::Forgotten) = self.of.get_mut(client) {
            *standing = Standing::Told(Instant::now());
        }
    }

    /// What is wrong with this call, if anything.
    pub(crate) fn objection(&self, client: &str, rpc: Rpc) -> Option<&'static str> {
        if matches!(rpc, Rpc::QueryRoute | Rpc::Telemetry) {
            return None;
        }
        match self.of.get(client) {
            None => Some("before its settings were answered"),
            Some(Standing::Told(at)) if rpc != Rpc::Heartbeat && at.elapsed() > CROSSING => {
                Some("after it was told that its settings are lost")
            }
            Some(_) => None,
        }
    }
}
