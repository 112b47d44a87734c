//! The user's choice.

use super::collect::Limits;
use crate::{Error, Result};

/// Far below the limit of servers (4 MiB for all bodies, properties and framing together).
const MAX_BYTES: usize = 1024 * 1024;
/// Requests under way to one endpoint for one topic.
const MAX_REQUESTS: usize = 16;
const MESSAGES: usize = 32;
const MAX_MESSAGES: usize = 1024;

/// Whether sends that go on at the same time share requests.
///
/// **Only with servers of version 5.4.0 or newer.** Up to 5.3.3 a server gives every message of a
/// request the id, tag, keys and properties of the first; subscribers by tag never see the others.
/// No call tells a server's version, hence the choice is yours, and off unless you make it.
///
/// ```
/// use rocketmq_actors::{Batching, ProducerSpec};
///
/// let spec = ProducerSpec::builder()
///     .topic("orders")
///     .batching(Batching::adaptive().max_messages(64))
///     .build()?;
/// # Ok::<(), rocketmq_actors::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Batching(Option<usize>);

impl Batching {
    /// Each message has a request of its own. The default.
    #[must_use]
    pub fn off() -> Self {
        Self(None)
    }

    /// Messages collect while a request of their topic is under way to their endpoint, and depart
    /// together when it returns or when they fill a request: nobody waits at low load, and there
    /// is no timer. Up to 32 messages and 1 MiB share a request; up to 16 requests are under way.
    ///
    /// Only normal messages whose bodies are not compressed take part; all others go alone.
    /// Each send has its own result. When a server refuses a request, its messages are sent again
    /// one by one, so that only the bad one fails. A request that may have been stored is repeated
    /// only after a failure or a time-out, as that of a single message would be.
    #[must_use]
    pub fn adaptive() -> Self {
        Self(Some(MESSAGES))
    }

    /// Most messages of one request, within 1 and 1024. Default: 32. Nothing changes when
    /// batching is off.
    #[must_use]
    pub fn max_messages(self, messages: usize) -> Self {
        Self(self.0.map(|_| messages))
    }

    pub(crate) fn check(self) -> Result<()> {
        match self.0 {
            Some(messages) if !(1..=MAX_MESSAGES).contains(&messages) => {
                Err(Error::invalid(format!(
                    "max_messages of the batching is {messages}, it must be within 1 and {MAX_MESSAGES}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Most messages under way to one endpoint.
    pub(crate) fn breadth(self) -> usize {
        self.0.unwrap_or(1).saturating_mul(MAX_REQUESTS)
    }

    pub(super) fn limits(self) -> Option<Limits> {
        self.0.map(|messages| Limits {
            messages,
            bytes: MAX_BYTES,
            requests: MAX_REQUESTS,
        })
    }
}
