//! The work by this library.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use rocketmq_actors::{
    Batching, Client, ClientConfig, Delivery, Filter, Message, Producer, ProducerSpec,
    PushConsumer, PushConsumerSpec, Result, Tls,
};
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    Failure,
    measure::{Figures, Latencies, Span},
    options::Options,
    work::{Schedule, age, body},
};

/// How long the drain may take; by then nothing is measured any more.
const GRACE: Duration = Duration::from_secs(5);

fn client(options: &Options) -> Result<Client> {
    let config = ClientConfig::builder(&options.endpoints).tls(Tls::Off);
    Ok(Client::new(config.build()?))
}

fn producer_spec(options: &Options) -> Result<ProducerSpec, Failure> {
    let batching = match options.batch {
        1 => Batching::off(),
        most => Batching::adaptive().max_messages(most),
    };
    let spec = ProducerSpec::builder()
        .topic(&options.topic)
        .batching(batching)
        .max_in_flight(options.concurrency);
    Ok(spec.build()?)
}

/// As many senders as messages may be in flight, each awaiting its receipt before the next.
pub(crate) async fn send(options: &Options) -> Result<Figures, Failure> {
    let producer = client(options)?.start(producer_spec(options)?).await?;
    let latencies = Arc::new(Latencies::of(options.count));
    let span = Span::begin()?;
    let schedule = Arc::new(Schedule::start(options.count, options.rate));
    let mut senders = JoinSet::new();
    for _ in 0..options.concurrency.min(options.count) {
        let (topic, size) = (options.topic.clone(), options.size);
        senders.spawn(sender(
            producer.clone(),
            topic,
            size,
            schedule.clone(),
            latencies.clone(),
        ));
    }
    while let Some(sent) = senders.join_next().await {
        sent??;
    }
    let figures = span.end(options.count, &latencies)?;
    producer.shutdown(GRACE).await;
    Ok(figures)
}

async fn sender(
    producer: Producer,
    topic: String,
    size: usize,
    schedule: Arc<Schedule>,
    latencies: Arc<Latencies>,
) -> Result<()> {
    while schedule.take(1).await.is_some() {
        let called = Instant::now();
        let message = Message::builder(&topic).body(body(size)).build()?;
        producer.send(message).await?;
        latencies.record(called.elapsed());
    }
    Ok(())
}

pub(crate) async fn consume(options: &Options) -> Result<Figures, Failure> {
    let latencies = Arc::new(Latencies::of(options.count));
    let span = Arc::new(OnceLock::new());
    let enough = Arc::new(Notify::new());
    let (seen, begun, last) = (latencies.clone(), span.clone(), enough.clone());
    let count = options.count;
    let spec = PushConsumerSpec::builder(&options.group)
        .subscribe(&options.topic, Filter::any())
        .concurrency(options.concurrency)
        .handler(move |delivery: Delivery| {
            // The first message may be here before the start has returned.
            begun.get_or_init(Span::begin);
            if seen.record(age(delivery.body(), delivery.born_at())) == count {
                last.notify_one();
            }
            async {}
        })
        .build()?;
    let consumer = client(options)?.start(spec).await?;
    span.get_or_init(Span::begin);
    let acked = tokio::select! {
        acked = async {
            enough.notified().await;
            acknowledged(&consumer, count).await
        } => acked,
        error = consumer.failed() => return Err(error.into()),
    };
    let Some(Ok(span)) = span.get() else {
        return Err("the processor time cannot be read".into());
    };
    let figures = span.end(acked, &latencies)?;
    consumer.shutdown(GRACE).await;
    Ok(figures)
}

/// Waits for so many answered acknowledgements, and says how many there are by then.
async fn acknowledged(consumer: &PushConsumer, count: usize) -> usize {
    // Nobody tells about acknowledgements one by one, so this looks every millisecond.
    let mut looks = tokio::time::interval(Duration::from_millis(1));
    loop {
        looks.tick().await;
        let acked = consumer.stats().acked;
        if acked >= count as u64 {
            return acked as usize;
        }
    }
}
