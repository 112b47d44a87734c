//! Sends by the bare client.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use rocketmq_proto::v2::{self as pb, settings::PubSub};
use tokio::task::JoinSet;

use crate::{
    Failure,
    measure::{Figures, Latencies, Span},
    options::Options,
    raw::{Grpc, Raw, check, resource, unary},
    work::{Schedule, body},
};

/// As many senders as requests may be in flight, each awaiting the answer before the next.
pub(crate) async fn run(options: &Options) -> Result<Figures, Failure> {
    let publishing = PubSub::Publishing(pb::Publishing {
        topics: vec![resource(&options.topic)],
        ..Default::default()
    });
    let raw = Raw::connect(options, pb::ClientType::Producer, publishing).await?;
    let latencies = Arc::new(Latencies::of(options.count));
    let span = Span::begin()?;
    let schedule = Arc::new(Schedule::start(options.count, options.rate));
    let mut senders = JoinSet::new();
    for _ in 0..(options.concurrency / options.batch).max(1) {
        senders.spawn(sender(
            raw.grpc.clone(),
            Template::of(options),
            schedule.clone(),
            latencies.clone(),
        ));
    }
    while let Some(sent) = senders.join_next().await {
        sent??;
    }
    let figures = span.end(options.count, &latencies)?;
    raw.leave(options).await?;
    Ok(figures)
}

async fn sender(
    mut grpc: Grpc,
    template: Template,
    schedule: Arc<Schedule>,
    latencies: Arc<Latencies>,
) -> Result<(), Failure> {
    while let Some(numbers) = schedule.take(template.batch).await {
        let called = Instant::now();
        let count = numbers.len();
        let messages = numbers.map(|number| template.message(number)).collect();
        let send = unary(pb::SendMessageRequest { messages });
        check(grpc.send_message(send).await?.into_inner().status)?;
        for _ in 0..count {
            latencies.record(called.elapsed());
        }
    }
    Ok(())
}

/// What all messages have in common.
#[derive(Debug)]
struct Template {
    topic: pb::Resource,
    size: usize,
    batch: usize,
    /// Makes the ids of this process its own.
    process: u32,
}

impl Template {
    fn of(options: &Options) -> Self {
        Self {
            topic: resource(&options.topic),
            size: options.size,
            batch: options.batch.min(options.concurrency),
            process: std::process::id(),
        }
    }

    fn message(&self, number: usize) -> pb::Message {
        pb::Message {
            topic: Some(self.topic.clone()),
            body: body(self.size),
            system_properties: Some(pb::SystemProperties {
                message_id: format!("{:08X}{number:016X}", self.process),
                message_type: pb::MessageType::Normal.into(),
                body_encoding: pb::Encoding::Identity.into(),
                born_timestamp: Some(SystemTime::now().into()),
                ..Default::default()
            }),
            ..Default::default()
        }
    }
}
