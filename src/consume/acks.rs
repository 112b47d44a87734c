//! Acks of one queue, in batches without waiting: while one request is in flight the next collects.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, future::LocalBoxFuture, stream::FuturesUnordered};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

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
/// As many entries depart even while another request is in flight, and so many such requests.
const FULL: usize = 32;
const MOST_REQUESTS: usize = 4;
const DELAYS: Delays = Delays::doubling(Duration::from_millis(100), Duration::from_secs(5));

/// Deliveries of one queue that wait for their ack. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Acks(Rc<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    leases: RefCell<Vec<Lease>>,
    /// How many requests are in flight.
    requests: Cell<usize>,
    may_depart: Notify,
}

impl Acks {
    /// Has a delivery acknowledged with the next request.
    pub(crate) fn add(&self, mut lease: Lease) {
        lease.decide(Decision::Ack);
        self.0.leases.borrow_mut().push(lease);
        if self.0.departs() {
            self.0.may_depart.notify_one();
        }
    }

    /// Sends what is added, for ever. Failed entries are retried one by one beside it.
    pub(crate) async fn run(self, consumption: Arc<Consumption>) {
        let waiting = &*self.0;
        let mut requests = FuturesUnordered::new();
        let mut singles: FuturesUnordered<LocalBoxFuture<'static, ()>> = FuturesUnordered::new();
        let mut failures = Failures::default();
        loop {
            while failures.resting.is_none() && waiting.departs() {
                requests.push(send(&consumption, waiting.take()));
                waiting.requests.set(requests.len());
            }
            tokio::select! {
                () = waiting.may_depart.notified() => {}
                () = failures.rest() => {}
                Some(()) = singles.next() => {}
                Some(sent) = requests.next() => {
                    waiting.requests.set(requests.len());
                    let again = match sent {
                        Ok(entries) => {
                            failures = Failures::default();
                            entries
                        }
                        // Each for itself is given up, with its reason.
                        Err(batch) if failures.last_too_long() => batch,
                        Err(batch) => {
                            waiting.leases.borrow_mut().splice(0..0, batch);
                            failures.one_more(&consumption);
                            continue;
                        }
                    };
                    singles.extend(again.into_iter().map(|lease| single(&consumption, lease)));
                }
            }
        }
    }
}

impl Waiting {
    /// Whether a request is to be sent now: the first at once, another beside it only when full.
    fn departs(&self) -> bool {
        let (count, requests) = (self.leases.borrow().len(), self.requests.get());
        count > 0 && (requests == 0 || (count >= FULL && requests < MOST_REQUESTS))
    }

    fn take(&self) -> Vec<Lease> {
        let mut leases = self.leases.borrow_mut();
        let count = leases.len().min(LARGEST);
        leases.drain(..count).collect()
    }
}

/// Requests that failed as a whole since the last that did not.
#[derive(Debug)]
struct Failures {
    since: Option<Instant>,
    delays: DelaysState,
    /// Until when no request departs.
    resting: Option<Instant>,
}

impl Default for Failures {
    fn default() -> Self {
        Self {
            since: None,
            delays: DELAYS.start(),
            resting: None,
        }
    }
}

impl Failures {
    fn last_too_long(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() > PATIENCE)
    }

    fn one_more(&mut self, consumption: &Consumption) {
        let now = Instant::now();
        self.since.get_or_insert(now);
        // Those that were in flight together are one failure.
        if self.resting.is_none() {
            let wait = self
                .delays
                .next(&mut consumption.member.config.environment.rng());
            self.resting = Some(now + wait);
        }
    }

    /// Ends when requests may depart again; never if they may now.
    async fn rest(&mut self) {
        match self.resting {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
        self.resting = None;
    }
}

fn single(consumption: &Arc<Consumption>, lease: Lease) -> LocalBoxFuture<'static, ()> {
    let consumption = consumption.clone();
    Box::pin(async move { ack(&consumption, lease).await })
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
        // It can only be about the one.
        Err(error) if batch.len() == 1 => {
            let about = |lease| finish(consumption, lease, Some(Err(error.clone())));
            return Ok(batch.into_iter().filter_map(about).collect());
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
