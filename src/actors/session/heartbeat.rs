//! Heartbeats of a session, and what comes of missed ones.

use std::{sync::Arc, time::Duration};

use actix::{Addr, AsyncContext, Handler};
use rocketmq_proto::v2 as pb;
use tokio::time::Instant;

use super::{SessionActor, SessionLife, is_connection_loss};
use crate::{
    member::Member,
    messages::session::{HeartbeatAnswered, SettingsLost},
};

/// Missed heartbeats in a row after which the connections are made anew.
const MISSES: u32 = 2;
/// Connections of one endpoint are made anew for missed heartbeats at most once in this time.
const COOL_DOWN: Duration = Duration::from_secs(30);

/// One heartbeat, if the endpoint is part of a committed route.
pub(super) async fn heartbeat(
    member: Arc<Member>,
    life: Arc<SessionLife>,
    session: Addr<SessionActor>,
) {
    let generation = life.generation();
    if !life.is_ready() || !member.sessions.is_wanted(life.endpoints()) {
        return;
    }
    let request = member.role.heartbeat();
    let timeout = member.rpc.timeout();
    let answer = member
        .rpc
        .heartbeat(life.endpoints(), request, timeout)
        .await
        .map(drop);
    // Lost only with the actor, whose next generation beats anew.
    let _ = session.send(HeartbeatAnswered { generation, answer }).await;
}

impl Handler<HeartbeatAnswered> for SessionActor {
    type Result = ();

    fn handle(&mut self, message: HeartbeatAnswered, ctx: &mut Self::Context) {
        let endpoint = self.spec.life.endpoints().clone();
        let Err(error) = message.answer else {
            self.state.misses = 0;
            self.spec.member.isolation.rejoin(&endpoint);
            return;
        };
        tracing::debug!(%endpoint, %error, "heartbeat failed");
        if error.server_code() == Some(pb::Code::UnrecognizedClientType as i32) {
            ctx.notify(SettingsLost {
                generation: message.generation,
            });
        } else if is_connection_loss(error.kind()) {
            self.state.misses += 1;
            if self.state.misses >= MISSES {
                self.rebuild();
            }
        }
    }
}

impl SessionActor {
    /// Makes the connections anew, unless that happened a moment ago.
    pub(super) fn rebuild(&mut self) {
        let now = Instant::now();
        let recent = self
            .state
            .rebuilt
            .is_some_and(|at| now.duration_since(at) < COOL_DOWN);
        if !recent {
            self.state.rebuilt = Some(now);
            self.state.misses = 0;
            self.distrust("its connections are made anew");
            // Closes the stream, whose end opens the next one over a new connection.
            self.spec
                .member
                .rpc
                .pool()
                .discard(self.spec.life.endpoints());
        }
    }
}
