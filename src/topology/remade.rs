//! An actor that a restart replaces: made anew, behind the same address and mailbox.

use std::{
    cell::RefCell,
    pin::Pin,
    rc::Rc,
    task::{self, Poll},
    time::Duration,
};

use actix::{
    Actor, ActorContext, Addr, AsyncContext, Context,
    dev::{AsyncContextParts, ContextFut, ContextParts, EnvelopeProxy, channel::AddressReceiver},
    fut::ActorFuture,
};
use futures::Stream;

use super::{
    Exit,
    life::Life,
    live::Counted,
    vessel::{Mailbox, discard},
};

/// Makes one generation of an actor.
pub(super) type Make<A> = Box<dyn FnMut() -> A>;

/// The generations of an actor.
///
/// Each has a context of its own, so nothing of a dead one is left in the next. All read from
/// one mailbox, and each knows its address as its own.
pub(super) struct Remade<A>
where
    A: Actor<Context = Context<A>>,
{
    make: Make<A>,
    current: Option<ContextFut<A, Context<A>>>,
    queue: Rc<RefCell<AddressReceiver<A>>>,
    /// An actor that nobody can reach lives on.
    _kept: Addr<A>,
    _counted: Counted,
}

impl<A> Remade<A>
where
    A: Actor<Context = Context<A>>,
{
    /// The actor that reads this mailbox. It is made when it is first polled.
    pub(super) fn new(mailbox: Mailbox<A>, counted: Counted, make: Make<A>) -> Self {
        Self {
            make,
            current: None,
            queue: Rc::new(RefCell::new(mailbox.receiver)),
            _kept: mailbox.addr,
            _counted: counted,
        }
    }

    fn generation(&mut self) -> ContextFut<A, Context<A>> {
        let actor = (self.make)();
        let mut ctx = Context::new();
        let producer = self.queue.borrow().sender_producer();
        *ctx.parts() = ContextParts::new(producer);
        let queue = Rc::clone(&self.queue);
        ctx.spawn(Pump { queue });
        ctx.into_future(actor)
    }

    fn end_generation(&mut self) {
        if let Some(fut) = self.current.take() {
            discard(fut);
        }
    }
}

impl<A> Life for Remade<A>
where
    A: Actor<Context = Context<A>>,
{
    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<Exit> {
        if self.current.is_none() {
            self.current = Some(self.generation());
        }
        match &mut self.current {
            Some(fut) => Pin::new(fut).poll(cx).map(|()| Exit::Normal),
            None => Poll::Ready(Exit::Normal),
        }
    }

    /// It is made, and its `started` hook runs, within the first poll.
    fn is_up(&self) -> bool {
        true
    }

    fn restart(&mut self) -> Result<(), Exit> {
        self.end_generation();
        Ok(())
    }

    /// No further message is handled.
    fn ask_to_stop(&mut self, _: Duration) {
        if let Some(fut) = &mut self.current {
            fut.ctx().stop();
        }
    }
}

impl<A> Drop for Remade<A>
where
    A: Actor<Context = Context<A>>,
{
    fn drop(&mut self) {
        self.end_generation();
    }
}

/// Feeds an actor from a mailbox that is not its context's.
struct Pump<A: Actor> {
    queue: Rc<RefCell<AddressReceiver<A>>>,
}

/// Messages handled before timers and others on the thread get their turn.
const AT_ONCE: usize = 64;

impl<A> ActorFuture<A> for Pump<A>
where
    A: Actor<Context = Context<A>>,
{
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        actor: &mut A,
        ctx: &mut Context<A>,
        task: &mut task::Context<'_>,
    ) -> Poll<()> {
        for _ in 0..AT_ONCE {
            if ctx.waiting() {
                return Poll::Pending;
            }
            let next = Pin::new(&mut *self.queue.borrow_mut()).poll_next(task);
            let Poll::Ready(Some(mut envelope)) = next else {
                return Poll::Pending;
            };
            envelope.handle(actor, ctx);
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }
}
