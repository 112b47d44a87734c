//! What a session does about the server's commands.

use pb::telemetry_command::Command;
use rocketmq_proto::v2 as pb;

use crate::member::Member;

/// What has to be done about one command.
#[derive(Debug)]
pub(super) enum Reaction {
    /// Settings, to be applied.
    Apply(Box<pb::Settings>),
    /// An answer, to be written to the stream the command came from.
    Answer(Box<pb::TelemetryCommand>),
    /// Make the connections anew.
    Reconnect,
    /// Nothing; the name goes to the log.
    Ignore(&'static str),
}

pub(super) fn react(command: Option<Command>, member: &Member) -> Reaction {
    match command {
        Some(Command::Settings(settings)) => Reaction::Apply(Box::new(settings)),
        Some(Command::PrintThreadStackTraceCommand(asked)) => {
            // Counters only: more would reveal the inside of the application.
            let trace = pb::ThreadStackTrace {
                nonce: asked.nonce,
                thread_stack_trace: Some(member.counters()),
            };
            answer(pb::Code::Ok, "", Command::ThreadStackTrace(trace))
        }
        Some(Command::VerifyMessageCommand(asked)) => {
            let result = pb::VerifyMessageResult { nonce: asked.nonce };
            let refusal = "messages are not handled on trial";
            answer(
                pb::Code::NotImplemented,
                refusal,
                Command::VerifyMessageResult(result),
            )
        }
        Some(Command::ReconnectEndpointsCommand(_)) => Reaction::Reconnect,
        Some(Command::RecoverOrphanedTransactionCommand(_)) => {
            Reaction::Ignore("recover orphaned transaction")
        }
        Some(Command::NotifyUnsubscribeLiteCommand(_)) => Reaction::Ignore("unsubscribe lite"),
        Some(Command::ThreadStackTrace(_) | Command::VerifyMessageResult(_)) => {
            Reaction::Ignore("an answer nobody asked for")
        }
        None => Reaction::Ignore("empty or unknown"),
    }
}

fn answer(code: pb::Code, text: &str, command: Command) -> Reaction {
    let status = pb::Status {
        code: code as i32,
        message: text.to_owned(),
    };
    Reaction::Answer(Box::new(pb::TelemetryCommand {
        status: Some(status),
        command: Some(command),
    }))
}
