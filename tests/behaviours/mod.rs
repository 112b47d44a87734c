//! What a client does on any server: one body each, run on the embedded broker by `tests/suite`
//! and on the real one by `tests/real`.
//!
//! Each body has topics and groups of its own, so that all can run side by side.

pub mod consuming;
pub mod producing;
pub mod refusing;
mod seen;

use std::time::Duration;

use rocketmq_actors::{Client, ClientConfigBuilder, Producer, ProducerSpec};

pub use seen::{Seen, Sight};

/// A message as it lies on the wire, for what no producer of ours would send.
pub use rocketmq_embedded::proto as pb;

/// Kind of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Normal,
    Fifo,
}

/// A server, embedded or real.
pub trait Server {
    /// A configuration that reaches it.
    fn config(&self) -> ClientConfigBuilder;
    /// Makes sure that the topic is there.
    async fn topic(&self, name: &str, kind: Kind, queues: usize);
    /// Makes sure that the group is there, with so many redeliveries.
    async fn group(&self, name: &str, retries: u32, fifo: bool);
    /// Stores a message as it is.
    async fn store(&self, message: pb::Message);

    fn client(&self) -> Client {
        Client::new(self.config().build().unwrap())
    }

    async fn producer(&self, topic: &str) -> Producer {
        let spec = ProducerSpec::builder().topic(topic).build().unwrap();
        self.client().start(spec).await.unwrap()
    }
}

/// How long a drain may take.
pub const GRACE: Duration = Duration::from_secs(10);

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Runs every behaviour as a test of its own: `$run` turns a body into one.
#[macro_export]
macro_rules! every_behaviour {
    ($run:ident) => {
        $run! { consuming:
            every_message_is_handled_once,
            what_was_sent_arrives,
            a_tag_filter_lets_its_tags_through,
            a_failed_message_comes_again_as_the_next_attempt,
            a_message_that_always_fails_ends_as_a_dead_letter,
            a_dead_letter_outcome_moves_the_message_at_once,
            an_actor_handles_deliveries,
            two_consumers_share_a_topic_of_one_queue,
            no_more_handlers_run_than_allowed,
            shutdown_gives_back_what_has_not_started,
            a_compressed_body_is_inflated,
            a_body_that_cannot_be_inflated_costs_its_neighbours_nothing,
            the_largest_body_is_delivered,
            an_ordered_group_is_handled_one_by_one,
        }
        $run! { producing:
            each_message_gets_a_receipt,
            many_messages_get_a_result_each,
            messages_that_share_requests_are_kept_apart,
            an_actor_pipeline_ends_in_a_topic,
        }
        $run! { refusing:
            an_unknown_topic_to_consume,
            an_unknown_topic_to_send_to,
            a_body_over_the_limit,
            a_message_of_a_type_the_topic_does_not_take,
        }
    };
}
