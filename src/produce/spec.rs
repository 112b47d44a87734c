//! What a producer shall be.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::sync::Semaphore;

use super::{batch::Batching, settings::MAX_TOPICS};
use crate::{Error, Result, config::check_duration, model::name::validate_topic};

/// What a send does while as much is in flight as was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WhenFull {
    /// It waits for room, first come, first served, within its time-out. The default.
    #[default]
    Wait,
    /// It fails at once with [`ErrorKind::Full`](crate::ErrorKind::Full).
    Refuse,
}

/// Numbers of a producer.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) max_attempts: i32,
    /// The total budget of one send.
    pub(crate) send_timeout: Duration,
    pub(crate) max_in_flight: usize,
    pub(crate) max_in_flight_bytes: usize,
    pub(crate) when_full: WhenFull,
    /// What holds until a server has said otherwise.
    pub(crate) validate_type: bool,
    pub(crate) batching: Batching,
}

/// What a producer shall be, checked when it was built. Start it with
/// [`Client::start`](crate::Client::start).
///
/// ```
/// use std::time::Duration;
/// use rocketmq_actors::{ProducerSpec, WhenFull};
///
/// let spec = ProducerSpec::builder()
///     .topic("orders")
///     .send_timeout(Duration::from_secs(5))
///     .when_full(WhenFull::Refuse)
///     .build()?;
/// # Ok::<(), rocketmq_actors::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ProducerSpec {
    pub(crate) topics: Vec<Arc<str>>,
    pub(crate) options: Options,
}

impl ProducerSpec {
    /// Starts a spec. Everything has a default.
    pub fn builder() -> ProducerBuilder {
        ProducerBuilder {
            topics: BTreeSet::new(),
            options: Options {
                max_attempts: 3,
                send_timeout: Duration::from_secs(9),
                max_in_flight: 1024,
                max_in_flight_bytes: 64 * 1024 * 1024,
                when_full: WhenFull::Wait,
                validate_type: true,
                batching: Batching::off(),
            },
        }
    }
}

/// Builds a [`ProducerSpec`]; each option says its default.
#[derive(Debug)]
#[must_use]
pub struct ProducerBuilder {
    topics: BTreeSet<String>,
    options: Options,
}

impl ProducerBuilder {
    /// Declares a topic: the start fails unless it exists and can be reached, and the first send
    /// finds everything ready. Topics that are not declared may be sent to all the same.
    /// Default: none, and the start contacts no server.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topics.insert(topic.into());
        self
    }

    /// Declares several topics.
    pub fn topics<T: Into<String>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        self.topics.extend(topics.into_iter().map(Into::into));
        self
    }

    /// Most requests of one send that may fail before it fails. Default: 3.
    ///
    /// A server that asks for less traffic is asked again however often, within the time-out.
    pub fn max_attempts(mut self, attempts: i32) -> Self {
        self.options.max_attempts = attempts;
        self
    }

    /// The time one send may take, all attempts, waits and the wait for room included.
    /// Default: 9 s.
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.options.send_timeout = timeout;
        self
    }

    /// Most messages in flight. Default: 1024.
    pub fn max_in_flight(mut self, messages: usize) -> Self {
        self.options.max_in_flight = messages;
        self
    }

    /// Most bytes of bodies in flight; a body that is larger than this is sent alone.
    /// Default: 64 MiB.
    pub fn max_in_flight_bytes(mut self, bytes: usize) -> Self {
        self.options.max_in_flight_bytes = bytes;
        self
    }

    /// What a send does when that much is in flight. Default: it waits.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.options.when_full = when_full;
        self
    }

    /// Whether a message is refused here when its topic does not take its type. The server's own
    /// answer to that question replaces this with the first settings. Default: yes.
    pub fn validate_type(mut self, validate: bool) -> Self {
        self.options.validate_type = validate;
        self
    }

    /// Whether messages that are sent at the same time share requests. Default: they do not.
    ///
    /// Many times the throughput, with servers of version 5.4.0 or newer **only**: see
    /// [`Batching`].
    pub fn batching(mut self, batching: Batching) -> Self {
        self.options.batching = batching;
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) naming what is zero, too large or
    /// not a legal name.
    pub fn build(self) -> Result<ProducerSpec> {
        let Self { topics, options } = self;
        topics.iter().try_for_each(|topic| validate_topic(topic))?;
        if topics.len() > MAX_TOPICS {
            let count = topics.len();
            return Err(Error::invalid(format!(
                "{count} topics, {MAX_TOPICS} at most"
            )));
        }
        if !(1..i32::MAX).contains(&options.max_attempts) {
            let attempts = options.max_attempts;
            return Err(Error::invalid(format!(
                "max_attempts is {attempts}, the least is 1"
            )));
        }
        check_duration("send_timeout", options.send_timeout)?;
        options.batching.check()?;
        for (name, value) in [
            ("max_in_flight", options.max_in_flight),
            ("max_in_flight_bytes", options.max_in_flight_bytes),
        ] {
            if value == 0 || value > Semaphore::MAX_PERMITS {
                let most = Semaphore::MAX_PERMITS;
                return Err(Error::invalid(format!(
                    "{name} is {value}, it must be within 1 and {most}"
                )));
            }
        }
        Ok(ProducerSpec {
            topics: topics.into_iter().map(Into::into).collect(),
            options,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_zero_or_endless_number_and_a_bad_name_are_refused_by_name() {
        let spec = ProducerSpec::builder;
        let batching = |messages| spec().batching(Batching::adaptive().max_messages(messages));
        for (builder, word) in [
            (spec().topic("no spaces"), "topic"),
            (spec().max_attempts(0), "max_attempts"),
            (spec().max_attempts(i32::MAX), "max_attempts"),
            (spec().send_timeout(Duration::ZERO), "send_timeout"),
            (spec().max_in_flight(0), "max_in_flight"),
            (spec().max_in_flight(usize::MAX), "max_in_flight"),
            (spec().max_in_flight_bytes(0), "max_in_flight_bytes"),
            (batching(0), "max_messages"),
            (batching(1025), "max_messages"),
        ] {
            let refused = builder.build().unwrap_err().to_string();
            assert!(refused.contains(word), "{refused}");
        }
    }

    #[test]
    fn a_topic_declared_twice_counts_once() {
        let spec = ProducerSpec::builder()
            .topics(["a", "b"])
            .topic("a")
            .build();
        assert_eq!(spec.map(|spec| spec.topics.len()).ok(), Some(2));
    }
}
