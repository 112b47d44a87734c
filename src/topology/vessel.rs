//! An actor with its context: the only file that knows how actix drives an actor.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{self, Poll},
};

use actix::{
    Actor, ActorContext, Addr, Context, Supervised,
    dev::{ContextFut, channel},
};

use super::{Exit, control::Shared, live::Counted, scope::Scope};

/// As actix has it. It bounds neither `send` nor `do_send`: back-pressure is up to the sender.
const MAILBOX: usize = 16;

/// A mailbox without an actor yet: messages wait in it.
pub(super) struct Mailbox<A: Actor>(channel::AddressReceiver<A>);

/// A mailbox and its address.
pub(super) fn mailbox<A>() -> (Addr<A>, Mailbox<A>)
where
    A: Actor<Context = Context<A>>,
{
    let (sender, receiver) = channel::channel(MAILBOX);
    (Addr::new(sender), Mailbox(receiver))
}

/// An actor with its context. Whatever it does, no panic leaves this.
pub(super) struct Vessel<A>
where
    A: Actor<Context = Context<A>>,
{
    /// Empty only while being dropped.
    fut: Option<ContextFut<A, Context<A>>>,
    _counted: Counted,
}

impl<A> Vessel<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    /// Builds the actor that reads this mailbox.
    pub(super) fn build<F>(
        Mailbox(receiver): Mailbox<A>,
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
                _counted: counted,
            }),
            Err(payload) => Err(Exit::from_panic(payload.as_ref())),
        }
    }

    /// Ready when the actor has stopped, or panicked.
    pub(super) fn poll(
        &mut self,
        cx: &mut task::Context<'_>,
        shared: &Shared,
    ) -> Poll<Result<(), Exit>> {
        let Some(fut) = &mut self.fut else {
            return Poll::Ready(Ok(()));
        };
        let polled = catch_unwind(AssertUnwindSafe(|| {
            #[cfg(feature = "test-hooks")]
            shared.orders.panic_if_injected();
            Pin::new(fut).poll(cx)
        }));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            // A failure that the actor reported before it stopped is why it stopped.
            Ok(Poll::Ready(())) => Poll::Ready(shared.orders.take_failure().map_or(Ok(()), Err)),
            Err(payload) => Poll::Ready(Err(Exit::from_panic(payload.as_ref()))),
        }
    }

    /// Throws away the context's futures and lets the actor make its state anew. Its `started`
    /// hook runs with the next poll.
    pub(super) fn restart(&mut self) -> Result<(), Exit> {
        let Some(fut) = &mut self.fut else {
            return Ok(());
        };
        match catch_unwind(AssertUnwindSafe(|| fut.restart())) {
            Ok(true) => Ok(()),
            // It cannot happen while an address is kept.
            Ok(false) => Err(Exit::Failed("its mailbox is gone".to_owned())),
            Err(payload) => Err(Exit::from_panic(payload.as_ref())),
        }
    }

    /// Asks the actor to stop: no further message, then its hooks.
    pub(super) fn ask_to_stop(&mut self) {
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
        let Some(mut fut) = self.fut.take() else {
            return;
        };
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
}
