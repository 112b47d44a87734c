//! Receiving and settling go on whatever the server answers, and however it fails.

mod cache;
mod odd_values;
mod outages;
mod receive;
mod settle;

use std::time::Duration;

use rocketmq_actors::{Delivery, Filter, PushConsumer, PushConsumerBuilder, PushConsumerSpec};
use rocketmq_embedded::{
    Call, EmbeddedBroker, GroupConfig, Reply, RequestBody, Rpc, TopicConfig, proto as pb,
};

use super::harness::*;

/// Group `g` on topic `t`.
pub fn spec() -> PushConsumerBuilder {
    PushConsumerSpec::builder("g").subscribe("t", Filter::any())
}

pub async fn start(broker: &EmbeddedBroker, builder: PushConsumerBuilder) -> PushConsumer {
    client(broker)
        .start(builder.build().unwrap())
        .await
        .unwrap()
}

/// Counts what it handles, with success.
pub fn counting(tally: &Tally) -> PushConsumerBuilder {
    let tally = tally.clone();
    spec().handler(move |delivery: Delivery| {
        tally.add(delivery.message_id());
        async {}
    })
}

/// A broker with a topic `t` of so many queues.
pub async fn topic(queues: usize) -> Checked {
    let broker = broker(|builder| builder).await;
    broker.create_topic("t", TopicConfig::normal(queues));
    broker
}

/// Four messages `m0` to `m3` of one message group, for a group in order.
pub async fn ordered(broker: &EmbeddedBroker) {
    broker.create_topic("t", TopicConfig::fifo(1));
    broker.create_group("g", GroupConfig::default().max_retries(16).fifo(true));
    let messages = (0..4).map(|number| {
        let mut message = message("t", &format!("m{number}"), b"body");
        let system = message.system_properties.as_mut().unwrap();
        system.message_group = Some("one".to_owned());
        message
    });
    store(broker, 0, messages.collect()).await;
}

/// Changes every message that a receive brings.
fn messages(change: impl Fn(&mut pb::Message)) -> impl Fn(&mut Reply<'_>) {
    use pb::receive_message_response::Content;
    move |reply| {
        if let Reply::ReceiveMessage(reply) = reply
            && let Some(Content::Message(message)) = &mut reply.content
        {
            change(message);
        }
    }
}

fn receive_of(call: &Call) -> &pb::ReceiveMessageRequest {
    match &call.request {
        RequestBody::ReceiveMessage(request) => request,
        other => panic!("{other:?}"),
    }
}

/// The receipt handles that a call is to settle.
fn handles(call: &Call) -> Vec<String> {
    match &call.request {
        RequestBody::AckMessage(request) => {
            let handle = |entry: &pb::AckMessageEntry| entry.receipt_handle.clone();
            request.entries.iter().map(handle).collect()
        }
        RequestBody::ChangeInvisibleDuration(request) => vec![request.receipt_handle.clone()],
        RequestBody::ForwardMessageToDeadLetterQueue(request) => {
            vec![request.receipt_handle.clone()]
        }
        other => panic!("settles nothing: {other:?}"),
    }
}

/// The calls that settle, in their order.
const SETTLING: [Rpc; 3] = [
    Rpc::AckMessage,
    Rpc::ChangeInvisibleDuration,
    Rpc::ForwardMessageToDeadLetterQueue,
];

/// Waits until it is met, which must not take longer.
async fn within(limit: Duration, mut met: impl FnMut() -> bool) {
    let waited = async {
        while !met() {
            tokio::time::sleep(millis(20)).await;
        }
    };
    let ended = tokio::time::timeout(limit, waited).await;
    assert!(ended.is_ok(), "not met within {limit:?}");
}
