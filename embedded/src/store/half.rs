//! Half messages: stored, and delivered to nobody until their transaction is committed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rocketmq_proto::v2 as pb;
use tokio::time::Instant;

use super::Store;
use super::log::Stored;
use super::timers::{Event, TimerKey};
use crate::clock::proto_millis;

/// The proxy can end a transaction for this long after the send and after every check.
const KNOWN_FOR: Duration = Duration::from_secs(30);

/// After so many checks a half message is given up.
const MAX_CHECKS: u32 = 15;

/// Properties of a checked message, which its receivers see too.
const CHECK_TIMES: &str = "TRANSACTION_CHECK_TIMES";
const TRANSACTION_ID: &str = "__transactionId__";

/// A message whose transaction is open.
#[derive(Debug)]
pub(crate) struct Half {
    pub(crate) stored: Stored,
    pub(crate) queue: usize,
    /// When each thing the proxy knows of it is forgotten; each serves one end.
    known: VecDeque<Instant>,
    since: Instant,
    checks: u32,
    timer: TimerKey,
}

/// When half messages are checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checks {
    pub(crate) timeout: Duration,
    pub(crate) interval: Duration,
    /// Checks happen at multiples of the interval after this.
    pub(crate) started: Instant,
}

impl Checks {
    /// The first scan at or after `earliest`.
    fn scan(&self, earliest: Instant) -> Instant {
        let interval = self.interval.max(Duration::from_millis(1));
        let passed = earliest.saturating_duration_since(self.started);
        let scans = passed.as_nanos().div_ceil(interval.as_nanos());
        self.started + interval.saturating_mul(u32::try_from(scans).unwrap_or(u32::MAX))
    }
}

/// Whether an end comes from the producer itself or answers a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Producer,
    Check,
}

/// The proxy knows of no such transaction.
#[derive(Debug)]
pub(crate) struct Unknown;

impl Half {
    /// How long the producer itself may end it, where it said so.
    fn recovery(&self) -> Option<Duration> {
        let properties = self.stored.properties()?;
        let recovery = properties.orphaned_transaction_recovery_duration.as_ref()?;
        Some(Duration::from_millis(
            proto_millis(recovery).try_into().ok()?,
        ))
    }
}

impl Store {
    /// Keeps a half message for `queue` until its transaction ends.
    pub(crate) fn begin(&mut self, topic: &str, queue: usize, mut stored: Stored) {
        let id = stored.id().to_owned();
        let properties = &mut stored.message.user_properties;
        properties.insert(TRANSACTION_ID.to_owned(), id.clone());
        let now = Instant::now();
        let mut half = Half {
            stored,
            queue,
            known: VecDeque::from([now + KNOWN_FOR]),
            since: now,
            checks: 0,
            timer: (now, 0),
        };
        let immune = half.recovery().unwrap_or(self.checks.timeout);
        half.timer = self.arm_check(topic, &id, now + immune);
        self.halves.insert((topic.into(), id.into()), half);
    }

    fn arm_check(&mut self, topic: &str, id: &str, earliest: Instant) -> TimerKey {
        let at = self.checks.scan(earliest);
        let (topic, id) = (topic.into(), id.into());
        self.timers.insert(at, Event::Check { topic, id })
    }

    /// Ends a transaction. Whatever the resolution, the proxy forgets one of the things it knows
    /// of it; without a resolution the message stays pending.
    pub(crate) fn end(
        &mut self,
        topic: &str,
        id: &str,
        resolution: pb::TransactionResolution,
        source: Source,
    ) -> Result<Option<Half>, Unknown> {
        let now = Instant::now();
        let key = (topic.into(), id.into());
        let half = self.halves.get_mut(&key).ok_or(Unknown)?;
        half.known.retain(|until| *until > now);
        half.known.pop_front().ok_or(Unknown)?;
        let late = source == Source::Producer
            && half
                .recovery()
                .is_some_and(|recovery| now > half.since + recovery);
        if late || resolution == pb::TransactionResolution::Unspecified {
            return Ok(None);
        }
        let half = self.halves.remove(&key).ok_or(Unknown)?;
        self.timers.remove(half.timer);
        Ok((resolution == pb::TransactionResolution::Commit).then_some(half))
    }

    /// A half message is to be checked: the command for a producer. Given up after too many.
    pub(crate) fn check(
        &mut self,
        topic: &Arc<str>,
        id: &Arc<str>,
    ) -> Option<pb::RecoverOrphanedTransactionCommand> {
        let now = Instant::now();
        let key = (Arc::clone(topic), Arc::clone(id));
        let half = self.halves.get_mut(&key)?;
        if half.checks >= MAX_CHECKS {
            self.halves.remove(&key);
            return None;
        }
        half.checks += 1;
        let properties = &mut half.stored.message.user_properties;
        properties.insert(CHECK_TIMES.to_owned(), half.checks.to_string());
        half.known.push_back(now + KNOWN_FOR);
        let message = half.stored.message.clone();
        let next = self.arm_check(topic, id, now + Duration::from_nanos(1));
        if let Some(half) = self.halves.get_mut(&key) {
            half.timer = next;
        }
        Some(pb::RecoverOrphanedTransactionCommand {
            message: Some(message),
            transaction_id: id.as_ref().to_owned(),
        })
    }

    /// Open transactions of a topic.
    pub(crate) fn pending_transactions(&self, of: &str) -> usize {
        self.halves
            .keys()
            .filter(|(topic, _)| topic.as_ref() == of)
            .count()
    }
}
