//! Telemetry: settings up, commands down.

use std::sync::{Arc, Mutex, PoisonError};

use rocketmq_proto::v2 as pb;
use rocketmq_proto::v2::telemetry_command::Command;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status, Streaming};

use super::ticket::Ticket;
use super::{Items, Port};
use crate::fault::Instead;
use crate::headers::Headers;
use crate::node::{CommandSender, Observer};
use crate::rpc::{Answer, Checked, ok, refuse};
use crate::settings::{self, Kind};

/// Commands that wait for a client to read them.
const COMMANDS: usize = 64;

/// What the proxy knows as languages; the protocol's own names differ.
const LANGUAGES: [&str; 14] = [
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP",
    "OMS", "RUST", "NODE_JS",
];

/// One telemetry stream, from the side that reads it.
struct Session {
    port: Port,
    headers: Arc<Headers>,
    commands: CommandSender,
    stream: u64,
    stop: CancellationToken,
    /// Commands that a fault leaves without an answer for as long as the stream lives.
    unanswered: Mutex<Vec<Ticket>>,
}

impl Port {
    /// Opens a telemetry stream. The task that reads it ends with the stream or the connection.
    pub(super) fn observe(
        &self,
        request: Request<Streaming<pb::TelemetryCommand>>,
    ) -> Items<pb::TelemetryCommand> {
        let (commands, answers) = mpsc::channel(COMMANDS);
        let session = Session {
            port: self.clone(),
            headers: Arc::new(Headers::of(request.metadata())),
            commands,
            stream: self.cluster.number(),
            stop: self.connection.child_token(),
            unanswered: Mutex::default(),
        };
        let open = self.node.open(|node| &node.telemetry_streams);
        self.cluster.recorder.touch();
        let inbound = request.into_inner();
        self.cluster.tasks.spawn(async move {
            let stop = session.stop.clone();
            let gone = session.commands.clone();
            tokio::select! {
                () = session.read(inbound) => {}
                () = stop.cancelled() => {}
                () = gone.closed() => {}
            }
            session.leave();
            drop(open);
            session.port.cluster.recorder.touch();
        });
        Box::pin(ReceiverStream::new(answers))
    }
}

/// Whether the stream goes on.
type Goes = std::ops::ControlFlow<()>;

impl Session {
    async fn read(&self, mut inbound: Streaming<pb::TelemetryCommand>) {
        while let Ok(Some(command)) = inbound.message().await {
            if self.take(command).await.is_break() {
                return;
            }
        }
    }

    async fn take(&self, command: pb::TelemetryCommand) -> Goes {
        let ticket = self.port.arrive_with(Arc::clone(&self.headers), &command);
        ticket.delay().await;
        if !ticket.works() {
            return self.instead(ticket).await;
        }
        if let Err(refusal) = self.port.admit(&ticket) {
            self.refuse(&ticket, refusal).await;
            return Goes::Break(());
        }
        let Some(Command::Settings(settings)) = command.command else {
            ticket.answered(Some(&ok()));
            return Goes::Continue(());
        };
        let merged = match self.merge(settings) {
            Ok(merged) => merged,
            Err(refusal) => {
                self.fail(&ticket, telemetry_failure(&refusal)).await;
                return Goes::Break(());
            }
        };
        self.answer(ticket, merged).await
    }

    async fn answer(&self, ticket: Ticket, merged: pb::Settings) -> Goes {
        let merged = Arc::new(merged);
        {
            let mut state = self.port.node.state();
            let expiry = self.port.cluster.options.client_expiry;
            state.settle_in(&self.headers.client_id, Arc::clone(&merged), expiry);
            state.observers.insert(
                self.headers.client_id.as_str().into(),
                Observer {
                    stream: self.stream,
                    commands: self.commands.clone(),
                    stop: self.stop.clone(),
                    connection: self.port.connection.clone(),
                },
            );
        }
        ticket.delay_reply().await;
        if ticket.planned().is_some() {
            return self.instead(ticket).await;
        }
        let mut reply = pb::TelemetryCommand {
            status: Some(ok()),
            command: Some(Command::Settings(Arc::unwrap_or_clone(merged))),
        };
        ticket.mutate(reply.reply());
        let status = reply.status.clone();
        if status.as_ref().is_some_and(|s| s.code() == pb::Code::Ok) {
            let mut state = self.port.node.state();
            state.standings.answered(&self.headers.client_id);
        }
        let sent = self.commands.send(Ok(reply)).await;
        ticket.answered(status.as_ref());
        if sent.is_err() {
            return Goes::Break(());
        }
        Goes::Continue(())
    }

    fn merge(&self, settings: pb::Settings) -> Checked<pb::Settings> {
        if !LANGUAGES.contains(&self.headers.language.as_str()) {
            return refuse(
                pb::Code::InternalServerError,
                format!(
                    "No enum constant org.apache.rocketmq.remoting.protocol.LanguageCode.{}",
                    self.headers.language
                ),
            );
        }
        let group = match settings::check(&settings, self.port.cluster.options.pull)? {
            Kind::Producer => None,
            Kind::Consumer { group } if self.port.cluster.options.auto_create_groups => {
                Some(self.port.cluster.group_or_new(group))
            }
            Kind::Consumer { group } => match self.port.cluster.group(group) {
                Some(config) => Some(config),
                None => {
                    return refuse(
                        pb::Code::ConsumerGroupNotFound,
                        format!("group not found: {group}"),
                    );
                }
            },
        };
        Ok(match group {
            None => settings::merge_producer(settings),
            Some(group) => settings::merge_consumer(settings, &group),
        })
    }

    /// What a fault does in the place of an answer.
    async fn instead(&self, ticket: Ticket) -> Goes {
        match ticket.planned() {
            None => {}
            Some(Instead::Status(status)) => self.refuse(&ticket, status.clone()).await,
            Some(Instead::Grpc(code, message)) => {
                self.fail(&ticket, Status::new(*code, message.clone()))
                    .await;
            }
            Some(Instead::End) => {}
            Some(Instead::Reset) => ticket.cut(),
            // The stream stays open, and later commands are read.
            Some(Instead::Nothing) => {
                self.unanswered
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(ticket);
                return Goes::Continue(());
            }
        }
        Goes::Break(())
    }

    /// One command with a status; the stream then ends in good order.
    async fn refuse(&self, ticket: &Ticket, refusal: pb::Status) {
        ticket.answered(Some(&refusal));
        let refusal = pb::TelemetryCommand::refused(refusal);
        // A client that is gone needs no answer.
        let _ = self.commands.send(Ok(refusal)).await;
    }

    async fn fail(&self, ticket: &Ticket, status: Status) {
        ticket.failed(&status);
        let _ = self.commands.send(Err(status)).await;
    }

    /// The client stays registered, but gets no commands by this stream.
    fn leave(&self) {
        let mut state = self.port.node.state();
        let id = self.headers.client_id.as_str();
        if state
            .observers
            .get(id)
            .is_some_and(|observer| observer.stream == self.stream)
        {
            state.observers.remove(id);
        }
    }
}

fn telemetry_failure(refusal: &pb::Status) -> Status {
    let text = format!(
        "process client telemetryCommand failed. {}",
        refusal.message
    );
    if (40_000..50_000).contains(&refusal.code) {
        Status::invalid_argument(text)
    } else {
        Status::internal(text)
    }
}
