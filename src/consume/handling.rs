//! Which consumer's handler runs here.

use std::{future::poll_fn, pin::pin, sync::Arc};

use super::{Delivery, consumption::Consumption};
use crate::topology::EventKind;

tokio::task_local! {
    static HANDLING: Arc<Consumption>;
}

/// Runs a handler, whose polls do not panic, as one of this consumer.
pub(super) async fn handling<F: Future>(
    consumption: &Arc<Consumption>,
    delivery: Delivery,
    handler: F,
) -> F::Output {
    let running = consumption.running.enter(delivery);
    let mut handler = pin!(HANDLING.scope(consumption.clone(), handler));
    poll_fn(|cx| running.poll(|| handler.as_mut().poll(cx))).await
}

/// Whether this is called by a handler of this consumer, not by what it spawned.
pub(super) fn is_handler_of(consumption: &Arc<Consumption>) -> bool {
    HANDLING
        .try_with(|running| Arc::ptr_eq(running, consumption))
        .unwrap_or(false)
}

/// Reports something of the consumer whose handler this is called by, if it is.
pub(super) fn report(kind: EventKind) {
    // Outside of a handler nobody wants to know.
    let _ = HANDLING.try_with(|running| running.member.report(kind));
}
