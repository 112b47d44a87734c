//! One receive after the other on one queue.

use std::{sync::Arc, time::Duration};

use actix::Addr;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    consumption::Consumption,
    pace::Pace,
    receive::{Leased, Receiver, Reception},
    settings::Consuming,
};
use crate::{
    Error, ErrorKind,
    actors::ProcessQueueActor,
    environment::random_uuid,
    messages::process_queue::{AwaitLane, LoopReport, Received},
    rpc::says_settings_lost,
};

/// Receives until the queue is dropped, the consumer drains, or one loop less is enough.
pub(crate) async fn receive_loop(
    receiver: Arc<Receiver>,
    dropped: CancellationToken,
    queue: Addr<ProcessQueueActor>,
) {
    let consumption = receiver.consumption.clone();
    let _polls = (consumption.polls.token(), receiver.polls.token());
    let mut rng = consumption.member.config.environment.rng();
    let mut pace = Pace::new(rng.fork());
    let mut attempt_id = random_uuid(&mut rng);
    let mut broken = Broken::default();
    let stop = || stopped(&consumption, &dropped);
    loop {
        tokio::select! {
            biased;
            () = stop() => return,
            () = may_receive(&receiver) => {}
        }
        let started = Instant::now();
        let consuming = consumption.role.consuming.load_full();
        let hurry = CancellationToken::new();
        let reception = tokio::select! {
            biased;
            reception = receive(&receiver, &attempt_id, &consuming, &hurry, &queue) => reception,
            () = async {
                stop().await;
                hurry.cancel();
                tokio::time::sleep(consumption.options.poll_grace).await;
            } => {
                consumption.stats.cancelled_polls.one();
                return;
            }
        };
        // The id stays until messages came, so that the server can repeat a lost reply.
        if reception.messages > 0 {
            attempt_id = random_uuid(&mut rng);
        }
        broken.note(&receiver, reception.error.as_ref());
        let wait = pace.wait(&reception, started.elapsed());
        tokio::select! {
            biased;
            () = stop() => return,
            () = pause(wait, consuming.fifo, &queue) => {}
        }
        if !queue
            .send(LoopReport {
                full: reception.full,
            })
            .await
            .unwrap_or(false)
        {
            return;
        }
    }
}

/// Waits until the topic is not paused, the cache has room, and the endpoint has this client's
/// settings.
async fn may_receive(receiver: &Receiver) {
    let consumption = &receiver.consumption;
    let (at, topic) = (&receiver.queue.endpoints, &receiver.queue.topic);
    loop {
        consumption.pauses.over(topic).await;
        consumption.budget.has_room().await;
        // Looked at last, for a session may die, and a pause begin, while the cache is full.
        if consumption.pauses.contains(topic) {
            continue;
        }
        if consumption.member.is_ready(at) {
            return;
        }
        // A session that is gone is made anew; one that fails is asked again a second later.
        if let Err(error) = consumption.prepare(at).await {
            tracing::debug!(%topic, %error, "no receive without settings");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

async fn receive(
    receiver: &Receiver,
    attempt_id: &str,
    consuming: &Consuming,
    hurry: &CancellationToken,
    queue: &Addr<ProcessQueueActor>,
) -> Reception {
    let member = &receiver.consumption.member;
    let session = member.sessions.get(&receiver.queue.endpoints);
    let generation = session
        .as_ref()
        .map_or(0, |session| session.life.generation());
    let fifo = consuming.fifo;
    let sink = async |batch: Vec<Leased>| {
        // Refused only by a queue that is gone; then the leases go back.
        let _ = queue.send(Received { batch, fifo }).await;
    };
    let reception = receiver.receive(attempt_id, consuming, hurry, sink).await;
    if reception.error.is_none() || reception.messages > 0 {
        receiver.consumption.freshness.renew(member);
    }
    if let Some(error) = &reception.error
        && let Some(session) = session
        && says_settings_lost(error)
    {
        session.settings_lost(generation);
    }
    reception
}

/// Tells of failed receives: aloud of a reply that cannot be used, which no waiting mends, and
/// only of the first in a row.
#[derive(Debug, Default)]
struct Broken(bool);

impl Broken {
    fn note(&mut self, receiver: &Receiver, error: Option<&Error>) {
        let (group, topic) = (&receiver.consumption.role.group, &receiver.queue.topic);
        let unusable = error.is_some_and(|error| error.kind() == ErrorKind::Protocol);
        let told = std::mem::replace(&mut self.0, unusable);
        match error {
            Some(error) if unusable && !told => {
                tracing::warn!(%group, %topic, %error, "a reply of the server cannot be used");
            }
            Some(error) => tracing::debug!(%group, %topic, %error, "receive failed"),
            None => {}
        }
    }
}

async fn stopped(consumption: &Consumption, dropped: &CancellationToken) {
    tokio::select! {
        () = dropped.cancelled() => {}
        () = consumption.draining.cancelled() => {}
    }
}

/// Waits for the pace, and in order for the queue to have settled all it has.
async fn pause(wait: Duration, fifo: bool, queue: &Addr<ProcessQueueActor>) {
    if fifo {
        // Lost only with the queue, and this loop.
        let _ = queue.send(AwaitLane).await;
    }
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}
