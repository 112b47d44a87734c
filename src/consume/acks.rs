//! Acks of one queue, in batches without waiting: while one request is in flight the next collects.

use std::{cell::RefCell, collections::HashMap, rc::Rc, sync::Arc, time::Duration};

use futures::{StreamExt, future::LocalBoxFuture, stream::FuturesUnordered};
use tokio::{sync::Notify, time::Instant};

use super::{
    consumption::Consumption,
    lease::{Decision, Lease},
    settle::{PATIENCE, ack, entry_of, give_up, may_succeed, send_acks},
};
use crate::{
    Result,
    model::delays::{Delays, DelaysState},
    rpc::check,
};

/// Most entries of one request.
const LARGEST: usize = 64;
const DELAYS: Delays = Delays::doubling(Duration::from_millis(100), Duration::from_secs(5));

/// Deliveries of one queue that wait for their ack. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Acks(Rc<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    leases: RefCell<Vec<Lease>>,
    added: Notify,
}

impl Acks {
    /// Has a delivery acknowledged with the next request.
    pub(crate) fn add(&self, mut lease: Lease) {
        lease.decide(Decision::Ack);
        self.0.leases.borrow_mut().push(lease);
        self.0.added.notify_one();
    }

    /// Sends what is added, for ever. Failed entries are retried one by one beside it.
    pub(crate) async fn run(self, consumption: Arc<Consumption>) {
        let mut singles: FuturesUnordered<LocalBoxFuture<'static, ()>> = FuturesUnordered::new();
        let mut delays = DELAYS.start();
        let mut failing_since: Option<Instant> = None;
        loop {
            let batch = self.take();
            if batch.is_empty() {
                tokio::select! {
                    () = self.0.added.notified() => {}
                    Some(()) = singles.next() => {}
                }
                continue;
            }
            let sent = send(&consumption, batch);
            tokio::pin!(sent);
            let failed = loop {
                tokio::select! {
                    failed = &mut sent => break failed,
                    Some(()) = singles.next() => {}
                }
            };
            match failed {
                Ok(entries) => {
                    delays.reset();
                    failing_since = None;
                    singles.extend(entries.into_iter().map(|lease| single(&consumption, lease)));
                }
                Err(batch) => {
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > PATIENCE {
                        // Each for itself is given up, with its reason.
                        singles.extend(batch.into_iter().map(|lease| single(&consumption, lease)));
                        continue;
                    }
                    self.0.leases.borrow_mut().splice(0..0, batch);
                    pause(&consumption, &mut delays).await;
                }
            }
        }
    }

    fn take(&self) -> Vec<Lease> {
        let mut leases = self.0.leases.borrow_mut();
        let count = leases.len().min(LARGEST);
        leases.drain(..count).collect()
    }
}

fn single(consumption: &Arc<Consumption>, lease: Lease) -> LocalBoxFuture<'static, ()> {
    let consumption = consumption.clone();
    Box::pin(async move { ack(&consumption, lease).await })
}

async fn pause(consumption: &Consumption, delays: &mut DelaysState) {
    let wait = delays.next(&mut consumption.member.config.environment.rng());
    tokio::time::sleep(wait).await;
}

/// Sends one request: `Ok` with the entries that have to be retried singly, `Err` with all when
/// the request as a whole may succeed later.
async fn send(consumption: &Arc<Consumption>, batch: Vec<Lease>) -> Result<Vec<Lease>, Vec<Lease>> {
    let Some(any) = batch.first().and_then(Lease::receipt).cloned() else {
        return Ok(Vec::new());
    };
    if let Err(error) = consumption.prepare(&any.endpoints).await {
        tracing::debug!(count = batch.len(), %error, "no acks without settings");
        return Err(batch);
    }
    let entries = batch
        .iter()
        .filter_map(Lease::receipt)
        .map(entry_of)
        .collect();
    let reply = match send_acks(consumption, &any, entries).await {
        Ok(reply) => reply,
        Err(error) if error.is_retryable() => {
            tracing::debug!(count = batch.len(), %error, "acks are sent again");
            return Err(batch);
        }
        // One of them may be at fault: each for itself.
        Err(_) => return Ok(batch),
    };
    // By handle: message ids may repeat, and the order is not promised.
    let mut answers: HashMap<String, Result<()>> = reply
        .entries
        .into_iter()
        .map(|entry| (entry.receipt_handle, check(entry.status.as_ref())))
        .collect();
    Ok(batch
        .into_iter()
        .filter_map(|lease| {
            let answer = answers.remove(&lease.receipt()?.handle);
            finish(consumption, lease, answer)
        })
        .collect())
}

/// The lease again, if it has to be retried.
fn finish(consumption: &Consumption, lease: Lease, answer: Option<Result<()>>) -> Option<Lease> {
    match answer {
        Some(Ok(())) => consumption.stats.acked.one(),
        Some(Err(error)) if !may_succeed(&error) => {
            give_up(consumption, lease.receipt()?, "ack", &error);
        }
        Some(Err(_)) | None => return Some(lease),
    }
    lease.settled();
    None
}
