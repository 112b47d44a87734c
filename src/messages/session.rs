//! Messages to a [`SessionActor`](crate::actors::SessionActor).

use actix::Message;
use rocketmq_proto::v2 as pb;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{Error, Result, actors::SettingsApplied};

/// From the route actor, at the gate: answer once the settings are applied.
///
/// Answered at once where they are; otherwise with the outcome of the exchange under way.
#[derive(Debug, Message)]
#[rtype(result = "Result<SettingsApplied>")]
pub(crate) struct Prepare;

/// From the session's timer, and from whoever changed the settings: write them to the server.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct SyncSettings;

/// From heartbeats and receives: the server said that it does not know this client.
///
/// Looked at only if `generation` still is the current one.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct SettingsLost {
    pub(crate) generation: u64,
}

/// From the session's stream task: the stream is open and can be written to.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct StreamOpened {
    pub(crate) stream: u64,
    pub(crate) outgoing: mpsc::Sender<pb::TelemetryCommand>,
    /// Cancelled when the channel it runs on is closed.
    pub(crate) closed: CancellationToken,
}

/// From the session's watch on a channel: the channel this stream ran on, if it does no longer,
/// was closed. Its successor may lead to another server.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct ChannelClosed {
    pub(crate) stream: u64,
}

/// From the session's stream task: the server said something. The task waits for the reply.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct CommandReceived {
    pub(crate) stream: u64,
    pub(crate) command: pb::TelemetryCommand,
}

/// From the session's stream task, as its last message.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct StreamEnded {
    pub(crate) stream: u64,
    pub(crate) end: StreamEnd,
}

/// How a telemetry stream ended.
#[derive(Debug)]
pub(crate) enum StreamEnd {
    /// The server completed it.
    Completed,
    /// It could not be opened, or broke.
    Failed(Error),
    /// Its channel was given up: idle for long, or rebuilt.
    ChannelClosed,
}

/// From the session's timer: what was asked on this stream in this generation should have been
/// answered by now.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct SettingsOverdue {
    pub(crate) stream: u64,
    pub(crate) generation: u64,
}

/// From the session's timer: the back-off is over.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Reopen;

/// From the session's heartbeat task: how a heartbeat went.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct HeartbeatAnswered {
    pub(crate) generation: u64,
    pub(crate) answer: Result<()>,
}

/// From the shutdown of the producer or consumer: half-close telemetry, then stop.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct EndSession;
