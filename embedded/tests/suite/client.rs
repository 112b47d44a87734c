//! A bare client of the protocol: no retries, no state.

use std::time::Duration;

use hyper_util::rt::TokioIo;
use rocketmq_embedded::EmbeddedBroker;
use rocketmq_embedded::proto as pb;
use rocketmq_embedded::proto::messaging_service_client::MessagingServiceClient;
use rocketmq_embedded::proto::receive_message_response::Content;
use rocketmq_embedded::proto::telemetry_command::Command;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Request, Status, Streaming};

#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) grpc: MessagingServiceClient<Channel>,
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// An open telemetry stream.
pub(crate) struct Telemetry {
    pub(crate) up: mpsc::Sender<pb::TelemetryCommand>,
    pub(crate) down: Streaming<pb::TelemetryCommand>,
}

/// What a receive stream brought, in order.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) contents: Vec<Content>,
    pub(crate) error: Option<Status>,
}

impl Received {
    pub(crate) fn status(&self) -> pb::Status {
        match self.contents.first() {
            Some(Content::Status(status)) => status.clone(),
            other => panic!("no status first but {other:?}, {:?}", self.error),
        }
    }

    pub(crate) fn messages(&self) -> Vec<pb::Message> {
        let message = |content: &Content| match content {
            Content::Message(message) => Some(message.clone()),
            _ => None,
        };
        self.contents.iter().filter_map(message).collect()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.messages()
            .iter()
            .map(|m| properties(m).message_id)
            .collect()
    }

    pub(crate) fn only(&self) -> pb::Message {
        let messages = self.messages();
        assert_eq!(messages.len(), 1, "{self:?}");
        messages[0].clone()
    }
}

pub(crate) fn properties(message: &pb::Message) -> pb::SystemProperties {
    message.system_properties.clone().unwrap()
}

pub(crate) fn handle(message: &pb::Message) -> String {
    properties(message).receipt_handle.unwrap()
}

pub(crate) fn attempt(message: &pb::Message) -> i32 {
    properties(message).delivery_attempt.unwrap()
}

pub(crate) fn resource(name: &str) -> Option<pb::Resource> {
    Some(pb::Resource {
        name: name.to_owned(),
        ..pb::Resource::default()
    })
}

pub(crate) fn seconds(seconds: i64) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos: 0 }
}

pub(crate) fn message(topic: &str, id: &str) -> pb::Message {
    pb::Message {
        topic: resource(topic),
        system_properties: Some(pb::SystemProperties {
            message_id: id.to_owned(),
            message_type: pb::MessageType::Normal.into(),
            body_encoding: pb::Encoding::Identity.into(),
            ..pb::SystemProperties::default()
        }),
        body: format!("body of {id}").into_bytes().into(),
        ..pb::Message::default()
    }
}

pub(crate) fn tagged(topic: &str, id: &str, tag: &str) -> pb::Message {
    with(message(topic, id), |properties| {
        properties.tag = Some(tag.to_owned())
    })
}

pub(crate) fn with(
    mut message: pb::Message,
    change: impl FnOnce(&mut pb::SystemProperties),
) -> pb::Message {
    change(message.system_properties.as_mut().unwrap());
    message
}

pub(crate) fn grouped(topic: &str, id: &str, group: &str) -> pb::Message {
    with(message(topic, id), |properties| {
        properties.message_group = Some(group.to_owned());
    })
}

pub(crate) fn push_settings(group: &str, topic: &str) -> pb::Settings {
    pb::Settings {
        client_type: Some(pb::ClientType::PushConsumer.into()),
        request_timeout: Some(seconds(3)),
        pub_sub: Some(pb::settings::PubSub::Subscription(pb::Subscription {
            group: resource(group),
            subscriptions: vec![pb::SubscriptionEntry {
                topic: resource(topic),
                expression: Some(tags("*")),
            }],
            ..pb::Subscription::default()
        })),
        ..pb::Settings::default()
    }
}

pub(crate) fn producer_settings(topic: &str) -> pb::Settings {
    pb::Settings {
        client_type: Some(pb::ClientType::Producer.into()),
        pub_sub: Some(pb::settings::PubSub::Publishing(pb::Publishing {
            topics: resource(topic).into_iter().collect(),
            ..pb::Publishing::default()
        })),
        ..pb::Settings::default()
    }
}

pub(crate) fn command(settings: pb::Settings) -> pb::TelemetryCommand {
    pb::TelemetryCommand {
        status: None,
        command: Some(Command::Settings(settings)),
    }
}

pub(crate) fn tags(expression: &str) -> pb::FilterExpression {
    pb::FilterExpression {
        r#type: pb::FilterType::Tag.into(),
        expression: expression.to_owned(),
    }
}

pub(crate) fn receive(group: &str, topic: &str) -> pb::ReceiveMessageRequest {
    pb::ReceiveMessageRequest {
        group: resource(group),
        message_queue: Some(pb::MessageQueue {
            topic: resource(topic),
            ..pb::MessageQueue::default()
        }),
        filter_expression: Some(tags("*")),
        batch_size: 32,
        invisible_duration: Some(seconds(10)),
        long_polling_timeout: Some(seconds(5)),
        ..pb::ReceiveMessageRequest::default()
    }
}

impl Client {
    /// A client of node 0 of an in-memory broker.
    pub(crate) fn of(broker: &EmbeddedBroker, id: &str) -> Self {
        Self::at(broker, 0, id)
    }

    pub(crate) fn at(broker: &EmbeddedBroker, node: usize, id: &str) -> Self {
        let connector = broker.connector();
        let endpoint =
            Endpoint::try_from(format!("http://{}", broker.node_endpoints(node))).unwrap();
        let channel = endpoint.connect_with_connector_lazy(tower::service_fn(move |uri: Uri| {
            let pipe = connector.connect(uri.host().unwrap(), uri.port_u16().unwrap());
            std::future::ready(pipe.map(TokioIo::new))
        }));
        Self::over(channel, id)
    }

    pub(crate) fn over(channel: Channel, id: &str) -> Self {
        Self {
            id: id.to_owned(),
            grpc: MessagingServiceClient::new(channel),
            headers: Vec::new(),
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn request<T>(&self, body: T) -> Request<T> {
        let mut request = Request::new(body);
        let defaults = [
            ("x-mq-client-id", self.id.clone()),
            ("x-mq-language", "RUST".to_owned()),
            ("x-mq-client-version", "5.1.0".to_owned()),
        ];
        for (name, value) in defaults.iter().chain(&self.headers) {
            if !value.is_empty() {
                request.metadata_mut().insert(*name, value.parse().unwrap());
            } else {
                request.metadata_mut().remove(*name);
            }
        }
        request
    }

    pub(crate) async fn telemetry(&self, settings: pb::Settings) -> Result<Telemetry, Status> {
        let (up, commands) = mpsc::channel(8);
        up.send(command(settings)).await.unwrap();
        let request = self.request(ReceiverStream::new(commands));
        let down = self.grpc.clone().telemetry(request).await?.into_inner();
        Ok(Telemetry { up, down })
    }

    /// Opens a telemetry stream and waits until the settings are answered.
    pub(crate) async fn settle(&self, settings: pb::Settings) -> (Telemetry, pb::Settings) {
        let mut telemetry = self.telemetry(settings).await.unwrap();
        let reply = telemetry.down.message().await.unwrap().unwrap();
        assert_eq!(reply.status.unwrap().code(), pb::Code::Ok);
        match reply.command {
            Some(Command::Settings(settings)) => (telemetry, settings),
            other => panic!("no settings but {other:?}"),
        }
    }

    pub(crate) async fn subscribe(&self, group: &str, topic: &str) -> Telemetry {
        self.settle(push_settings(group, topic)).await.0
    }

    pub(crate) async fn send(&self, messages: Vec<pb::Message>) -> pb::SendMessageResponse {
        let request = self.request(pb::SendMessageRequest { messages });
        self.grpc
            .clone()
            .send_message(request)
            .await
            .unwrap()
            .into_inner()
    }

    pub(crate) async fn send_ids(&self, topic: &str, ids: &[&str]) {
        for id in ids {
            let sent = self.send(vec![message(topic, id)]).await;
            assert_eq!(sent.status.unwrap().code(), pb::Code::Ok);
        }
    }

    pub(crate) async fn receive(&self, request: pb::ReceiveMessageRequest) -> Received {
        let mut request = self.request(request);
        request.set_timeout(Duration::from_secs(25));
        self.receive_raw(request).await
    }

    pub(crate) async fn receive_raw(
        &self,
        request: Request<pb::ReceiveMessageRequest>,
    ) -> Received {
        let mut received = Received::default();
        let mut stream = match self.grpc.clone().receive_message(request).await {
            Ok(response) => response.into_inner(),
            Err(status) => {
                received.error = Some(status);
                return received;
            }
        };
        loop {
            match stream.message().await {
                Ok(Some(item)) => received.contents.extend(item.content),
                Ok(None) => return received,
                Err(status) => {
                    received.error = Some(status);
                    return received;
                }
            }
        }
    }

    pub(crate) async fn ack(
        &self,
        group: &str,
        topic: &str,
        handles: &[(&str, &str)],
    ) -> pb::AckMessageResponse {
        let entry = |(id, handle): &(&str, &str)| pb::AckMessageEntry {
            message_id: (*id).to_owned(),
            receipt_handle: (*handle).to_owned(),
            lite_topic: None,
        };
        let request = self.request(pb::AckMessageRequest {
            group: resource(group),
            topic: resource(topic),
            entries: handles.iter().map(entry).collect(),
        });
        self.grpc
            .clone()
            .ack_message(request)
            .await
            .unwrap()
            .into_inner()
    }

    pub(crate) async fn ack_message(&self, group: &str, message: &pb::Message) -> pb::Code {
        let topic = message.topic.clone().unwrap().name;
        let id = properties(message).message_id;
        let reply = self.ack(group, &topic, &[(&id, &handle(message))]).await;
        reply.status.unwrap().code()
    }

    pub(crate) async fn change(
        &self,
        group: &str,
        message: &pb::Message,
        handle: &str,
        invisible: i64,
        suspend: bool,
    ) -> pb::ChangeInvisibleDurationResponse {
        let request = self.request(pb::ChangeInvisibleDurationRequest {
            group: resource(group),
            topic: message.topic.clone(),
            receipt_handle: handle.to_owned(),
            invisible_duration: Some(seconds(invisible)),
            message_id: properties(message).message_id,
            lite_topic: None,
            suspend: Some(suspend),
        });
        let reply = self.grpc.clone().change_invisible_duration(request).await;
        reply.unwrap().into_inner()
    }

    pub(crate) async fn forward(
        &self,
        group: &str,
        message: &pb::Message,
        handle: &str,
    ) -> pb::Status {
        let request = self.request(pb::ForwardMessageToDeadLetterQueueRequest {
            group: resource(group),
            topic: message.topic.clone(),
            receipt_handle: handle.to_owned(),
            message_id: properties(message).message_id,
            ..pb::ForwardMessageToDeadLetterQueueRequest::default()
        });
        let reply = self
            .grpc
            .clone()
            .forward_message_to_dead_letter_queue(request)
            .await;
        reply.unwrap().into_inner().status.unwrap()
    }

    pub(crate) async fn heartbeat(&self, group: Option<&str>) -> pb::Status {
        let request = self.request(pb::HeartbeatRequest {
            group: group.and_then(resource),
            client_type: pb::ClientType::PushConsumer.into(),
        });
        let reply = self.grpc.clone().heartbeat(request).await.unwrap();
        reply.into_inner().status.unwrap()
    }

    pub(crate) async fn terminate(&self, group: Option<&str>) -> pb::Status {
        let request = self.request(pb::NotifyClientTerminationRequest {
            group: group.and_then(resource),
        });
        let reply = self
            .grpc
            .clone()
            .notify_client_termination(request)
            .await
            .unwrap();
        reply.into_inner().status.unwrap()
    }

    pub(crate) async fn route(&self, topic: &str) -> Result<pb::QueryRouteResponse, Status> {
        let request = self.request(pb::QueryRouteRequest {
            topic: resource(topic),
            endpoints: None,
        });
        Ok(self.grpc.clone().query_route(request).await?.into_inner())
    }

    pub(crate) async fn assignment(&self, topic: &str, group: &str) -> pb::QueryAssignmentResponse {
        let request = self.request(pb::QueryAssignmentRequest {
            topic: resource(topic),
            group: resource(group),
            endpoints: None,
        });
        self.grpc
            .clone()
            .query_assignment(request)
            .await
            .unwrap()
            .into_inner()
    }
}
