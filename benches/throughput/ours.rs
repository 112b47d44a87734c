//! The same work by this library.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::join_all;
use rocketmq_actors::{
    Client, ClientConfig, Delivery, Filter, Message, ProducerSpec, PushConsumerSpec, Tls,
};
use tokio::sync::Notify;

use super::IN_FLIGHT;

const GRACE: Duration = Duration::from_secs(5);

fn client(endpoints: &str) -> Client {
    let config = ClientConfig::builder(endpoints).tls(Tls::Off);
    Client::new(config.build().unwrap())
}

/// Sends one by one by so many producers, [`IN_FLIGHT`] at a time in all.
pub(crate) async fn send(
    endpoints: &str,
    topic: &str,
    messages: usize,
    size: usize,
    producers: usize,
) -> Duration {
    let client = client(endpoints);
    let starts = (0..producers).map(|_| {
        let spec = ProducerSpec::builder()
            .topic(topic)
            .max_in_flight(IN_FLIGHT.div_ceil(producers));
        client.start(spec.build().unwrap())
    });
    let members = join_all(starts).await;
    let members: Vec<_> = members.into_iter().map(Result::unwrap).collect();
    let message = Message::builder(topic)
        .body(vec![b'x'; size])
        .build()
        .unwrap();
    let started = Instant::now();
    let sends = members.iter().map(|producer| {
        let share = std::iter::repeat_n(message.clone(), messages / producers);
        producer.send_all(share)
    });
    let sent = join_all(sends).await;
    let took = started.elapsed();
    assert!(sent.iter().flatten().all(Result::is_ok));
    join_all(members.iter().map(|producer| producer.shutdown(GRACE))).await;
    took
}

/// Receives and acknowledges by so many consumers of one group, [`IN_FLIGHT`] handlers in all.
pub(crate) async fn consume(
    endpoints: &str,
    topic: &str,
    messages: usize,
    consumers: usize,
) -> Duration {
    let client = client(endpoints);
    let (handled, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let started = Instant::now();
    let starts = (0..consumers).map(|_| {
        let (count, enough) = (handled.clone(), done.clone());
        let spec = PushConsumerSpec::builder(format!("{topic}-group"))
            .subscribe(topic, Filter::any())
            .concurrency(IN_FLIGHT.div_ceil(consumers))
            .handler(move |_: Delivery| {
                if count.fetch_add(1, Ordering::Relaxed) + 1 == messages {
                    enough.notify_one();
                }
                async {}
            });
        client.start(spec.build().unwrap())
    });
    let members = join_all(starts).await;
    let members: Vec<_> = members.into_iter().map(Result::unwrap).collect();
    done.notified().await;
    let took = started.elapsed();
    join_all(members.iter().map(|consumer| consumer.shutdown(GRACE))).await;
    took
}
