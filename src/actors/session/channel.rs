//! A session's eye on the channel that its settings went over.

use actix::{Addr, AsyncContext, Handler};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::SessionActor;
use crate::messages::session::ChannelClosed;

/// Watches the channel of a stream, also when that stream has ended.
#[derive(Debug)]
pub(super) struct Watch {
    stream: u64,
    /// Ends the watch together with this.
    _task: DropGuard,
}

impl SessionActor {
    pub(super) fn watch_channel(
        &mut self,
        stream: u64,
        closed: CancellationToken,
        session: Addr<Self>,
    ) {
        let over = CancellationToken::new();
        self.state.channel = Some(Watch {
            stream,
            _task: over.clone().drop_guard(),
        });
        self.state.tasks.spawn(async move {
            if over.run_until_cancelled(closed.cancelled()).await.is_some() {
                session.do_send(ChannelClosed { stream });
            }
        });
    }
}

impl Handler<ChannelClosed> for SessionActor {
    type Result = ();

    fn handle(&mut self, message: ChannelClosed, ctx: &mut Self::Context) {
        let watched = self.state.channel.as_ref();
        if watched.is_none_or(|watch| watch.stream != message.stream) {
            return;
        }
        self.distrust("its channel was closed");
        // The next stream may be on its way already, in the generation that has just ended.
        if let Some(stream) = &self.state.stream {
            self.expect_settings(stream.number, ctx.address());
        }
    }
}
