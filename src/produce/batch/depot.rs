//! Messages of one topic that wait for a request to share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rocketmq_proto::v2 as pb;
use tokio::{sync::oneshot, time::Instant};

use super::collect::{Collect, Limits};
use crate::{
    Error,
    model::{Endpoints, message::encoded::Encoded, message_id::MessageId, queue::MessageQueue},
};

/// A message and who waits for what becomes of it.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) message: Encoded,
    /// Where it goes. A request goes to the queue of its first message.
    pub(super) queue: MessageQueue,
    pub(super) waiter: Waiter,
}

/// Who waits.
#[derive(Debug)]
pub(super) struct Waiter {
    /// Of its message.
    pub(super) id: MessageId,
    pub(super) deadline: Instant,
    /// Attempts that have to share the time until then.
    pub(super) attempts: u32,
    pub(super) reply: oneshot::Sender<Outcome>,
}

/// What became of a message.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Stored; with its result, unless one result stood for several messages.
    Stored(MessageQueue, Option<pb::SendResultEntry>),
    /// Its attempt failed.
    Failed(MessageQueue, Error),
    /// The request was refused, maybe because of another message: this one has to go alone.
    Refused(Error),
    /// It never left, because its endpoint is in trouble.
    Unsent,
}

impl Waiter {
    /// Tells what became of the message, if anybody still wants to know.
    pub(super) fn tell(self, outcome: Outcome) {
        let _ = self.reply.send(outcome);
    }
}

/// What waits, by endpoint. Only endpoints with something under way are kept.
#[derive(Debug, Default)]
pub(crate) struct Depot(Mutex<Shelves>);

#[derive(Debug, Default)]
struct Shelves {
    /// Never used twice, also over collections that come and go.
    next: u64,
    shelves: Vec<(Endpoints, Collect<Parcel>)>,
}

impl Depot {
    /// Puts a message in: the key to withdraw it by, and what departs now.
    pub(super) fn put(
        &self,
        parcel: Parcel,
        bytes: usize,
        limits: Limits,
    ) -> (u64, Option<Vec<Parcel>>) {
        let mut state = self.lock();
        let key = state.next;
        state.next += 1;
        let endpoints = &parcel.queue.endpoints;
        if let Some(collect) = state.at(endpoints) {
            return (key, collect.add(key, parcel, bytes));
        }
        let endpoints = endpoints.clone();
        let mut collect = Collect::new(limits);
        let departing = collect.add(key, parcel, bytes);
        state.shelves.push((endpoints, collect));
        (key, departing)
    }

    /// A request came back: what departs in its place.
    pub(super) fn returned(&self, endpoints: &Endpoints) -> Option<Vec<Parcel>> {
        let mut state = self.lock();
        let departing = state.at(endpoints)?.returned();
        state.shelves.retain(|(_, collect)| !collect.is_idle());
        departing
    }

    /// Takes out all that waits for an endpoint.
    pub(super) fn release(&self, endpoints: &Endpoints) -> Vec<Parcel> {
        let mut state = self.lock();
        state
            .at(endpoints)
            .map(Collect::release)
            .unwrap_or_default()
    }

    /// Takes out a message: false if it has departed.
    pub(super) fn withdraw(&self, endpoints: &Endpoints, key: u64) -> bool {
        let mut state = self.lock();
        let withdrawn = state
            .at(endpoints)
            .and_then(|collect| collect.withdraw(key));
        drop(state);
        withdrawn.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Shelves> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelves {
    fn at(&mut self, endpoints: &Endpoints) -> Option<&mut Collect<Parcel>> {
        let mut shelves = self.shelves.iter_mut();
        shelves
            .find(|(at, _)| at == endpoints)
            .map(|(_, collect)| collect)
    }
}
