//! Merging a client's settings with the broker's.

use std::time::Duration;

use rocketmq_proto::v2 as pb;
use rocketmq_proto::v2::settings::PubSub;

use crate::backoff::Backoff;
use crate::clock::proto_duration;
use crate::config::GroupConfig;
use crate::names;
use crate::rpc::{Checked, refuse};
use crate::store::filter::Filter;

/// The longest body a producer may send.
pub(crate) const MAX_BODY: usize = 4 * 1024 * 1024;

/// The most messages of one receive.
pub(crate) const MAX_BATCH: i32 = 32;

/// How long receives are to wait.
const LONG_POLLING: Duration = Duration::from_secs(20);

const PRODUCER_ATTEMPTS: i32 = 3;

/// What the settings are about, once they passed the checks.
pub(crate) enum Kind<'a> {
    Producer,
    Consumer { group: &'a str },
}

/// Pull consumers pass only where `pull` is on.
pub(crate) fn check(settings: &pb::Settings, pull: bool) -> Checked<Kind<'_>> {
    match &settings.pub_sub {
        None => refuse(
            pb::Code::BadRequest,
            "there is no publishing or subscription data in settings",
        ),
        Some(PubSub::Publishing(publishing)) => {
            for topic in &publishing.topics {
                names::topic(&topic.name)?;
            }
            Ok(Kind::Producer)
        }
        Some(PubSub::Subscription(subscription)) => {
            check_type(settings.client_type(), pull)?;
            check_subscription(subscription)
        }
    }
}

fn check_type(kind: pb::ClientType, pull: bool) -> Checked<()> {
    use pb::ClientType as Type;
    match kind {
        Type::PushConsumer | Type::SimpleConsumer => Ok(()),
        Type::PullConsumer if pull => Ok(()),
        other => refuse(
            pb::Code::InternalServerError,
            format!("Client type is not consumer, type: {}", other.as_str_name()),
        ),
    }
}

fn check_subscription(subscription: &pb::Subscription) -> Checked<Kind<'_>> {
    let group = subscription
        .group
        .as_ref()
        .map_or("", |group| group.name.as_str());
    names::group(group)?;
    for entry in &subscription.subscriptions {
        names::topic(entry.topic.as_ref().map_or("", |topic| &topic.name))?;
        let Some(expression) = &entry.expression else {
            continue;
        };
        if expression.r#type() != pb::FilterType::Sql && Filter::parse(Some(expression)).is_err() {
            return refuse(
                pb::Code::IllegalFilterExpression,
                "expression format is not correct",
            );
        }
    }
    Ok(Kind::Consumer { group })
}

pub(crate) fn merge_producer(mut settings: pb::Settings) -> pb::Settings {
    settings.backoff_policy = Some(
        Backoff::Exponential {
            initial: Duration::from_millis(10),
            max: Duration::from_secs(1),
            multiplier: 2.0,
        }
        .to_proto(PRODUCER_ATTEMPTS),
    );
    if let Some(PubSub::Publishing(publishing)) = &mut settings.pub_sub {
        publishing.max_body_size = i32::try_from(MAX_BODY).unwrap_or(i32::MAX);
        publishing.validate_message_type = true;
    }
    settings.metric = Some(pb::Metric::default());
    settings
}

pub(crate) fn merge_consumer(mut settings: pb::Settings, group: &GroupConfig) -> pb::Settings {
    settings.backoff_policy = Some(group.backoff.to_proto(group.max_attempts()));
    if let Some(PubSub::Subscription(subscription)) = &mut settings.pub_sub {
        subscription.fifo = Some(group.fifo);
        subscription.receive_batch_size = Some(MAX_BATCH);
        subscription.long_polling_timeout = Some(proto_duration(LONG_POLLING));
    }
    settings.metric = Some(pb::Metric::default());
    settings
}
