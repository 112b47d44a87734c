//! The bare protocol, for what is asked of the server itself: no retries, no state.

use std::time::Duration;

use rocketmq_proto::v2 as pb;
use rocketmq_proto::v2::messaging_service_client::MessagingServiceClient;
use rocketmq_proto::v2::receive_message_response::Content;
use rocketmq_proto::v2::telemetry_command::Command;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};

use crate::support::RealServer;

#[derive(Debug)]
pub(crate) struct Raw {
    id: String,
    grpc: MessagingServiceClient<Channel>,
    endpoints: pb::Endpoints,
}

/// An open telemetry stream; the registration lasts while it is kept.
#[derive(Debug)]
pub(crate) struct Telemetry {
    _up: mpsc::Sender<pb::TelemetryCommand>,
    _down: Streaming<pb::TelemetryCommand>,
}

pub(crate) fn resource(name: &str) -> pb::Resource {
    pb::Resource {
        name: name.to_owned(),
        ..Default::default()
    }
}

impl Raw {
    pub(crate) async fn connect(server: &RealServer, id: &str) -> Self {
        let (host, port) = server.endpoints().rsplit_once(':').unwrap();
        let endpoint = Endpoint::new(format!("http://{}", server.endpoints())).unwrap();
        Self {
            id: id.to_owned(),
            grpc: MessagingServiceClient::new(endpoint.connect().await.unwrap()),
            endpoints: pb::Endpoints {
                scheme: pb::AddressScheme::IPv4.into(),
                addresses: vec![pb::Address {
                    host: host.to_owned(),
                    port: port.parse().unwrap(),
                }],
            },
        }
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let headers = request.metadata_mut();
        headers.insert("x-mq-client-id", self.id.parse().unwrap());
        headers.insert("x-mq-language", "RUST".parse().unwrap());
        headers.insert("x-mq-client-version", "5.0.7".parse().unwrap());
        request.set_timeout(Duration::from_secs(15));
        request
    }

    pub(crate) async fn route(&mut self, topic: &str) -> pb::QueryRouteResponse {
        let request = self.request(pb::QueryRouteRequest {
            topic: Some(resource(topic)),
            endpoints: Some(self.endpoints.clone()),
        });
        self.grpc.query_route(request).await.unwrap().into_inner()
    }

    /// Announces a push consumer; gives the settings as the server merged them.
    pub(crate) async fn subscribe(
        &mut self,
        topic: &str,
        group: &str,
    ) -> Result<(pb::Settings, Telemetry), Status> {
        let (up, commands) = mpsc::channel(1);
        up.send(self.settings(topic, group)).await.unwrap();
        let mut request = self.request(ReceiverStream::new(commands));
        // The stream stays open beyond the time any single answer may take.
        request.set_timeout(Duration::from_secs(600));
        let mut down = self.grpc.telemetry(request).await?.into_inner();
        match down.message().await?.and_then(|answer| answer.command) {
            Some(Command::Settings(settings)) => Ok((
                settings,
                Telemetry {
                    _up: up,
                    _down: down,
                },
            )),
            other => panic!("no settings but {other:?}"),
        }
    }

    fn settings(&self, topic: &str, group: &str) -> pb::TelemetryCommand {
        let subscription = pb::Subscription {
            group: Some(resource(group)),
            subscriptions: vec![pb::SubscriptionEntry {
                topic: Some(resource(topic)),
                expression: Some(everything()),
            }],
            ..Default::default()
        };
        pb::TelemetryCommand {
            command: Some(Command::Settings(pb::Settings {
                client_type: Some(pb::ClientType::PushConsumer.into()),
                access_point: Some(self.endpoints.clone()),
                pub_sub: Some(pb::settings::PubSub::Subscription(subscription)),
                ..Default::default()
            })),
            ..Default::default()
        }
    }

    pub(crate) async fn send(&mut self, topic: &str, id: &str) -> pb::SendMessageResponse {
        self.store(pb::Message {
            topic: Some(resource(topic)),
            body: "body".into(),
            system_properties: Some(pb::SystemProperties {
                message_id: id.to_owned(),
                message_type: pb::MessageType::Normal.into(),
                ..Default::default()
            }),
            ..Default::default()
        })
        .await
    }

    /// Sends a message as it is.
    pub(crate) async fn store(&mut self, message: pb::Message) -> pb::SendMessageResponse {
        let messages = vec![message];
        let request = self.request(pb::SendMessageRequest { messages });
        self.grpc.send_message(request).await.unwrap().into_inner()
    }

    /// One long poll of five seconds.
    pub(crate) async fn receive(&mut self, topic: &str, group: &str) -> Vec<pb::Message> {
        let request = self.request(pb::ReceiveMessageRequest {
            group: Some(resource(group)),
            message_queue: Some(pb::MessageQueue {
                topic: Some(resource(topic)),
                ..Default::default()
            }),
            filter_expression: Some(everything()),
            batch_size: 32,
            auto_renew: true,
            long_polling_timeout: Some(prost_types::Duration {
                seconds: 5,
                nanos: 0,
            }),
            ..Default::default()
        });
        let mut stream = self
            .grpc
            .receive_message(request)
            .await
            .unwrap()
            .into_inner();
        let mut messages = Vec::new();
        while let Some(part) = stream.message().await.unwrap() {
            if let Some(Content::Message(message)) = part.content {
                messages.push(message);
            }
        }
        messages
    }

    pub(crate) async fn receive_exactly(
        &mut self,
        count: usize,
        topic: &str,
        group: &str,
    ) -> Vec<pb::Message> {
        let mut messages = Vec::new();
        for _poll in 0..6 {
            messages.extend(self.receive(topic, group).await);
            if messages.len() >= count {
                break;
            }
        }
        assert_eq!(messages.len(), count, "{messages:?}");
        messages
    }

    /// Leaves the group, whereupon the server takes back what was not acknowledged.
    pub(crate) async fn terminate(&mut self, group: &str, telemetry: Telemetry) {
        let request = self.request(pb::NotifyClientTerminationRequest {
            group: Some(resource(group)),
        });
        let answer = self.grpc.notify_client_termination(request).await.unwrap();
        let status = answer.into_inner().status.unwrap();
        assert_eq!(status.code, pb::Code::Ok as i32, "{}", status.message);
        drop(telemetry);
    }

    pub(crate) async fn ack(&mut self, group: &str, message: &pb::Message) -> pb::Status {
        let properties = message.system_properties.as_ref().unwrap();
        let request = self.request(pb::AckMessageRequest {
            group: Some(resource(group)),
            topic: message.topic.clone(),
            entries: vec![pb::AckMessageEntry {
                message_id: properties.message_id.clone(),
                receipt_handle: properties.receipt_handle.clone().unwrap(),
                ..Default::default()
            }],
        });
        let answer = self.grpc.ack_message(request).await.unwrap().into_inner();
        answer.status.unwrap()
    }
}

fn everything() -> pb::FilterExpression {
    pb::FilterExpression {
        r#type: pb::FilterType::Tag.into(),
        expression: "*".to_owned(),
    }
}
