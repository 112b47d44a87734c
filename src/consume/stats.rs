//! Counters of a push consumer.

use crate::member::Counter;

/// Counts since the start of the consumer.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) received: Counter,
    pub(crate) handled: Counter,
    pub(crate) failed: Counter,
    pub(crate) acked: Counter,
    pub(crate) retried: Counter,
    pub(crate) dead_lettered: Counter,
    pub(crate) handed_back: Counter,
    pub(crate) expired: Counter,
    pub(crate) abandoned: Counter,
    pub(crate) cancelled_polls: Counter,
    pub(crate) corrupted: Counter,
    pub(crate) queue_failures: Counter,
}
