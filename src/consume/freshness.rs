//! Noticing a consumer that receives nothing although it could.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::consumption::Consumption;
use crate::member::Member;

/// When a receive succeeded last. One that brought no message counts: the server answered.
#[derive(Debug)]
pub(crate) struct Freshness {
    limit: Duration,
    last: Mutex<Instant>,
    again: Notify,
}

impl Freshness {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            last: Mutex::new(Instant::now()),
            again: Notify::new(),
        }
    }

    /// A receive succeeded, or there is nothing to receive from.
    pub(crate) fn renew(&self, member: &Member) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.again.notify_waiters();
        member.silent(None);
    }

    fn due(&self) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) + self.limit
    }
}

/// Reports a consumer that has not received for too long, for ever.
pub(crate) async fn watch_freshness(consumption: &Consumption) {
    let Consumption {
        freshness,
        member,
        budget,
        ..
    } = consumption;
    loop {
        sleep_until(freshness.due()).await;
        if budget.is_full() || consumption.all_paused() {
            // It does not want to receive: its handlers are slow, or it is paused.
            freshness.renew(member);
        }
        let renewed = freshness.again.notified();
        tokio::pin!(renewed);
        renewed.as_mut().enable();
        if freshness.due() <= Instant::now() {
            member.silent(Some(freshness.limit));
            renewed.await;
        }
    }
}
