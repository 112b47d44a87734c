//! What a push consumer shall be.

use std::{sync::Arc, time::Duration};

use super::{DeliveryHandler, IntoHandler, consumption::Options};
use crate::{
    Error, Result,
    config::check_duration,
    model::{
        Filter,
        name::{validate_group, validate_topic},
    },
};

/// One topic with its filter.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub(crate) topic: Arc<str>,
    pub(crate) filter: Filter,
}

/// What a push consumer shall be, checked when it was built. Start it with
/// [`Client::start`](crate::Client::start).
///
/// ```
/// use rocketmq_actors::{Delivery, Filter, Outcome, PushConsumerSpec};
///
/// let spec = PushConsumerSpec::builder("billing")
///     .subscribe("orders", Filter::tag("paid"))
///     .concurrency(32)
///     .handler(|delivery: Delivery| async move {
///         if delivery.body().is_empty() {
///             return Outcome::dead_letter("no order in it");
///         }
///         Outcome::Ack
///     })
///     .build()?;
/// # Ok::<(), rocketmq_actors::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PushConsumerSpec {
    pub(crate) group: Arc<str>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) options: Options,
    pub(crate) handler: DeliveryHandler,
}

impl PushConsumerSpec {
    /// Starts a spec for a member of the consumer group `group`.
    pub fn builder(group: impl Into<String>) -> PushConsumerBuilder {
        PushConsumerBuilder {
            group: group.into(),
            subscriptions: Vec::new(),
            options: Options {
                concurrency: 20,
                max_cached_messages: 4096,
                max_cached_bytes: 64 * 1024 * 1024,
                receives_per_queue: 4,
                poll_grace: Duration::from_secs(1),
                unready_after: Duration::from_secs(60),
                slow_handler_after: Duration::from_secs(60),
            },
            handler: None,
        }
    }
}

/// Builds a [`PushConsumerSpec`]; each option says its default.
#[derive(Debug)]
#[must_use]
pub struct PushConsumerBuilder {
    group: String,
    subscriptions: Vec<(String, Filter)>,
    options: Options,
    handler: Option<DeliveryHandler>,
}

impl PushConsumerBuilder {
    /// Subscribes to a topic. At least one is needed; a second time for the same topic replaces
    /// its filter. All members of a group must subscribe to the same topics with the same
    /// filters, or they lose each other's messages.
    pub fn subscribe(mut self, topic: impl Into<String>, filter: Filter) -> Self {
        let topic = topic.into();
        self.subscriptions.retain(|(other, _)| *other != topic);
        self.subscriptions.push((topic, filter));
        self
    }

    /// Who handles the deliveries: an async closure or function, or the `Recipient` of an actor.
    /// What handles none is refused by the compiler:
    ///
    /// ```compile_fail,E0277
    /// rocketmq_actors::PushConsumerSpec::builder("billing").handler("ledger");
    /// ```
    pub fn handler<Kind>(mut self, handler: impl IntoHandler<Kind>) -> Self {
        self.handler = Some(handler.into_handler());
        self
    }

    /// Handlers that run at once, over all topics. Default: 20.
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.options.concurrency = handlers;
        self
    }

    /// Most messages cached, those being handled and settled included. Default: 4096.
    pub fn max_cached_messages(mut self, messages: usize) -> Self {
        self.options.max_cached_messages = messages;
        self
    }

    /// Most bytes of bodies cached. Default: 64 MiB.
    pub fn max_cached_bytes(mut self, bytes: usize) -> Self {
        self.options.max_cached_bytes = bytes;
        self
    }

    /// Most receives at once on one queue while there is a backlog. Default: 4. A queue that is
    /// consumed in order has one.
    pub fn receives_per_queue(mut self, receives: usize) -> Self {
        self.options.receives_per_queue = receives;
        self
    }

    /// How long a shutdown waits for polls in flight, which may still bring messages. Default: 1 s.
    pub fn poll_grace(mut self, grace: Duration) -> Self {
        self.options.poll_grace = grace;
        self
    }

    /// How long the consumer still counts as ready, see [`Health`](crate::Health), when no receive
    /// succeeds. One that brings no message is a success, and a full cache, or no queue being
    /// assigned, is no failure. Default: 60 s. It should be more than three long polls, which the
    /// server lets take up to 20 s each.
    pub fn unready_after(mut self, limit: Duration) -> Self {
        self.options.unready_after = limit;
        self
    }

    /// How long a handler may run until it is reported, once, by a warning in the log and
    /// [`HandlerSlow`](crate::EventKind::HandlerSlow). It goes on all the same, and its message
    /// stays leased. Looked at eight times within this time. Default: 60 s.
    pub fn slow_handler_after(mut self, limit: Duration) -> Self {
        self.options.slow_handler_after = limit;
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) naming what is missing, zero or not
    /// a legal name.
    pub fn build(self) -> Result<PushConsumerSpec> {
        validate_group(&self.group)?;
        if self.subscriptions.is_empty() {
            return Err(Error::invalid("subscribe to at least one topic"));
        }
        for (topic, filter) in &self.subscriptions {
            validate_topic(topic)?;
            filter.validate()?;
        }
        let handler = self
            .handler
            .ok_or_else(|| Error::invalid("a push consumer needs a handler: call .handler(..)"))?;
        for (name, value) in [
            ("concurrency", self.options.concurrency),
            ("max_cached_messages", self.options.max_cached_messages),
            ("max_cached_bytes", self.options.max_cached_bytes),
            ("receives_per_queue", self.options.receives_per_queue),
        ] {
            if value == 0 {
                return Err(Error::invalid(format!("{name} is 0, the least is 1")));
            }
        }
        if self.options.concurrency > tokio::sync::Semaphore::MAX_PERMITS {
            return Err(Error::invalid("concurrency is too large"));
        }
        check_duration("poll_grace", self.options.poll_grace)?;
        check_duration("unready_after", self.options.unready_after)?;
        check_duration("slow_handler_after", self.options.slow_handler_after)?;
        let subscription = |(topic, filter): (String, Filter)| Subscription {
            topic: topic.into(),
            filter,
        };
        Ok(PushConsumerSpec {
            group: self.group.into(),
            subscriptions: self.subscriptions.into_iter().map(subscription).collect(),
            options: self.options,
            handler,
        })
    }
}
