//! Noticing an actor that lives but does not answer.

use std::time::Duration;

use actix::{Actor, Addr, Context, Handler, Message};
use tokio::time::{sleep, timeout};

use super::{ChildState, EventKind, Exit, Place, control::ChildControl, supervisor::ChildPolicy};

/// Asks an actor whether it still handles messages: any answer is a good one. From its liveness
/// check, see [`ChildSpec::liveness`](crate::ChildSpec::liveness).
#[derive(Debug, Clone, Copy)]
pub struct Ping;

impl Message for Ping {
    type Result = ();
}

/// How an actor is checked.
#[derive(Debug, Clone, Copy)]
pub struct Liveness {
    /// Time from an answer to the next question.
    pub every: Duration,
    /// Time for an answer. The question waits behind the mailbox like any message, so this has
    /// to be above the longest backlog that is still well.
    pub within: Duration,
}

impl Liveness {
    /// Checks an actor until it ends for good. A generation that does not answer in time ends as
    /// [`Exit::Unresponsive`], and the policy decides what follows.
    ///
    /// It works on an actor that waits for ever, not on one that blocks its thread: nothing
    /// can end that from outside. It is reported all the same. `place` should be another thread
    /// than the actor's.
    pub(crate) fn watch_over<A>(
        self,
        place: &Place,
        addr: Addr<A>,
        control: ChildControl,
        policy: &ChildPolicy,
    ) where
        A: Actor<Context = Context<A>> + Handler<Ping>,
    {
        let (events, vitals) = (policy.events.clone(), policy.vitals.clone());
        let alarm = move |control: &ChildControl| {
            let (path, within) = (control.path(), self.within);
            tracing::warn!(actor = &**path, ?within, "does not answer");
            events.emit(path, EventKind::Unresponsive { within });
            vitals.unresponsive(path);
        };
        place.spawn(move || async move {
            tokio::select! {
                _ = control.stopped() => {}
                () = self.check(addr, &control, alarm) => {}
            }
        });
    }

    async fn check<A>(self, addr: Addr<A>, control: &ChildControl, alarm: impl Fn(&ChildControl))
    where
        A: Actor<Context = Context<A>> + Handler<Ping>,
    {
        let mut ended = None;
        loop {
            sleep(self.every).await;
            let asked = control.generation();
            // One that was told to end, and blocks its thread, is told once.
            if control.state() != ChildState::Running || ended == Some(asked) {
                continue;
            }
            let answer = timeout(self.within, addr.send(Ping)).await;
            // A lost reply is an answer too: the crash that lost it is known already.
            let silent = answer.is_err() && control.generation() == asked;
            if silent && control.state() == ChildState::Running {
                ended = Some(asked);
                alarm(control);
                control.end_generation(Exit::Unresponsive);
            }
        }
    }
}
