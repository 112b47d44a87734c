//! Heartbeats of a session, and what comes of missed ones.

use std::sync::Arc;

use actix::{Addr, AsyncContext, Handler};

use super::{SessionActor, SessionLife, is_connection_loss};
use crate::{
    member::Member,
    messages::session::{HeartbeatAnswered, SettingsLost},
    rpc::says_settings_lost,
};

/// Missed heartbeats in a row after which the connections are made anew.
const MISSES: u32 = 2;

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
        if says_settings_lost(&error) {
            ctx.notify(SettingsLost {
                generation: message.generation,
            });
        } else if is_connection_loss(error.kind()) {
            self.state.misses = self.state.misses.saturating_add(1);
            if self.state.misses >= MISSES {
                self.rebuild("it misses heartbeats", true);
            } else {
                self.probe(ctx.address());
            }
        }
    }
}

impl SessionActor {
    /// A heartbeat out of its turn.
    fn probe(&self, session: Addr<Self>) {
        let (member, life) = (self.spec.member.clone(), self.spec.life.clone());
        self.state.tasks.spawn(heartbeat(member, life, session));
    }

    /// Makes the connections anew, unless that happened a moment ago.
    pub(super) fn rebuild(&mut self, why: &str, gone: bool) {
        // Closes the stream, whose end opens the next one over a new connection.
        let pool = self.spec.member.rpc.pool();
        if pool.rebuild(self.spec.life.endpoints(), gone) {
            self.state.misses = 0;
            self.distrust(why);
        }
    }
}
