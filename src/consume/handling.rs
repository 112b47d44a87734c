//! Which consumer's handler runs here.

use std::sync::Arc;

use super::consumption::Consumption;
use crate::topology::EventKind;

tokio::task_local! {
    static HANDLING: Arc<Consumption>;
}

/// Runs a handler as one of this consumer.
pub(super) async fn handling<F: Future>(consumption: &Arc<Consumption>, handler: F) -> F::Output {
    HANDLING.scope(consumption.clone(), handler).await
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
