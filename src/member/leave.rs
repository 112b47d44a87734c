//! Taking leave: half-close telemetry, notify the servers, stop the actors.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::time::Instant;

use super::{Member, Session};
use crate::{messages::session::EndSession, topology::Stop};

/// How long a server may take to complete its half of a telemetry stream.
const HALF_CLOSE: Duration = Duration::from_millis(300);

impl Member {
    /// Takes leave of every server and stops all actors, by `deadline`.
    pub(crate) async fn leave(self: &Arc<Self>, deadline: Instant) {
        let sessions = self.sessions.all();
        // Nothing may be sent any more after the termination, by whoever still runs.
        self.rpc.close();
        let children: Vec<_> = self.children().iter().rev().cloned().collect();
        for control in &children {
            control.request_stop(Stop::Within(Duration::ZERO));
        }
        let leaving = join_all(sessions.iter().map(|session| self.leave_server(session)));
        if tokio::time::timeout_at(deadline, leaving).await.is_err() {
            tracing::debug!(member = %self.path, "a server did not answer the termination");
        }
        let controls = sessions
            .into_iter()
            .map(|session| session.control)
            .chain(children);
        let stops = controls.map(|control| async move {
            control.stop(Stop::Within(Duration::ZERO)).await;
        });
        if tokio::time::timeout_at(deadline, join_all(stops))
            .await
            .is_err()
        {
            tracing::warn!(member = %self.path, "an actor does not stop, its thread is blocked");
        }
        self.sessions.clear();
    }

    async fn leave_server(&self, session: &Session) {
        let known = session.life.is_ready();
        session.addr.do_send(EndSession);
        let ended = tokio::time::timeout(HALF_CLOSE, session.control.stopped()).await;
        if ended.is_err() {
            session.control.request_stop(Stop::Within(Duration::ZERO));
        }
        if !known {
            return;
        }
        let endpoints = session.life.endpoints();
        let request = self.role.termination();
        let timeout = self.rpc.timeout();
        let notified = self
            .rpc
            .notify_client_termination(endpoints, request, timeout)
            .await;
        if let Err(error) = notified {
            tracing::debug!(endpoint = %endpoints, %error, "termination not answered");
        }
    }
}
