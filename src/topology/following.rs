//! What a group does about what happens to its children.

use std::{future::Future, pin::Pin, time::Duration};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    ChildState, Exit,
    control::{ChildControl, Status},
    group::AddError,
    members::{Command, Members},
    order::Turn,
    plan::{Plan, Step},
    spec::ChildSpec,
    started::Started,
    supervisor::Decides,
};

/// How long a child may take to come up, or beyond its limit to go down, before its thread
/// counts as blocked.
const BLOCKED: Duration = Duration::from_secs(10);

/// Which child a notice is about.
#[derive(Debug, Clone, Copy)]
enum Who {
    Static(usize),
    Dynamic,
}

struct Notice {
    who: Who,
    control: ChildControl,
    status: watch::Receiver<Status>,
}

/// Why a group cannot go on.
type Failure = String;

/// The children of one generation of a group. Each has one notice under way, which comes when
/// its state changes.
pub(super) struct Following<'a> {
    members: &'a Members,
    plan: Plan,
    children: Vec<ChildControl>,
    notices: FuturesUnordered<Pin<Box<dyn Future<Output = Notice>>>>,
    /// The child that was told to go down, and until when it may take.
    going_down: Option<(usize, Instant)>,
}

impl<'a> Following<'a> {
    pub(super) fn new(members: &'a Members) -> Self {
        let spec = members.spec();
        Self {
            members,
            plan: Plan::new(spec.strategy, spec.intensity),
            children: Vec::new(),
            notices: FuturesUnordered::new(),
            going_down: None,
        }
    }

    /// Starts the static children, each when the one before is up.
    pub(super) async fn start_all(&mut self) -> Result<(), Failure> {
        for (child, spec) in self.members.spec().children.iter().enumerate() {
            let failure = |error: AddError| format!("{} did not start: {error}", spec.name);
            let control = self.start(spec).await.map_err(failure)?;
            self.plan
                .started(spec.restart, spec.backoff, Instant::now());
            self.children.push(control.clone());
            self.await_notice(Who::Static(child), control);
        }
        Ok(())
    }

    async fn start(&self, spec: &ChildSpec) -> Result<ChildControl, AddError> {
        let Started { control, .. } = self.members.start(spec, Decides::Group)?;
        let up = if spec.bounds_its_start {
            control.up().await
        } else {
            let up = timeout(BLOCKED, control.up()).await;
            up.unwrap_or(Err(Exit::Unresponsive))
        };
        up.map(|()| control).map_err(AddError::NotStarted)
    }

    /// Follows all children until one takes the group down.
    pub(super) async fn follow(&mut self, inbox: &mut mpsc::Receiver<Command>) -> Failure {
        loop {
            let patience = self.going_down;
            tokio::select! {
                Some(notice) = self.notices.next() => {
                    if let Err(failure) = self.hear(notice) {
                        return failure;
                    }
                }
                Some(command) = inbox.recv() => self.add(command),
                Some(child) = out_of(patience) => return self.name(child, "does not stop"),
            }
        }
    }

    fn add(&mut self, Command { spec, reply }: Command) {
        let started = self.members.start(&spec, Decides::Alone);
        let control = started.map(|started| started.control);
        if let Ok(control) = &control {
            self.await_notice(Who::Dynamic, control.clone());
        }
        // Whoever asked may have gone; the child is in the tree all the same.
        let _ = reply.send(control);
    }

    fn hear(&mut self, mut notice: Notice) -> Result<(), Failure> {
        let state = notice.status.borrow_and_update().state.clone();
        match notice.who {
            Who::Static(child) => self.hear_of(child, &state)?,
            Who::Dynamic => self.hear_of_dynamic(&notice.control, &state)?,
        }
        if state.end().is_none() {
            self.notices.push(Box::pin(notice.next()));
        }
        Ok(())
    }

    fn hear_of(&mut self, child: usize, state: &ChildState) -> Result<(), Failure> {
        let now = Instant::now();
        if matches!(state, ChildState::Down(_)) || state.end().is_some() {
            self.going_down.take_if(|(going, _)| *going == child);
        }
        let step = match state {
            ChildState::Running => self.plan.up(child, now),
            ChildState::Down(exit) => {
                let mut rng = self.members.rng();
                self.plan.down(child, exit, now, &mut rng)
            }
            ChildState::Stopped(exit) | ChildState::GaveUp(exit) => {
                if !self.plan.ended(child, exit) {
                    return Err(self.name(child, &exit.to_string()));
                }
                self.plan.next_in_line()
            }
            ChildState::Starting | ChildState::Restarting { .. } => None,
        };
        match step {
            Some(step) => self.take(step, state),
            None => Ok(()),
        }
    }

    fn take(&mut self, Step { child, turn }: Step, state: &ChildState) -> Result<(), Failure> {
        let Some(control) = self.children.get(child) else {
            return Ok(());
        };
        if turn == Turn::Suspend {
            let limit = self.members.spec().children.get(child);
            let limit = limit.map_or(BLOCKED, |spec| spec.stop.limit() + BLOCKED);
            self.going_down = Some((child, Instant::now() + limit));
        }
        control.turn(turn.clone());
        match (turn, state) {
            (Turn::GiveUp, ChildState::Down(exit)) => {
                Err(self.name(child, &format!("gave up: {exit}")))
            }
            _ => Ok(()),
        }
    }

    fn hear_of_dynamic(&self, control: &ChildControl, state: &ChildState) -> Result<(), Failure> {
        if state.end().is_some() {
            self.members.forget(control);
        }
        match state {
            ChildState::GaveUp(exit) => Err(format!("{} gave up: {exit}", control.path())),
            _ => Ok(()),
        }
    }

    fn await_notice(&self, who: Who, control: ChildControl) {
        let mut status = control.watch();
        // Whatever happened until now is heard at once.
        status.mark_changed();
        let notice = Notice {
            who,
            control,
            status,
        };
        self.notices.push(Box::pin(notice.next()));
    }

    fn name(&self, child: usize, what: &str) -> Failure {
        let path = self.children.get(child).map(|control| &**control.path());
        format!("{} {what}", path.unwrap_or_default())
    }
}

impl Notice {
    async fn next(mut self) -> Self {
        // An error means that the last state has been seen, and that was an end.
        let _ = self.status.changed().await;
        self
    }
}

/// The child whose time is over, when it is.
async fn out_of(patience: Option<(usize, Instant)>) -> Option<usize> {
    match patience {
        Some((child, until)) => {
            sleep_until(until).await;
            Some(child)
        }
        None => std::future::pending().await,
    }
}
