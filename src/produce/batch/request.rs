//! A request that several sends share.

use std::{pin::pin, sync::Arc, time::Duration};

use rocketmq_proto::v2 as pb;
use tokio::{task::yield_now, time::Instant};

use super::{
    answer::{Answer, answer, may_be_one_message},
    depot::{Depot, Outcome, Parcel, Waiter},
};
use crate::{
    Error,
    model::{Endpoints, message::encoded::SendRequest, queue::MessageQueue},
    produce::{
        Publication,
        attempts::{Verdict, judge},
        lane::Lane,
    },
};

/// Sends a batch, and after it whatever collects meanwhile, in a task beside the connections: who
/// drops a send must not stop those of others.
pub(super) fn launch(publication: &Arc<Publication>, lane: &Arc<Lane>, batch: Vec<Parcel>) {
    let Some(endpoints) = batch.first().map(|first| first.queue.endpoints.clone()) else {
        return;
    };
    let (publication, lane) = (publication.clone(), lane.clone());
    let runtime = publication.member.host.runtime.clone();
    let flight = Flight {
        depot: lane.depot.clone(),
        endpoints,
        landed: false,
    };
    runtime.spawn(async move {
        let sending = pin!(fly(&publication, &lane, flight, batch));
        publication.in_flight.cut.run_until_cancelled(sending).await;
    });
}

async fn fly(publication: &Publication, lane: &Lane, mut flight: Flight, mut batch: Vec<Parcel>) {
    loop {
        request(publication, lane, batch).await;
        // Who got a result may have the next message ready: it shares what departs now.
        yield_now().await;
        match flight.depot.returned(&flight.endpoints) {
            Some(next) => batch = next,
            None => break,
        }
    }
    flight.landed = true;
}

/// A task that sends. Ending before its time, with its runtime or by a panic, it leaves nobody
/// waiting: the sends whose parcels are dropped end.
struct Flight {
    depot: Arc<Depot>,
    endpoints: Endpoints,
    landed: bool,
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.landed {
            drop(self.depot.release(&self.endpoints));
            self.depot.returned(&self.endpoints);
        }
    }
}

async fn request(publication: &Publication, lane: &Lane, batch: Vec<Parcel>) {
    let Some(queue) = batch.first().map(|first| first.queue.clone()) else {
        return;
    };
    let Publication { member, stats, .. } = publication;
    if !member.is_ready(&queue.endpoints) {
        return turn_back(batch);
    }
    let generation = member.sessions.generation(&queue.endpoints);
    let limit = limit(&batch);
    let (request, waiters) = unpack(batch, queue.id);
    stats.requests.one();
    if waiters.len() > 1 {
        stats.batches.one();
    }
    let sent = member
        .rpc
        .send_message(&queue.endpoints, request, limit)
        .await;
    let answer = match sent {
        Ok(reply) => {
            let ids: Vec<_> = waiters.iter().map(|waiter| waiter.id.as_str()).collect();
            answer(&ids, reply.entries)
        }
        Err(error) => Answer::All(Err(error)),
    };
    let report = Report {
        publication,
        lane,
        queue,
        generation,
        limit,
    };
    report.deliver(answer, waiters);
}

/// The largest share of a message: one that waited long must not cut the others short, and ends
/// by its own deadline.
fn limit(batch: &[Parcel]) -> Duration {
    let now = Instant::now();
    let share = |parcel: &Parcel| {
        let waiter = &parcel.waiter;
        waiter.deadline.saturating_duration_since(now) / waiter.attempts.max(1)
    };
    batch.iter().map(share).max().unwrap_or_default()
}

fn unpack(batch: Vec<Parcel>, queue_id: i32) -> (SendRequest, Vec<Waiter>) {
    let unpacked = batch.into_iter().map(|one| (one.message, one.waiter));
    let (messages, waiters) = unpacked.unzip();
    (SendRequest::new(messages, queue_id), waiters)
}

/// Lets messages that have not left find another way.
fn turn_back(parcels: Vec<Parcel>) {
    for parcel in parcels {
        parcel.waiter.tell(Outcome::Unsent);
    }
}

/// The end of a request: who and what it concerns.
struct Report<'a> {
    publication: &'a Publication,
    lane: &'a Lane,
    queue: MessageQueue,
    generation: Option<u64>,
    limit: Duration,
}

impl Report<'_> {
    fn deliver(&self, answer: Answer, waiters: Vec<Waiter>) {
        match answer {
            Answer::Each(results) => {
                for (waiter, result) in waiters.into_iter().zip(results) {
                    let outcome = match result {
                        Ok(entry) => self.stored(Some(entry)),
                        Err(error) => self.failed(error),
                    };
                    waiter.tell(outcome);
                }
            }
            Answer::All(Ok(())) => {
                for waiter in waiters {
                    waiter.tell(self.stored(None));
                }
            }
            Answer::All(Err(error)) if waiters.len() > 1 && may_be_one_message(&error) => {
                tracing::debug!(count = waiters.len(), %error, "sent again one by one");
                for waiter in waiters {
                    waiter.tell(Outcome::Refused(error.clone()));
                }
            }
            Answer::All(Err(error)) => {
                for waiter in waiters {
                    waiter.tell(self.failed(error.clone()));
                }
            }
        }
    }

    fn stored(&self, entry: Option<pb::SendResultEntry>) -> Outcome {
        self.publication
            .member
            .isolation
            .rejoin(&self.queue.endpoints);
        self.lane.note_accepted();
        Outcome::Stored(self.queue.clone(), entry)
    }

    fn failed(&self, error: Error) -> Outcome {
        let endpoints = &self.queue.endpoints;
        let error = error.operation("SendMessage").endpoint(endpoints);
        let verdict = judge(&error, self.lane.has_accepted());
        self.publication
            .react(verdict, &error, self.limit, endpoints, self.generation);
        if matches!(verdict, Verdict::Elsewhere | Verdict::SettingsLost) {
            // They wait for an endpoint that they would not choose any more.
            turn_back(self.lane.depot.release(endpoints));
        }
        Outcome::Failed(self.queue.clone(), error)
    }
}
