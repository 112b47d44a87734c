//! What a push consumer and the server tell each other of how to consume.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use rocketmq_proto::v2 as pb;

use super::Subscription;
use crate::{
    config::ClientConfig,
    member::{Role, resource},
    model::{RetryPolicy, time},
    rpc::user_agent,
};

/// Long polls of the official client before the server says otherwise.
const LONG_POLLING: Duration = Duration::from_secs(30);
/// The server clamps long polls to 5 s to 20 s; a longer value of its own is not believed.
const LONGEST_POLLING: Duration = Duration::from_secs(60);
const SHORTEST_POLLING: Duration = Duration::from_secs(5);
const BATCH: usize = 32;

/// How to consume, as the server said last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Consuming {
    pub(crate) fifo: bool,
    pub(crate) batch: usize,
    pub(crate) long_polling: Duration,
    pub(crate) retry: RetryPolicy,
}

impl Default for Consuming {
    fn default() -> Self {
        Self {
            fifo: false,
            batch: BATCH,
            long_polling: LONG_POLLING,
            retry: RetryPolicy::server_default(),
        }
    }
}

/// The settings of one push consumer.
#[derive(Debug)]
pub(crate) struct ConsumerRole {
    pub(crate) group: Arc<str>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) consuming: ArcSwap<Consuming>,
    config: Arc<ClientConfig>,
}

impl ConsumerRole {
    pub(crate) fn new(
        group: Arc<str>,
        subscriptions: Vec<Subscription>,
        config: Arc<ClientConfig>,
    ) -> Self {
        Self {
            group,
            subscriptions,
            consuming: ArcSwap::default(),
            config,
        }
    }

    fn resource(&self, name: &str) -> pb::Resource {
        resource(&self.config.namespace, name)
    }
}

impl Role for ConsumerRole {
    fn topics(&self) -> Vec<Arc<str>> {
        let topic = |subscription: &Subscription| subscription.topic.clone();
        self.subscriptions.iter().map(topic).collect()
    }

    fn settings(&self) -> pb::Settings {
        let entry = |subscription: &Subscription| pb::SubscriptionEntry {
            topic: Some(self.resource(&subscription.topic)),
            expression: Some(subscription.filter.to_proto()),
        };
        let subscription = pb::Subscription {
            group: Some(self.resource(&self.group)),
            subscriptions: self.subscriptions.iter().map(entry).collect(),
            ..pb::Subscription::default()
        };
        pb::Settings {
            client_type: Some(pb::ClientType::PushConsumer as i32),
            access_point: Some(self.config.endpoints.to_proto()),
            request_timeout: Some(time::to_proto_duration(self.config.request_timeout)),
            user_agent: Some(user_agent()),
            pub_sub: Some(pb::settings::PubSub::Subscription(subscription)),
            ..pb::Settings::default()
        }
    }

    fn apply(&self, settings: &pb::Settings) -> bool {
        let subscription = match &settings.pub_sub {
            Some(pb::settings::PubSub::Subscription(subscription)) => subscription,
            Some(_) => return false,
            None => {
                tracing::warn!(group = %self.group, "the server's settings say nothing for a consumer");
                return true;
            }
        };
        let before = self.consuming.load();
        let next = Consuming {
            fifo: subscription.fifo.unwrap_or(false),
            batch: batch(subscription.receive_batch_size).unwrap_or(before.batch),
            long_polling: long_polling(subscription.long_polling_timeout.as_ref())
                .unwrap_or(before.long_polling),
            retry: retry(&self.group, settings.backoff_policy.as_ref())
                .unwrap_or_else(|| before.retry.clone()),
        };
        if next != **before {
            tracing::info!(
                group = %self.group,
                fifo = next.fifo,
                batch = next.batch,
                long_polling = ?next.long_polling,
                max_attempts = next.retry.max_attempts(),
                "consuming by the server's settings"
            );
            self.consuming.store(Arc::new(next));
        }
        true
    }

    fn heartbeat(&self) -> pb::HeartbeatRequest {
        pb::HeartbeatRequest {
            group: Some(self.resource(&self.group)),
            client_type: pb::ClientType::PushConsumer as i32,
        }
    }

    fn termination(&self) -> pb::NotifyClientTerminationRequest {
        pb::NotifyClientTerminationRequest {
            group: Some(self.resource(&self.group)),
        }
    }
}

fn batch(size: Option<i32>) -> Option<usize> {
    usize::try_from(size?).ok().filter(|size| *size > 0)
}

fn long_polling(timeout: Option<&prost_types::Duration>) -> Option<Duration> {
    let timeout = time::duration(timeout?, LONGEST_POLLING);
    (!timeout.is_zero()).then(|| timeout.max(SHORTEST_POLLING))
}

fn retry(group: &str, policy: Option<&pb::RetryPolicy>) -> Option<RetryPolicy> {
    match RetryPolicy::from_proto(policy?) {
        Ok(policy) => Some(policy),
        Err(error) => {
            tracing::warn!(%group, %error, "the server's retry policy is not usable");
            None
        }
    }
}
