//! Which queue the next message goes to.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use siphasher::sip::SipHasher24;

use super::{Endpoints, queue::MessageQueue, route::Route};
use crate::{Error, ErrorKind, Result};

/// The key is that of the reference client, so both send a group to the same place.
const HASH_KEY: (u64, u64) = (0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908);

/// Takes turns over the writable queues of one topic. Cheap to clone; clones take turns together.
#[derive(Debug, Clone)]
pub(crate) struct PublishBalancer {
    /// Sorted, so that a message group stays where it is however a server orders a route.
    queues: Arc<[MessageQueue]>,
    turn: Arc<AtomicUsize>,
}

impl PublishBalancer {
    /// Starts at any turn: a random one, lest all producers start at the same queue.
    pub(crate) fn new(route: &Route, turn: usize) -> Result<Self> {
        Self::with_turn(route, Arc::new(AtomicUsize::new(turn)))
    }

    /// For a newer route; the turns go on.
    pub(crate) fn refreshed(&self, route: &Route) -> Result<Self> {
        Self::with_turn(route, Arc::clone(&self.turn))
    }

    fn with_turn(route: &Route, turn: Arc<AtomicUsize>) -> Result<Self> {
        let mut queues: Vec<_> = route.writable().cloned().collect();
        if queues.is_empty() {
            let what = format!("topic {} has no queue to write to", route.topic);
            return Err(Error::new(ErrorKind::Forbidden, what));
        }
        queues.sort_by(|one, other| {
            (&one.broker_name, one.id, &one.endpoints).cmp(&(
                &other.broker_name,
                other.id,
                &other.endpoints,
            ))
        });
        Ok(Self {
            queues: queues.into(),
            turn,
        })
    }

    /// Up to `n` queues of as many brokers, the one to try first in front.
    ///
    /// Queues at `excluded` endpoints are left out, unless no other is there.
    pub(crate) fn take(&self, excluded: &BTreeSet<Endpoints>, n: usize) -> Vec<MessageQueue> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let taken = self.walk(turn, n, |queue| !excluded.contains(&queue.endpoints));
        if taken.is_empty() {
            self.walk(turn, n, |_| true)
        } else {
            taken
        }
    }

    fn walk(
        &self,
        turn: usize,
        n: usize,
        fits: impl Fn(&MessageQueue) -> bool,
    ) -> Vec<MessageQueue> {
        let mut taken: Vec<MessageQueue> = Vec::new();
        let start = turn.checked_rem(self.queues.len()).unwrap_or_default();
        for queue in self
            .queues
            .iter()
            .cycle()
            .skip(start)
            .take(self.queues.len())
        {
            if taken.len() == n {
                break;
            }
            let is_new = taken
                .iter()
                .all(|earlier| earlier.broker_name != queue.broker_name);
            if is_new && fits(queue) {
                taken.push(queue.clone());
            }
        }
        taken
    }

    /// The queue of a message group, whatever is isolated: order matters more.
    pub(crate) fn take_by_group(&self, group: &str) -> Option<MessageQueue> {
        let count = i64::try_from(self.queues.len()).ok()?;
        let index = group_hash(group).checked_rem_euclid(count)?;
        self.queues.get(usize::try_from(index).ok()?).cloned()
    }
}

fn group_hash(group: &str) -> i64 {
    let (one, other) = HASH_KEY;
    SipHasher24::new_with_keys(one, other)
        .hash(group.as_bytes())
        .cast_signed()
}

#[cfg(test)]
mod tests;
