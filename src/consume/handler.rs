//! Who handles deliveries: async closures, or actors.

use std::{fmt, future::Future, panic::AssertUnwindSafe, sync::Arc};

use actix::{Actor, Context, Handler, MailboxError, Message, Recipient, SyncContext};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};

use super::{
    Codec, Delivery, IntoOutcome, Outcome, Raw, consumption::Consumption, handling::handling,
    sync_pool::SyncPool,
};
use crate::topology::{ChildRef, Label};

/// A delivery on its way to an actor: actors that are handlers implement
/// `actix::Handler<Deliver<T>>` with an [`Outcome`] as result.
#[derive(Debug, Clone, Message)]
#[rtype(result = "Outcome")]
pub struct Deliver<T: 'static = Bytes> {
    /// The body as the consumer's codec decoded it.
    pub payload: T,
    /// All about the message.
    pub delivery: Delivery,
}

type Handle = dyn Fn(Delivery) -> BoxFuture<'static, Outcome> + Send + Sync;

/// A handler of any kind, as a consumer keeps it.
#[derive(Clone)]
pub struct DeliveryHandler {
    handle: Arc<Handle>,
    /// The child of a topology that it is.
    child: Option<Label>,
}

impl DeliveryHandler {
    fn new(
        handle: impl Fn(Delivery) -> BoxFuture<'static, Outcome> + Send + Sync + 'static,
    ) -> Self {
        Self {
            handle: Arc::new(handle),
            child: None,
        }
    }

    /// An actor that takes payloads decoded by `codec`. What cannot be decoded never reaches it:
    /// it goes to the dead letter topic at once.
    pub fn actor<T, C>(recipient: Recipient<Deliver<T>>, codec: C) -> Self
    where
        T: Send + 'static,
        C: Codec<T>,
    {
        Self::decoding(codec, move |deliver| recipient.send(deliver))
    }

    /// A pool of threads for work that blocks, with an actor made by `make` on each, which takes
    /// payloads decoded by `codec`. At least one thread.
    ///
    /// Unlike with a `SyncArbiter` of your own, a panic costs no thread for good: the delivery
    /// failed and comes again, the event
    /// [`HandlerThreadLost`](crate::EventKind::HandlerThreadLost) is raised, and `make` makes
    /// the actor of another thread, after 100 ms to 10 s if that happens again and again.
    /// Deliveries wait meanwhile; none is failed for the want of a thread.
    ///
    /// The threads are made when they are needed and end with the last clone of this and of the
    /// specs and consumers that have it.
    pub fn sync_pool<A, T, C>(
        threads: usize,
        codec: C,
        make: impl Fn() -> A + Send + Sync + 'static,
    ) -> Self
    where
        A: Actor<Context = SyncContext<A>> + Handler<Deliver<T>>,
        T: Send + 'static,
        C: Codec<T>,
    {
        let pool = Arc::new(SyncPool::new(threads, make));
        Self::decoding(codec, move |deliver| {
            let pool = pool.clone();
            async move { Ok(pool.handle(deliver).await) }
        })
    }

    fn decoding<T: 'static, C, Asked>(
        codec: C,
        ask: impl Fn(Deliver<T>) -> Asked + Send + Sync + 'static,
    ) -> Self
    where
        C: Codec<T>,
        Asked: Future<Output = Result<Outcome, MailboxError>> + Send + 'static,
    {
        Self::new(move |delivery| {
            let payload = match codec.decode(&delivery) {
                Ok(payload) => payload,
                Err(error) => {
                    let reason = format!("the payload cannot be decoded: {error}");
                    return std::future::ready(Outcome::dead_letter(reason)).boxed();
                }
            };
            let asked = ask(Deliver { payload, delivery });
            async move {
                asked.await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "the handler actor gave no outcome");
                    Outcome::Retry
                })
            }
            .boxed()
        })
    }

    /// The child of a topology that it is, if it is one.
    pub(crate) fn refers_to(&self) -> Option<Label> {
        self.child.clone()
    }

    /// Runs the handler as one of a consumer; a panic of it is a failed delivery.
    pub(crate) async fn run(&self, consumption: &Arc<Consumption>, delivery: Delivery) -> Outcome {
        let known = delivery.clone();
        let handler = AssertUnwindSafe(async { (self.handle)(delivery).await }).catch_unwind();
        let handled = handling(consumption, known, handler).await;
        handled.unwrap_or_else(|panic| {
            let panic = crate::topology::panic_text(panic.as_ref());
            tracing::warn!(panic, "handler panicked");
            Outcome::Retry
        })
    }
}

impl<A: Actor<Context = Context<A>>> ChildRef<A> {
    /// The actor as the handler of a consumer, with bodies as they are.
    ///
    /// Deliveries wait while there is no actor: before it is started, and while it or its
    /// topology is restarted. They hold their permits then, so the consumer receives no more
    /// than its limits allow. Where an actor never comes, they wait until the consumer is shut
    /// down, which hands them back.
    pub fn deliver(&self) -> DeliveryHandler
    where
        A: Handler<Deliver<Bytes>>,
    {
        self.deliver_as(Raw)
    }

    /// The same with payloads decoded by `codec`. What cannot be decoded never reaches the actor:
    /// it goes to the dead letter topic at once.
    ///
    /// The codec and the actor have to agree on the payload, which the compiler checks:
    ///
    /// ```compile_fail,E0277
    /// use actix::{Actor, Context, Handler};
    /// use rocketmq_actors::{ChildRef, Deliver, Outcome, Text};
    ///
    /// struct Ledger;
    /// impl Actor for Ledger {
    ///     type Context = Context<Self>;
    /// }
    /// impl Handler<Deliver<u64>> for Ledger {
    ///     type Result = Outcome;
    ///     fn handle(&mut self, _: Deliver<u64>, _: &mut Self::Context) -> Outcome {
    ///         Outcome::Ack
    ///     }
    /// }
    ///
    /// // `Text` decodes to `String`, but the actor takes `u64`.
    /// let handler = ChildRef::<Ledger>::new("ledger").deliver_as(Text);
    /// ```
    pub fn deliver_as<T, C>(&self, codec: C) -> DeliveryHandler
    where
        T: Send + 'static,
        C: Codec<T>,
        A: Handler<Deliver<T>>,
    {
        let child = self.clone();
        let handler = DeliveryHandler::decoding(codec, move |deliver| {
            let child = child.clone();
            async move {
                let _counted = child.label().delivery();
                child.ready().await.send(deliver).await
            }
        });
        DeliveryHandler {
            child: Some(self.label().clone()),
            ..handler
        }
    }
}

impl fmt::Debug for DeliveryHandler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("DeliveryHandler").finish_non_exhaustive()
    }
}

/// What can be given to a consumer as its handler: an async closure or function that takes a
/// [`Delivery`] and returns an [`IntoOutcome`], the `Recipient` of an actor, or a
/// [`DeliveryHandler`]. `Kind` tells them apart; it is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot handle deliveries",
    label = "no handler",
    note = "a handler is an async closure `|delivery: Delivery| async move {{ .. }}`, the \
            `Recipient<Deliver>` of an actor, or what `ChildRef::deliver()` gives"
)]
pub trait IntoHandler<Kind> {
    /// The handler.
    fn into_handler(self) -> DeliveryHandler;
}

/// Marks handlers that are functions.
#[derive(Debug)]
pub struct ByFunction<Fut>(std::marker::PhantomData<Fut>);

/// Marks handlers that are actors.
#[derive(Debug)]
pub struct ByActor;

/// Marks handlers that are made already.
#[derive(Debug)]
pub struct Made;

impl<F, Fut> IntoHandler<ByFunction<Fut>> for F
where
    F: Fn(Delivery) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoOutcome,
{
    fn into_handler(self) -> DeliveryHandler {
        DeliveryHandler::new(move |delivery| self(delivery).map(IntoOutcome::into_outcome).boxed())
    }
}

impl IntoHandler<ByActor> for Recipient<Deliver<Bytes>> {
    fn into_handler(self) -> DeliveryHandler {
        DeliveryHandler::actor(self, Raw)
    }
}

impl IntoHandler<Made> for DeliveryHandler {
    fn into_handler(self) -> DeliveryHandler {
        self
    }
}
