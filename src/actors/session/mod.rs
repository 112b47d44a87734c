//! The session of one endpoint: telemetry stream, settings, heartbeat, the server's commands,
//! retirement.

mod channel;
mod commands;
mod heartbeat;
mod life;
mod reopen;
mod stream;

use std::{sync::Arc, time::Duration};

use actix::{
    Actor, ActorContext, Addr, AsyncContext, Context, Handler, Recipient, ResponseFuture,
    Supervised,
};
use rocketmq_proto::v2 as pb;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use life::{SessionLife, SettingsApplied};

use self::{channel::Watch, commands::Reaction, heartbeat::heartbeat, reopen::Reopening};
use crate::{
    Error, ErrorKind, Result,
    member::Member,
    messages::{
        route::SessionAnswered,
        session::{
            CommandReceived, EndSession, Prepare, Reopen, SettingsLost, SettingsOverdue, StreamEnd,
            StreamEnded, StreamOpened, SyncSettings,
        },
    },
    rpc::check,
    topology::{EventKind, Scope, Tasks},
};

/// What a session is, unchanged over restarts.
#[derive(Debug, Clone)]
pub(crate) struct SessionSpec {
    pub(crate) member: Arc<Member>,
    pub(crate) life: Arc<SessionLife>,
    /// The route actor, told when settings are applied again after they were not.
    pub(crate) observer: Recipient<SessionAnswered>,
}

/// The session of one endpoint.
#[derive(Debug)]
pub(crate) struct SessionActor {
    spec: SessionSpec,
    scope: Scope,
    state: State,
}

/// The stream that is open, or being opened.
#[derive(Debug)]
struct Stream {
    number: u64,
    outgoing: Option<mpsc::Sender<pb::TelemetryCommand>>,
    /// Ends the stream's task together with this.
    _task: DropGuard,
}

#[derive(Debug)]
struct State {
    stream: Option<Stream>,
    streams: u64,
    channel: Option<Watch>,
    /// Whether the settings changed while the stream was being opened with the older ones.
    changed: bool,
    waiting: Vec<oneshot::Sender<Result<SettingsApplied>>>,
    reopening: Reopening,
    heartbeats: bool,
    misses: u32,
    ending: bool,
    tasks: Tasks,
}

impl State {
    fn new(spec: &SessionSpec, scope: &Scope) -> Self {
        spec.life.next_generation();
        Self {
            stream: None,
            streams: 0,
            channel: None,
            changed: false,
            waiting: Vec::new(),
            reopening: Reopening::new(spec.member.config.environment.rng()),
            heartbeats: false,
            misses: 0,
            ending: false,
            tasks: scope.tasks(),
        }
    }
}

impl SessionActor {
    pub(crate) fn new(spec: SessionSpec, scope: Scope) -> Self {
        let state = State::new(&spec, &scope);
        Self { spec, scope, state }
    }

    /// Opens the next stream; its settings have to be answered within their time.
    fn open(&mut self, session: Addr<Self>) {
        self.state.streams += 1;
        self.state.changed = false;
        let stream = self.state.streams;
        let cancel = CancellationToken::new();
        self.state.stream = Some(Stream {
            number: stream,
            outgoing: None,
            _task: cancel.clone().drop_guard(),
        });
        self.state.reopening.opened(Instant::now());
        let SessionSpec { member, life, .. } = &self.spec;
        let task = stream::run(
            member.clone(),
            life.endpoints().clone(),
            stream,
            session.clone(),
        );
        self.state.tasks.spawn(async move {
            cancel.run_until_cancelled_owned(task).await;
        });
        self.expect_settings(stream, session);
    }

    /// The settings have to be answered within their time.
    fn expect_settings(&self, stream: u64, session: Addr<Self>) {
        let SessionSpec { member, life, .. } = &self.spec;
        let generation = life.generation();
        self.state
            .tasks
            .after(member.config.settings_timeout, async move {
                session.do_send(SettingsOverdue { stream, generation });
            });
    }

    fn is_current(&self, stream: u64) -> bool {
        self.state
            .stream
            .as_ref()
            .is_some_and(|current| current.number == stream)
    }

    fn is_open(&self) -> bool {
        let stream = self.state.stream.as_ref();
        stream.is_some_and(|stream| stream.outgoing.is_some())
    }

    fn write(&self, command: pb::TelemetryCommand) {
        let open = self
            .state
            .stream
            .as_ref()
            .and_then(|stream| stream.outgoing.as_ref());
        if let Some(outgoing) = open
            && outgoing.try_send(command).is_err()
        {
            tracing::debug!(endpoint = %self.spec.life.endpoints(), "telemetry does not drain");
        }
    }

    /// The settings were answered: apply them, then let everybody know.
    fn apply(&mut self, settings: &pb::Settings, ctx: &mut Context<Self>) {
        let SessionSpec {
            member,
            life,
            observer,
        } = &self.spec;
        if !member.role.apply(settings) {
            let error = Error::new(
                ErrorKind::Protocol,
                "the server answered with settings for another kind of client",
            );
            return self.refuse(&error.operation("Telemetry").endpoint(life.endpoints()));
        }
        let fresh = !life.is_ready();
        let witness = life.apply();
        for waiting in self.state.waiting.drain(..) {
            // Who no longer waits needs no answer.
            let _ = waiting.send(Ok(witness.clone()));
        }
        if fresh {
            tracing::debug!(endpoint = %life.endpoints(), "settings applied");
            member.review();
            member.report(EventKind::SessionUp {
                endpoint: life.endpoints().clone(),
            });
            let endpoints = life.endpoints().clone();
            observer.do_send(SessionAnswered {
                endpoints,
                answer: Ok(witness),
            });
        }
        if !self.state.heartbeats {
            self.state.heartbeats = true;
            self.start_timers(ctx.address());
        }
    }

    fn start_timers(&self, session: Addr<Self>) {
        let SessionSpec { member, life, .. } = &self.spec;
        let intervals = member.config.intervals.clone();
        let (member, life, to) = (member.clone(), life.clone(), session.clone());
        self.state
            .tasks
            .every(Duration::ZERO, intervals.heartbeat, move || {
                heartbeat(member.clone(), life.clone(), to.clone())
            });
        self.state
            .tasks
            .every(intervals.settings, intervals.settings, move || {
                let session = session.clone();
                async move {
                    // Lost only with the actor, whose next generation starts with its settings.
                    let _ = session.send(SyncSettings).await;
                }
            });
    }

    /// The stream failed before its settings were applied: who waits gets the error.
    fn refuse(&mut self, error: &Error) {
        if !self.spec.life.is_ready() {
            self.spec.life.set_failure(Some(error.clone()));
        }
        for waiting in self.state.waiting.drain(..) {
            let _ = waiting.send(Err(error.clone()));
        }
    }

    /// Lets the stream go and opens another after a while, or retires.
    fn close(&mut self, ctx: &mut Context<Self>) {
        self.state.stream = None;
        let SessionSpec { member, life, .. } = &self.spec;
        let wanted = member.sessions.is_wanted(life.endpoints());
        if self.state.ending || (!wanted && self.state.waiting.is_empty()) {
            tracing::debug!(endpoint = %life.endpoints(), "session retires");
            member.sessions.forget(life);
            if life.is_ready() {
                self.report_down("nothing needs it any more");
            }
            ctx.stop();
            return;
        }
        let wait = self.state.reopening.wait(Instant::now());
        let session = ctx.address();
        self.state
            .tasks
            .after(wait, async move { session.do_send(Reopen) });
    }

    /// Nothing goes to the endpoint until its settings are answered again.
    fn distrust(&mut self, why: &str) {
        let life = &self.spec.life;
        if life.is_ready() {
            tracing::info!(endpoint = %life.endpoints(), why, "settings have to be answered again");
            life.next_generation();
            self.report_down(why);
        }
    }

    fn report_down(&self, why: &str) {
        let SessionSpec { member, life, .. } = &self.spec;
        member.review();
        member.report(EventKind::SessionDown {
            endpoint: life.endpoints().clone(),
            reason: why.to_owned(),
        });
    }
}

impl Actor for SessionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.open(ctx.address());
    }
}

impl Supervised for SessionActor {
    fn restarting(&mut self, _: &mut Self::Context) {
        let was_ready = self.spec.life.is_ready();
        self.state = State::new(&self.spec, &self.scope);
        if was_ready {
            self.report_down("its actor was restarted");
        }
    }
}

impl Handler<Prepare> for SessionActor {
    type Result = ResponseFuture<Result<SettingsApplied>>;

    fn handle(&mut self, _: Prepare, _: &mut Self::Context) -> Self::Result {
        if let Some(witness) = self.spec.life.witness() {
            return Box::pin(async move { Ok(witness) });
        }
        let (answer, answered) = oneshot::channel();
        self.state.waiting.push(answer);
        Box::pin(async move {
            let lost = || Error::new(ErrorKind::Server, "the session restarted meanwhile");
            answered.await.unwrap_or_else(|_| Err(lost()))
        })
    }
}

impl Handler<StreamOpened> for SessionActor {
    type Result = ();

    fn handle(&mut self, message: StreamOpened, ctx: &mut Self::Context) {
        if let Some(stream) = &mut self.state.stream
            && stream.number == message.stream
        {
            stream.outgoing = Some(message.outgoing);
            self.watch_channel(message.stream, message.closed, ctx.address());
            if std::mem::take(&mut self.state.changed) {
                self.write(stream::settings_command(&self.spec.member));
            }
        }
    }
}

impl Handler<CommandReceived> for SessionActor {
    type Result = ();

    fn handle(&mut self, message: CommandReceived, ctx: &mut Self::Context) {
        if !self.is_current(message.stream) {
            return;
        }
        let refused = message
            .command
            .status
            .as_ref()
            .and_then(|status| check(Some(status)).err());
        if let Some(error) = refused {
            let endpoints = self.spec.life.endpoints();
            self.refuse(&error.operation("Telemetry").endpoint(endpoints));
            return;
        }
        match commands::react(message.command.command, &self.spec.member) {
            Reaction::Apply(settings) => self.apply(&settings, ctx),
            Reaction::Answer(command) => self.write(*command),
            Reaction::Reconnect => self.rebuild("the server asked to reconnect", false),
            Reaction::Ignore(what) => {
                let endpoint = self.spec.life.endpoints();
                tracing::debug!(%endpoint, what, "command ignored");
            }
        }
    }
}

impl Handler<SettingsOverdue> for SessionActor {
    type Result = ();

    fn handle(&mut self, message: SettingsOverdue, ctx: &mut Self::Context) {
        let life = &self.spec.life;
        let overtaken = message.generation != life.generation() || life.is_ready();
        if overtaken || !self.is_current(message.stream) {
            return;
        }
        let timeout = self.spec.member.config.settings_timeout;
        let error = Error::new(
            ErrorKind::Timeout,
            format!("settings unanswered for {timeout:?}"),
        )
        .operation("Telemetry")
        .endpoint(self.spec.life.endpoints());
        self.refuse(&error);
        self.close(ctx);
    }
}

impl Handler<StreamEnded> for SessionActor {
    type Result = ();

    fn handle(&mut self, message: StreamEnded, ctx: &mut Self::Context) {
        if !self.is_current(message.stream) {
            return;
        }
        let endpoint = self.spec.life.endpoints().clone();
        tracing::debug!(%endpoint, end = ?message.end, "telemetry stream ended");
        let error = match message.end {
            StreamEnd::Failed(error) => {
                if is_connection_loss(error.kind()) {
                    self.distrust("the connection was lost");
                }
                error
            }
            StreamEnd::Completed => Error::new(
                ErrorKind::Server,
                "the server ended telemetry without settings",
            )
            .operation("Telemetry")
            .endpoint(&endpoint),
            StreamEnd::ChannelClosed => {
                self.distrust("its channel was closed");
                Error::new(ErrorKind::Disconnected, "the channel was closed").endpoint(&endpoint)
            }
        };
        self.refuse(&error);
        self.close(ctx);
    }
}

fn is_connection_loss(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Disconnected | ErrorKind::Unreachable | ErrorKind::Tls | ErrorKind::Timeout
    )
}

impl Handler<Reopen> for SessionActor {
    type Result = ();

    fn handle(&mut self, _: Reopen, ctx: &mut Self::Context) {
        if self.state.stream.is_none() && !self.state.ending {
            self.open(ctx.address());
        }
    }
}

impl Handler<SyncSettings> for SessionActor {
    type Result = ();

    fn handle(&mut self, _: SyncSettings, _: &mut Self::Context) {
        // Without a stream there is nothing to do: the next one starts with the settings. One
        // that is being opened has started with the older ones.
        self.state.changed = true;
        if self.is_open() {
            self.state.changed = false;
            self.write(stream::settings_command(&self.spec.member));
        }
    }
}

impl Handler<SettingsLost> for SessionActor {
    type Result = ();

    fn handle(&mut self, message: SettingsLost, ctx: &mut Self::Context) {
        if message.generation != self.spec.life.generation() || !self.spec.life.is_ready() {
            return;
        }
        self.distrust("the server does not know this client");
        // At once over the open stream. It may be deaf, so the answer has its time, too.
        self.write(stream::settings_command(&self.spec.member));
        if let Some(Stream { number, .. }) = self.state.stream {
            self.expect_settings(number, ctx.address());
        }
    }
}

impl Handler<EndSession> for SessionActor {
    type Result = ();

    fn handle(&mut self, _: EndSession, ctx: &mut Self::Context) {
        self.state.ending = true;
        self.refuse(&Error::closed("the session"));
        match &mut self.state.stream {
            // Without its sending half the stream ends when the server has completed it, too.
            Some(stream) => stream.outgoing = None,
            None => self.close(ctx),
        }
    }
}
