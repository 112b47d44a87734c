//! The task that owns one telemetry stream and turns what it brings into messages.

use std::sync::Arc;

use actix::Addr;
use rocketmq_proto::v2 as pb;

use super::SessionActor;
use crate::{
    member::Member,
    messages::session::{CommandReceived, StreamEnd, StreamEnded, StreamOpened},
    model::Endpoints,
    rpc::TelemetryStream,
};

/// Opens a stream with the settings as its first command and reads it to its end. Ends early,
/// and without a word, when the actor is gone.
pub(super) async fn run(
    member: Arc<Member>,
    endpoints: Endpoints,
    stream: u64,
    session: Addr<SessionActor>,
) {
    let first = settings_command(&member);
    let timeout = member.config.settings_timeout;
    let end = match member.rpc.telemetry(&endpoints, first, timeout).await {
        Ok(opened) => read(opened, stream, &session).await,
        Err(error) => StreamEnd::Failed(error),
    };
    // The last message of the task: at most one a stream is on its way.
    session.do_send(StreamEnded { stream, end });
}

async fn read(opened: TelemetryStream, stream: u64, session: &Addr<SessionActor>) -> StreamEnd {
    let TelemetryStream {
        outgoing,
        mut incoming,
        slot,
    } = opened;
    let closed = slot.closed.clone();
    let opened = StreamOpened {
        stream,
        outgoing,
        closed,
    };
    if session.send(opened).await.is_err() {
        return StreamEnd::Completed;
    }
    loop {
        let item = tokio::select! {
            biased;
            () = slot.closed.cancelled() => return StreamEnd::ChannelClosed,
            item = incoming.next() => item,
        };
        match item {
            Ok(Some(command)) => {
                // Waiting for the actor keeps a flood of commands on the wire.
                if session
                    .send(CommandReceived { stream, command })
                    .await
                    .is_err()
                {
                    return StreamEnd::Completed;
                }
            }
            Ok(None) => return StreamEnd::Completed,
            Err(error) => return StreamEnd::Failed(error),
        }
    }
}

/// The settings of the producer or consumer, as a command.
pub(super) fn settings_command(member: &Member) -> pb::TelemetryCommand {
    pb::TelemetryCommand {
        status: None,
        command: Some(pb::telemetry_command::Command::Settings(
            member.role.settings(),
        )),
    }
}
