//! What was asked, when, by whom, and what became of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::headers::Headers;
use crate::rpc::{RequestBody, Rpc};

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Answered with a business status. A receive has its stream's status here.
    Status {
        /// The number of the code; a fault may send one that the protocol does not know.
        code: i32,
        /// The text beside it.
        message: String,
    },
    /// Failed with a gRPC status.
    Grpc {
        /// The gRPC code.
        code: tonic::Code,
        /// The text beside it.
        message: String,
    },
    /// The caller went away, or its connection did, before there was an answer.
    Cancelled,
}

impl Outcome {
    /// Whether this is business code `code`.
    #[must_use]
    pub fn is(&self, code: rocketmq_proto::v2::Code) -> bool {
        matches!(self, Self::Status { code: given, .. } if *given == i32::from(code))
    }
}

/// One call of one method; for telemetry, one command on its stream.
#[derive(Debug)]
pub struct Call {
    /// Counts all calls of the broker, from 0.
    pub seq: u64,
    /// When it arrived.
    pub at: Instant,
    /// The same, since the broker started.
    pub elapsed: Duration,
    /// The node it arrived at.
    pub node: usize,
    /// The connection it came by; numbered over the whole broker.
    pub connection: u64,
    /// The method.
    pub rpc: Rpc,
    /// Who called; empty when it did not say.
    pub client_id: String,
    /// The metadata of the call.
    pub headers: Arc<Headers>,
    /// What was asked.
    pub request: RequestBody,
    pub(crate) end: OnceLock<(Instant, Outcome)>,
}

impl Call {
    /// What became of it, once that is known.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        self.end.get().map(|(_, outcome)| outcome)
    }

    /// When its outcome was known.
    #[must_use]
    pub fn ended_at(&self) -> Option<Instant> {
        self.end.get().map(|(at, _)| *at)
    }

    /// Whether it was answered with business code `code`.
    #[must_use]
    pub fn answered(&self, code: rocketmq_proto::v2::Code) -> bool {
        self.outcome().is_some_and(|outcome| outcome.is(code))
    }
}

/// All calls in the order of their arrival, as far as they are kept.
#[derive(Clone, Debug, Default)]
pub struct Record {
    calls: VecDeque<Arc<Call>>,
    next: u64,
}

impl Record {
    /// The calls, oldest first.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.calls.iter().map(Arc::as_ref)
    }

    /// The calls of one method.
    pub fn of(&self, rpc: Rpc) -> impl DoubleEndedIterator<Item = &Call> {
        self.calls().filter(move |call| call.rpc == rpc)
    }

    /// How many calls of one method there were.
    #[must_use]
    pub fn count(&self, rpc: Rpc) -> usize {
        self.of(rpc).count()
    }

    /// The calls from number `seq` on.
    pub fn since(&self, seq: u64) -> impl DoubleEndedIterator<Item = &Call> {
        self.calls().filter(move |call| call.seq >= seq)
    }

    /// The number that the next call gets: a mark for [`since`](Self::since).
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next
    }

    /// Takes over what `newer` has more, and drops what it dropped.
    fn follow(&mut self, newer: &Self) {
        let fresh = usize::try_from(newer.next - self.next).unwrap_or(usize::MAX);
        let skipped = newer.calls.len().saturating_sub(fresh);
        self.calls.extend(newer.calls.iter().skip(skipped).cloned());
        self.next = newer.next;
        let surplus = self.calls.len().saturating_sub(newer.calls.len());
        self.calls.drain(..surplus);
    }

    /// How many calls are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether no call is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

/// Where calls are written.
#[derive(Debug)]
pub(crate) struct Recorder {
    limit: usize,
    record: Mutex<Record>,
    changed: Notify,
}

impl Recorder {
    pub(crate) fn keeping(limit: usize) -> Self {
        Self {
            limit,
            record: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub(crate) fn enabled(&self) -> bool {
        self.limit > 0
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers a call and keeps it, at the price of the oldest when full.
    pub(crate) fn write(&self, make: impl FnOnce(u64) -> Call) -> Arc<Call> {
        let mut record = self.record();
        let call = Arc::new(make(record.next));
        record.next += 1;
        if self.limit > 0 {
            if record.calls.len() >= self.limit {
                record.calls.pop_front();
            }
            record.calls.push_back(Arc::clone(&call));
        }
        drop(record);
        self.changed.notify_waiters();
        call
    }

    pub(crate) fn end(&self, call: &Call, outcome: Outcome) {
        if call.end.set((Instant::now(), outcome)).is_ok() {
            self.changed.notify_waiters();
        }
    }

    /// Something beside the calls changed that a waiter may look at.
    pub(crate) fn touch(&self) {
        self.changed.notify_waiters();
    }

    pub(crate) fn snapshot(&self) -> Record {
        self.record().clone()
    }

    /// The waiter has a record of its own, which is brought up to date without looking at what
    /// it has already: it may take as long as it likes and ask the broker anything.
    pub(crate) async fn wait_for(&self, mut met: impl FnMut(&Record) -> bool) {
        let mut seen = Record::default();
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            seen.follow(&self.record());
            if met(&seen) {
                return;
            }
            changed.await;
        }
    }
}
