//! What becomes of deliveries that were dropped unsettled.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};

use super::{consumption::Consumption, settle};
use crate::topology::panic_text;

/// Deliveries of one endpoint that are settled at once.
const HAND_BACKS: usize = 16;
/// Settles what was dropped unsettled, for ever.
pub(crate) async fn settle_returned(consumption: Arc<Consumption>) {
    loop {
        let settling = AssertUnwindSafe(settle_all_returned(&consumption)).catch_unwind();
        if let Err(panic) = settling.await {
            tracing::warn!(panic = panic_text(panic.as_ref()), "settling goes on");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

async fn settle_all_returned(consumption: &Arc<Consumption>) {
    let mut settling = FuturesUnordered::new();
    loop {
        tokio::select! {
            returned = consumption.leases.returned() => {
                // No endpoint waits for another.
                let mut by_endpoint = BTreeMap::<_, Vec<_>>::new();
                for lease in returned {
                    let at = lease.receipt().map(|receipt| receipt.endpoints.clone());
                    by_endpoint.entry(at).or_default().push(lease);
                }
                settling.extend(by_endpoint.into_values().map(|leases| {
                    futures::stream::iter(leases).for_each_concurrent(HAND_BACKS, |lease| {
                        settle::carry_out(consumption, lease)
                    })
                }));
            }
            Some(()) = settling.next() => {}
        }
    }
}
