//! A bare client: the generated one in a loop, no retries, no routes, no checks.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use rocketmq_embedded::proto::{self as pb, messaging_service_client::MessagingServiceClient};
use tokio::sync::Notify;
use tonic::{
    Request,
    transport::{Channel, Endpoint},
};

use super::IN_FLIGHT;

/// Receives at once.
const LOOPS: usize = 4;
/// Messages of a receive.
pub(crate) const RECEIVE: i32 = 32;

type Raw = MessagingServiceClient<Channel>;

async fn connect(endpoints: &str) -> Raw {
    let address = format!("http://{endpoints}");
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

/// Sends one by one, [`IN_FLIGHT`] at a time.
pub(crate) async fn send(endpoints: &str, topic: &str, messages: usize, size: usize) -> Duration {
    let raw = connect(endpoints).await;
    let body = Bytes::from(vec![b'x'; size]);
    let started = Instant::now();
    let sends = stream::iter(0..messages).map(|number| {
        let (mut raw, body) = (raw.clone(), body.clone());
        async move {
            let message = pb::Message {
                topic: resource(topic),
                body,
                system_properties: Some(pb::SystemProperties {
                    message_id: number.to_string(),
                    ..Default::default()
                }),
                ..Default::default()
            };
            let messages = vec![message];
            raw.send_message(request(pb::SendMessageRequest { messages }))
                .await
                .unwrap();
        }
    });
    sends
        .buffer_unordered(IN_FLIGHT)
        .for_each(|()| async {})
        .await;
    started.elapsed()
}

/// Receives and acknowledges in [`LOOPS`] loops.
pub(crate) async fn consume(endpoints: &str, topic: &str, messages: usize) -> Duration {
    let mut raw = connect(endpoints).await;
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
    let progress = Progress {
        wanted: messages,
        acked: AtomicUsize::new(0),
        done: Notify::new(),
    };
    let started = Instant::now();
    let loops = (0..LOOPS).map(|_| receive_loop(raw.clone(), topic, &progress));
    // The other loops may be in a long poll when the last message is acknowledged.
    tokio::select! {
        _ = futures::future::join_all(loops) => {}
        () = progress.done.notified() => {}
    }
    started.elapsed()
}

/// What the loops share; a server without an end gives more than is wanted.
#[derive(Debug)]
struct Progress {
    wanted: usize,
    acked: AtomicUsize,
    done: Notify,
}

async fn receive_loop(mut raw: Raw, topic: &str, progress: &Progress) {
    while progress.acked.load(Ordering::Relaxed) < progress.wanted {
        let receive = pb::ReceiveMessageRequest {
            group: resource("bare"),
            message_queue: Some(pb::MessageQueue {
                topic: resource(topic),
                ..Default::default()
            }),
            batch_size: RECEIVE,
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
        if progress.acked.fetch_add(count, Ordering::Relaxed) + count >= progress.wanted {
            progress.done.notify_one();
        }
    }
}
