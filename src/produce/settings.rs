//! What a producer and the server tell each other of how to send.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwap;
use rocketmq_proto::v2 as pb;

use super::spec::Options;
use crate::{
    Error, Result,
    config::ClientConfig,
    member::{Role, resource},
    model::{RetryPolicy, time},
    rpc::user_agent,
};

/// Most topics of one producer: all of them are in its settings, and their routes are refreshed.
pub(super) const MAX_TOPICS: usize = 1024;
/// The limit of servers that state none.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// How to send, as the server said last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Publishing {
    pub(crate) validate_type: bool,
    pub(crate) max_body: usize,
    /// The attempts are the producer's own, the delays the server's.
    pub(crate) retry: RetryPolicy,
}

/// The settings of one producer.
#[derive(Debug)]
pub(crate) struct ProducerRole {
    pub(crate) publishing: ArcSwap<Publishing>,
    topics: Mutex<BTreeSet<Arc<str>>>,
    config: Arc<ClientConfig>,
}

impl ProducerRole {
    pub(crate) fn new(
        topics: &[Arc<str>],
        options: &Options,
        config: Arc<ClientConfig>,
    ) -> Result<Self> {
        let publishing = Publishing {
            validate_type: options.validate_type,
            max_body: MAX_BODY,
            retry: RetryPolicy::immediate(options.max_attempts)?,
        };
        Ok(Self {
            publishing: ArcSwap::from_pointee(publishing),
            topics: Mutex::new(topics.iter().cloned().collect()),
            config,
        })
    }

    /// Adds a topic to the settings: whether they have to be sent again.
    pub(super) fn add(&self, topic: &Arc<str>) -> bool {
        let mut topics = self.known_topics();
        topics.len() < MAX_TOPICS && topics.insert(topic.clone())
    }

    /// # Errors
    /// The topic is one more than a producer may have.
    pub(super) fn check_room(&self, topic: &str) -> Result<()> {
        let topics = self.known_topics();
        if topics.len() < MAX_TOPICS || topics.contains(topic) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "this producer has sent to {MAX_TOPICS} topics, which is the most; use another for {topic}"
        )))
    }

    pub(super) fn topic_count(&self) -> usize {
        self.known_topics().len()
    }

    fn known_topics(&self) -> MutexGuard<'_, BTreeSet<Arc<str>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Role for ProducerRole {
    fn topics(&self) -> Vec<Arc<str>> {
        self.known_topics().iter().cloned().collect()
    }

    fn settings(&self) -> pb::Settings {
        let publishing = self.publishing.load();
        let topics = self.known_topics();
        let told = pb::Publishing {
            topics: topics
                .iter()
                .map(|topic| resource(&self.config.namespace, topic))
                .collect(),
            validate_message_type: publishing.validate_type,
            ..pb::Publishing::default()
        };
        pb::Settings {
            client_type: Some(pb::ClientType::Producer as i32),
            access_point: Some(self.config.endpoints.to_proto()),
            backoff_policy: Some(publishing.retry.to_proto()),
            request_timeout: Some(time::to_proto_duration(self.config.request_timeout)),
            user_agent: Some(user_agent()),
            pub_sub: Some(pb::settings::PubSub::Publishing(told)),
            ..pb::Settings::default()
        }
    }

    fn apply(&self, settings: &pb::Settings) -> bool {
        let publishing = match &settings.pub_sub {
            Some(pb::settings::PubSub::Publishing(publishing)) => publishing,
            Some(_) => return false,
            None => {
                tracing::warn!("the server's settings say nothing for a producer");
                return true;
            }
        };
        let before = self.publishing.load();
        let next = Publishing {
            validate_type: publishing.validate_message_type,
            max_body: max_body(publishing.max_body_size).unwrap_or(before.max_body),
            retry: retry(settings.backoff_policy.as_ref(), &before.retry)
                .unwrap_or_else(|| before.retry.clone()),
        };
        if next != **before {
            tracing::info!(
                validate_type = next.validate_type,
                max_body = next.max_body,
                "sending by the server's settings"
            );
            self.publishing.store(Arc::new(next));
        }
        true
    }

    fn heartbeat(&self) -> pb::HeartbeatRequest {
        pb::HeartbeatRequest {
            group: None,
            client_type: pb::ClientType::Producer as i32,
        }
    }

    fn termination(&self) -> pb::NotifyClientTerminationRequest {
        pb::NotifyClientTerminationRequest { group: None }
    }
}

fn max_body(size: i32) -> Option<usize> {
    usize::try_from(size).ok().filter(|size| *size > 0)
}

/// The server's delays for as many attempts as this producer makes.
fn retry(policy: Option<&pb::RetryPolicy>, own: &RetryPolicy) -> Option<RetryPolicy> {
    let taken = RetryPolicy::from_proto(policy?)
        .and_then(|policy| policy.with_max_attempts(own.max_attempts()));
    taken
        .inspect_err(|error| tracing::warn!(%error, "the server's retry policy is not usable"))
        .ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::time::Duration;

    use super::*;
    use crate::{ProducerSpec, Tls};

    fn role() -> ProducerRole {
        let config = ClientConfig::builder("127.0.0.1:8081").tls(Tls::Off);
        let spec = ProducerSpec::builder().topic("declared").build().unwrap();
        ProducerRole::new(
            &spec.topics,
            &spec.options,
            Arc::new(config.build().unwrap()),
        )
        .unwrap()
    }

    fn answer(max_body_size: i32, policy: Option<pb::RetryPolicy>) -> pb::Settings {
        let publishing = pb::Publishing {
            max_body_size,
            validate_message_type: true,
            ..pb::Publishing::default()
        };
        pb::Settings {
            backoff_policy: policy,
            pub_sub: Some(pb::settings::PubSub::Publishing(publishing)),
            ..pb::Settings::default()
        }
    }

    #[test]
    fn a_missing_or_senseless_value_of_the_server_leaves_what_was() {
        let role = role();
        let before = role.publishing.load_full();
        for size in [0, -1] {
            role.apply(&answer(size, None));
            role.apply(&answer(size, Some(pb::RetryPolicy::default())));
        }
        role.apply(&pb::Settings::default());
        assert_eq!(*role.publishing.load_full(), *before);
        assert_eq!(before.max_body, 4 * 1024 * 1024);
    }

    #[test]
    fn the_delays_are_the_servers_and_the_attempts_are_our_own() {
        let role = role();
        let (first, max) = (Duration::from_millis(10), Duration::from_secs(1));
        let policy = RetryPolicy::exponential(7, first, max, 2.0).unwrap();
        role.apply(&answer(1000, Some(policy.to_proto())));
        let publishing = role.publishing.load();
        assert_eq!(publishing.max_body, 1000);
        assert_eq!(publishing.retry.max_attempts(), 3);
        assert_eq!(publishing.retry.delay(2), Duration::from_millis(20));
        let told = RetryPolicy::from_proto(&role.settings().backoff_policy.unwrap());
        assert_eq!(
            told.unwrap(),
            publishing.retry,
            "and the server is told so again"
        );
    }

    #[test]
    fn topics_that_are_sent_to_join_the_declared_ones_up_to_a_bound() {
        let role = role();
        assert!(!role.add(&"declared".into()) && role.add(&"used".into()));
        let Some(pb::settings::PubSub::Publishing(told)) = role.settings().pub_sub else {
            unreachable!("a producer publishes")
        };
        let names: Vec<_> = told
            .topics
            .iter()
            .map(|topic| topic.name.as_str())
            .collect();
        assert_eq!(names, ["declared", "used"]);
        for number in 0..MAX_TOPICS {
            role.add(&format!("t{number}").into());
        }
        assert_eq!(role.topic_count(), MAX_TOPICS);
        assert!(role.check_room("used").is_ok() && role.check_room("one-more").is_err());
    }
}
