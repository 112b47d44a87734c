//! An actor with its context, restarted as actix does: it keeps itself and makes its state anew.
//! Beside `remade`, the only file that knows how actix drives an actor.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{self, Poll},
    time::Duration,
};

use actix::{
    Actor, ActorContext, Addr, Context, Supervised,
    dev::{ContextFut, channel},
};

use super::{Exit, life::Life, live::Counted, scope::Scope};

/// As actix has it. It bounds neither `send` nor `do_send`: back-pressure is up to the sender.
const MAILBOX: usize = 16;

/// A mailbox without an actor yet: messages wait in it.
pub(super) struct Mailbox<A: Actor> {
    pub(super) receiver: channel::AddressReceiver<A>,
    pub(super) addr: Addr<A>,
}

/// A mailbox and its address.
pub(super) fn mailbox<A>() -> (Addr<A>, Mailbox<A>)
where
    A: Actor<Context = Context<A>>,
{
    let (sender, receiver) = channel::channel(MAILBOX);
    let addr = Addr::new(sender);
    (addr.clone(), Mailbox { receiver, addr })
}

/// An actor with its context.
pub(super) struct Vessel<A>
where
    A: Actor<Context = Context<A>>,
{
    /// Empty only while being dropped.
    fut: Option<ContextFut<A, Context<A>>>,
    /// actix ends an actor that nobody can reach, and does not restart one.
    _kept: Addr<A>,
    _counted: Counted,
}

impl<A> Vessel<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    /// Builds the actor that reads this mailbox.
    pub(super) fn build<F>(
        Mailbox { receiver, addr }: Mailbox<A>,
        scope: Scope,
        counted: Counted,
        build: F,
    ) -> Result<Self, Exit>
    where
        F: FnOnce(&mut Context<A>, Scope) -> A,
    {
        let built = catch_unwind(AssertUnwindSafe(|| {
            let mut ctx = Context::with_receiver(receiver);
            let actor = build(&mut ctx, scope);
            ctx.into_future(actor)
        }));
        match built {
            Ok(fut) => Ok(Self {
                fut: Some(fut),
                _kept: addr,
                _counted: counted,
            }),
            Err(payload) => Err(Exit::from_panic(payload.as_ref())),
        }
    }
}

impl<A> Life for Vessel<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<Exit> {
        match &mut self.fut {
            Some(fut) => Pin::new(fut).poll(cx).map(|()| Exit::Normal),
            None => Poll::Ready(Exit::Normal),
        }
    }

    /// Its `started` hook runs within the first poll.
    fn is_up(&self) -> bool {
        true
    }

    /// Also throws away the futures of the context.
    fn restart(&mut self) -> Result<(), Exit> {
        if self.fut.as_mut().is_some_and(ContextFut::restart) {
            Ok(())
        } else {
            // It cannot happen while an address is kept.
            Err(Exit::Failed("its mailbox is gone".to_owned()))
        }
    }

    /// No further message is handled.
    fn ask_to_stop(&mut self, _: Duration) {
        if let Some(fut) = &mut self.fut {
            fut.ctx().stop();
        }
    }
}

impl<A> Drop for Vessel<A>
where
    A: Actor<Context = Context<A>>,
{
    fn drop(&mut self) {
        if let Some(fut) = self.fut.take() {
            discard(fut);
        }
    }
}

/// Drops an actor with its context, whatever state it is in.
pub(super) fn discard<A>(mut fut: ContextFut<A, Context<A>>)
where
    A: Actor<Context = Context<A>>,
{
    let dropped = catch_unwind(AssertUnwindSafe(move || {
        // Dropping a context polls it once more, which would run `started` where it has not
        // run and the stop hooks of a crashed actor; a terminated one is just dropped.
        fut.ctx().terminate();
        drop(fut);
    }));
    if dropped.is_err() {
        tracing::warn!("an actor panicked while it was dropped");
    }
}
