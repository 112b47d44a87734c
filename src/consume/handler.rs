//! Who handles deliveries: async closures, or actors.

use std::{fmt, future::Future, panic::AssertUnwindSafe, sync::Arc};

use actix::{Message, Recipient};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};

use super::{Codec, Delivery, IntoOutcome, Outcome, Raw};

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
pub struct DeliveryHandler(Arc<Handle>);

impl DeliveryHandler {
    fn new(
        handle: impl Fn(Delivery) -> BoxFuture<'static, Outcome> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(handle))
    }

    /// An actor that takes payloads decoded by `codec`. What cannot be decoded never reaches it:
    /// it goes to the dead letter topic at once.
    pub fn actor<T, C>(recipient: Recipient<Deliver<T>>, codec: C) -> Self
    where
        T: Send + 'static,
        C: Codec<T>,
    {
        Self::new(move |delivery| {
            let payload = match codec.decode(&delivery) {
                Ok(payload) => payload,
                Err(error) => {
                    let reason = format!("the payload cannot be decoded: {error}");
                    return std::future::ready(Outcome::dead_letter(reason)).boxed();
                }
            };
            let asked = recipient.send(Deliver { payload, delivery });
            async move {
                asked.await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "the handler actor gave no outcome");
                    Outcome::Retry
                })
            }
            .boxed()
        })
    }

    /// Runs the handler; a panic of it is a failed delivery.
    pub(crate) async fn run(&self, delivery: Delivery) -> Outcome {
        let handled = AssertUnwindSafe(async { (self.0)(delivery).await })
            .catch_unwind()
            .await;
        handled.unwrap_or_else(|panic| {
            let panic = crate::topology::panic_text(panic.as_ref());
            tracing::warn!(panic, "handler panicked");
            Outcome::Retry
        })
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
