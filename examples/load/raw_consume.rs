//! Receives and acknowledges by the bare client.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use rocketmq_proto::v2::{self as pb, receive_message_response::Content, settings::PubSub};
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    Failure,
    measure::{Figures, Latencies, Span},
    options::Options,
    raw::{Grpc, Raw, check, request, resource, unary},
    work::age,
};

/// The most that servers give at once.
const RECEIVE: i32 = 32;
const POLL: Duration = Duration::from_secs(20);
/// The poll and time for the answer: servers refuse a poll beyond the deadline.
const POLL_TIMEOUT: Duration = Duration::from_secs(25);

/// What the loops share.
#[derive(Debug)]
struct Progress {
    wanted: usize,
    acked: AtomicUsize,
    done: Notify,
    latencies: Latencies,
}

pub(crate) async fn run(options: &Options) -> Result<Figures, Failure> {
    let subscription = PubSub::Subscription(pb::Subscription {
        group: Some(resource(&options.group)),
        subscriptions: vec![pb::SubscriptionEntry {
            topic: Some(resource(&options.topic)),
            expression: Some(everything()),
        }],
        ..Default::default()
    });
    let raw = Raw::connect(options, pb::ClientType::PushConsumer, subscription).await?;
    let progress = Arc::new(Progress {
        wanted: options.count,
        acked: AtomicUsize::new(0),
        done: Notify::new(),
        latencies: Latencies::of(options.count),
    });
    let span = Span::begin()?;
    let mut loops = JoinSet::new();
    for _ in 0..options.loops {
        loops.spawn(receive_loop(
            raw.grpc.clone(),
            resource(&options.topic),
            resource(&options.group),
            options.batch,
            progress.clone(),
        ));
    }
    // The other loops may be in a long poll when the last message is acknowledged.
    loop {
        tokio::select! {
            () = progress.done.notified() => break,
            ended = loops.join_next() => match ended {
                Some(ended) => ended??,
                None => break,
            },
        }
    }
    let figures = span.end(progress.acked.load(Ordering::Relaxed), &progress.latencies)?;
    loops.shutdown().await;
    raw.leave(options).await?;
    Ok(figures)
}

/// Receives, acknowledges what came in requests of so many, and begins again.
async fn receive_loop(
    mut grpc: Grpc,
    topic: pb::Resource,
    group: pb::Resource,
    batch: usize,
    progress: Arc<Progress>,
) -> Result<(), Failure> {
    while progress.acked.load(Ordering::Relaxed) < progress.wanted {
        let mut entries = receive(&mut grpc, &topic, &group, &progress.latencies).await?;
        while !entries.is_empty() {
            let rest = entries.split_off(batch.min(entries.len()));
            let count = entries.len();
            let ack = pb::AckMessageRequest {
                group: Some(group.clone()),
                topic: Some(topic.clone()),
                entries,
            };
            check(grpc.ack_message(unary(ack)).await?.into_inner().status)?;
            if progress.acked.fetch_add(count, Ordering::Relaxed) + count >= progress.wanted {
                progress.done.notify_one();
            }
            entries = rest;
        }
    }
    Ok(())
}

async fn receive(
    grpc: &mut Grpc,
    topic: &pb::Resource,
    group: &pb::Resource,
    latencies: &Latencies,
) -> Result<Vec<pb::AckMessageEntry>, Failure> {
    let receive = pb::ReceiveMessageRequest {
        group: Some(group.clone()),
        // Any queue of any broker.
        message_queue: Some(pb::MessageQueue {
            topic: Some(topic.clone()),
            ..Default::default()
        }),
        filter_expression: Some(everything()),
        batch_size: RECEIVE,
        auto_renew: true,
        long_polling_timeout: Some(POLL.try_into()?),
        ..Default::default()
    };
    let receive = request(receive, POLL_TIMEOUT);
    let mut stream = grpc.receive_message(receive).await?.into_inner();
    let mut entries = Vec::with_capacity(RECEIVE as usize);
    while let Some(part) = stream.message().await? {
        match part.content {
            Some(Content::Message(message)) => entries.push(seen(message, latencies)?),
            Some(Content::Status(status)) if status.code != pb::Code::MessageNotFound as i32 => {
                check(Some(status))?;
            }
            _ => {}
        }
    }
    Ok(entries)
}

/// What a handler would do, and what acknowledges the message.
fn seen(message: pb::Message, latencies: &Latencies) -> Result<pb::AckMessageEntry, Failure> {
    let system = message.system_properties.ok_or("no system properties")?;
    let born = system.born_timestamp;
    let born = born.and_then(|born| SystemTime::try_from(born).ok());
    latencies.record(age(&message.body, born));
    Ok(pb::AckMessageEntry {
        message_id: system.message_id,
        receipt_handle: system.receipt_handle.ok_or("no receipt handle")?,
        ..Default::default()
    })
}

fn everything() -> pb::FilterExpression {
    pb::FilterExpression {
        r#type: pb::FilterType::Tag.into(),
        expression: "*".to_owned(),
    }
}
