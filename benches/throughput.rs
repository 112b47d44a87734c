//! Messages per second beside a bare tonic loop, on the embedded broker over loopback.
//!
//! `cargo bench --bench throughput [-- MESSAGES]`
//!
//! Each pair runs interleaved, three times; what counts is the median of the ratios.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement stops at the first error and prints"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use rocketmq_actors::{
    Batching, Client, ClientConfig, Delivery, Filter, Message, ProducerSpec, PushConsumerSpec, Tls,
};
use rocketmq_embedded::{
    Builder, EmbeddedBroker, TopicConfig,
    proto::{self as pb, messaging_service_client::MessagingServiceClient},
};
use tokio::{runtime::Runtime, sync::Notify};
use tonic::{
    Request,
    transport::{Channel, Endpoint},
};

const IN_FLIGHT: usize = 64;
const REQUESTS: usize = 16;
const TOGETHER: usize = 32;
const LOOPS: usize = 4;
const BATCH: i32 = 32;
const BODY: usize = 1024;
const ROUNDS: usize = 3;

type Raw = MessagingServiceClient<Channel>;

fn main() {
    let messages = std::env::args().filter_map(|word| word.parse().ok()).next();
    let messages = messages.unwrap_or(20_000);
    // The broker has a thread of its own, as a server would.
    let server = runtime();
    let broker = server.block_on(async { start(EmbeddedBroker::builder()).await });
    let client = runtime();
    let mut sends = Vec::new();
    let mut batches = Vec::new();
    let mut receives = Vec::new();
    for round in 0..ROUNDS {
        broker.create_topic(format!("raw{round}"), TopicConfig::normal(8));
        broker.create_topic(format!("ours{round}"), TopicConfig::normal(8));
        broker.create_topic(format!("batches{round}"), TopicConfig::normal(8));
        let ours = client.block_on(send(
            &broker,
            &format!("ours{round}"),
            messages,
            Batching::off(),
        ));
        let raw = client.block_on(raw_send(
            &broker,
            &format!("raw{round}"),
            messages,
            IN_FLIGHT,
            1,
        ));
        sends.push(report("send one by one", messages, ours, raw));
        let topic = format!("batches{round}");
        let ours = client.block_on(send(&broker, &topic, messages, Batching::adaptive()));
        let raw = client.block_on(raw_send(&broker, &topic, messages, REQUESTS, TOGETHER));
        batches.push(report("send together", messages, ours, raw));
        let ours = client.block_on(consume(&broker, &format!("ours{round}"), messages));
        let raw = client.block_on(raw_consume(&broker, &format!("raw{round}"), messages));
        receives.push(report("receive and ack", messages, ours, raw));
    }
    println!(
        "median: send {:.2}, send together {:.2}, receive {:.2} of the bare loop",
        median(sends),
        median(batches),
        median(receives)
    );
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

async fn start(builder: Builder) -> EmbeddedBroker {
    builder.without_record().start().await.unwrap()
}

fn report(what: &str, messages: usize, ours: Duration, raw: Duration) -> f64 {
    let rate = |time: Duration| messages as f64 / time.as_secs_f64();
    let ratio = rate(ours) / rate(raw);
    println!(
        "{what:<16} {:>7.0}/s, bare {:>7.0}/s, ratio {ratio:.2}",
        rate(ours),
        rate(raw)
    );
    ratio
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

fn ours(broker: &EmbeddedBroker) -> Client {
    let config = ClientConfig::builder(broker.endpoints()).tls(Tls::Off);
    Client::new(config.build().unwrap())
}

async fn send(
    broker: &EmbeddedBroker,
    topic: &str,
    messages: usize,
    batching: Batching,
) -> Duration {
    let spec = ProducerSpec::builder().topic(topic).batching(batching);
    let spec = match batching == Batching::off() {
        true => spec.max_in_flight(IN_FLIGHT),
        false => spec,
    };
    let producer = ours(broker).start(spec.build().unwrap()).await.unwrap();
    let message = Message::builder(topic)
        .body(vec![b'x'; BODY])
        .build()
        .unwrap();
    let started = Instant::now();
    let sent = producer
        .send_all(std::iter::repeat_n(message, messages))
        .await;
    let took = started.elapsed();
    assert!(sent.iter().all(Result::is_ok));
    producer.shutdown(Duration::from_secs(5)).await;
    took
}

async fn consume(broker: &EmbeddedBroker, topic: &str, messages: usize) -> Duration {
    let (handled, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (count, enough) = (handled.clone(), done.clone());
    let spec = PushConsumerSpec::builder(format!("{topic}-group"))
        .subscribe(topic, Filter::any())
        .concurrency(IN_FLIGHT)
        .handler(move |_: Delivery| {
            if count.fetch_add(1, Ordering::Relaxed) + 1 == messages {
                enough.notify_one();
            }
            async {}
        });
    let started = Instant::now();
    let consumer = ours(broker).start(spec.build().unwrap()).await.unwrap();
    done.notified().await;
    let took = started.elapsed();
    consumer.shutdown(Duration::from_secs(5)).await;
    took
}

async fn raw(broker: &EmbeddedBroker) -> Raw {
    let address = format!("http://{}", broker.endpoints());
    let channel = Endpoint::new(address).unwrap().connect().await.unwrap();
    Raw::new(channel).max_decoding_message_size(8 << 20)
}

fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    for (key, value) in [
        ("x-mq-client-id", "bare"),
        ("x-mq-language", "RUST"),
        ("x-mq-client-version", "5.2.0"),
    ] {
        request.metadata_mut().insert(key, value.parse().unwrap());
    }
    request.set_timeout(Duration::from_secs(30));
    request
}

fn resource(name: &str) -> Option<pb::Resource> {
    Some(pb::Resource {
        name: name.to_owned(),
        ..Default::default()
    })
}

async fn raw_send(
    broker: &EmbeddedBroker,
    topic: &str,
    messages: usize,
    requests: usize,
    together: usize,
) -> Duration {
    let raw = raw(broker).await;
    let body = bytes::Bytes::from(vec![b'x'; BODY]);
    let started = Instant::now();
    let sends = stream::iter((0..messages).step_by(together)).map(|first| {
        let (mut raw, body) = (raw.clone(), body.clone());
        async move {
            let message = |number: usize| pb::Message {
                topic: resource(topic),
                body: body.clone(),
                system_properties: Some(pb::SystemProperties {
                    message_id: number.to_string(),
                    ..Default::default()
                }),
                ..Default::default()
            };
            let messages = (first..messages.min(first + together)).map(message);
            let messages = messages.collect();
            raw.send_message(request(pb::SendMessageRequest { messages }))
                .await
                .unwrap();
        }
    });
    sends
        .buffer_unordered(requests)
        .for_each(|()| async {})
        .await;
    started.elapsed()
}

async fn raw_consume(broker: &EmbeddedBroker, topic: &str, messages: usize) -> Duration {
    let mut raw = raw(broker).await;
    let (open, queue) = tokio::sync::mpsc::channel(1);
    let settings = pb::Settings {
        client_type: Some(pb::ClientType::PushConsumer as i32),
        pub_sub: Some(pb::settings::PubSub::Subscription(pb::Subscription {
            group: resource("bare"),
            ..Default::default()
        })),
        ..Default::default()
    };
    let command = Some(pb::telemetry_command::Command::Settings(settings));
    open.send(pb::TelemetryCommand {
        status: None,
        command,
    })
    .await
    .unwrap();
    let queue = tokio_stream::wrappers::ReceiverStream::new(queue);
    let mut telemetry = raw.telemetry(request(queue)).await.unwrap().into_inner();
    telemetry.message().await.unwrap();
    let (left, done) = (AtomicUsize::new(messages), Notify::new());
    let started = Instant::now();
    let loops = (0..LOOPS).map(|_| raw_loop(raw.clone(), topic, &left, &done));
    // The other loops may be in a long poll when the last message is acknowledged.
    tokio::select! {
        _ = futures::future::join_all(loops) => {}
        () = done.notified() => {}
    }
    started.elapsed()
}

async fn raw_loop(mut raw: Raw, topic: &str, left: &AtomicUsize, done: &Notify) {
    while left.load(Ordering::Relaxed) > 0 {
        let receive = pb::ReceiveMessageRequest {
            group: resource("bare"),
            message_queue: Some(pb::MessageQueue {
                topic: resource(topic),
                ..Default::default()
            }),
            batch_size: BATCH,
            auto_renew: true,
            long_polling_timeout: Some(prost_types::Duration {
                seconds: 5,
                nanos: 0,
            }),
            ..Default::default()
        };
        let mut stream = raw
            .receive_message(request(receive))
            .await
            .unwrap()
            .into_inner();
        let mut entries = Vec::new();
        while let Some(item) = stream.message().await.unwrap() {
            if let Some(pb::receive_message_response::Content::Message(message)) = item.content {
                let system = message.system_properties.unwrap();
                entries.push(pb::AckMessageEntry {
                    message_id: system.message_id,
                    receipt_handle: system.receipt_handle.unwrap(),
                    lite_topic: None,
                });
            }
        }
        if entries.is_empty() {
            continue;
        }
        let count = entries.len();
        let ack = pb::AckMessageRequest {
            group: resource("bare"),
            topic: resource(topic),
            entries,
        };
        raw.ack_message(request(ack)).await.unwrap();
        if left.fetch_sub(count, Ordering::Relaxed) == count {
            done.notify_one();
        }
    }
}
