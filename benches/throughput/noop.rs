//! A server that stores nothing: canned answers, what tonic itself can do.

use bytes::Bytes;
use futures::stream;
use rocketmq_embedded::proto::{
    self as pb,
    messaging_service_server::{MessagingService, MessagingServiceServer},
    receive_message_response::Content,
    telemetry_command::Command,
};
use tokio::net::TcpListener;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Server, server::TcpIncoming},
};

use super::raw::RECEIVE;

type Answer<T> = Result<Response<T>, Status>;
type Parts<T> = stream::Iter<std::vec::IntoIter<Result<T, Status>>>;

/// Serves from now on, with bodies of this size; says where.
pub(crate) async fn start(size: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoints = listener.local_addr().unwrap().to_string();
    let service = MessagingServiceServer::new(NoOp::new(size));
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let serving = Server::builder().serve_with_incoming(service, incoming);
    tokio::spawn(async move { serving.await.unwrap() });
    endpoints
}

#[derive(Debug)]
struct NoOp {
    /// What every receive gives.
    parts: Vec<pb::ReceiveMessageResponse>,
}

impl NoOp {
    fn new(size: usize) -> Self {
        let status = Content::Status(ok().unwrap());
        let messages = (0..RECEIVE).map(|_| Content::Message(message(size)));
        let parts = std::iter::once(status).chain(messages);
        let parts = parts.map(|content| pb::ReceiveMessageResponse {
            content: Some(content),
        });
        Self {
            parts: parts.collect(),
        }
    }
}

fn ok() -> Option<pb::Status> {
    Some(pb::Status {
        code: pb::Code::Ok.into(),
        message: "OK".to_owned(),
    })
}

/// As long as one of a real server.
fn message(size: usize) -> pb::Message {
    pb::Message {
        topic: Some(pb::Resource {
            name: "topic".to_owned(),
            ..Default::default()
        }),
        body: Bytes::from(vec![b'x'; size]),
        system_properties: Some(pb::SystemProperties {
            message_id: "01".repeat(17),
            receipt_handle: Some("0 1796129743363 60000 0 0 broker-a 1 0 4242691".to_owned()),
            born_host: "127.0.0.1:50000".to_owned(),
            store_host: "127.0.0.1:10911".to_owned(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn unused<T>() -> Answer<T> {
    Err(Status::unimplemented("nothing here measures it"))
}

#[tonic::async_trait]
impl MessagingService for NoOp {
    type ReceiveMessageStream = Parts<pb::ReceiveMessageResponse>;
    type PullMessageStream = Parts<pb::PullMessageResponse>;
    type TelemetryStream = Parts<pb::TelemetryCommand>;

    async fn send_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> Answer<pb::SendMessageResponse> {
        let messages = request.into_inner().messages.into_iter();
        let entries = messages.filter_map(|message| message.system_properties);
        let entries = entries.map(|system| pb::SendResultEntry {
            status: ok(),
            message_id: system.message_id,
            ..Default::default()
        });
        Ok(Response::new(pb::SendMessageResponse {
            status: ok(),
            entries: entries.collect(),
        }))
    }

    async fn receive_message(
        &self,
        _: Request<pb::ReceiveMessageRequest>,
    ) -> Answer<Self::ReceiveMessageStream> {
        let parts: Vec<_> = self.parts.iter().cloned().map(Ok).collect();
        Ok(Response::new(stream::iter(parts)))
    }

    async fn ack_message(
        &self,
        request: Request<pb::AckMessageRequest>,
    ) -> Answer<pb::AckMessageResponse> {
        let entries = request.into_inner().entries.into_iter();
        let entries = entries.map(|entry| pb::AckMessageResultEntry {
            message_id: entry.message_id,
            receipt_handle: entry.receipt_handle,
            status: ok(),
        });
        Ok(Response::new(pb::AckMessageResponse {
            status: ok(),
            entries: entries.collect(),
        }))
    }

    async fn telemetry(
        &self,
        request: Request<Streaming<pb::TelemetryCommand>>,
    ) -> Answer<Self::TelemetryStream> {
        let command = request.into_inner().message().await?;
        let settings = command.and_then(|command| command.command);
        assert!(matches!(settings, Some(Command::Settings(_))));
        let answer = pb::TelemetryCommand {
            status: ok(),
            command: settings,
        };
        Ok(Response::new(stream::iter(vec![Ok(answer)])))
    }

    async fn query_route(
        &self,
        _: Request<pb::QueryRouteRequest>,
    ) -> Answer<pb::QueryRouteResponse> {
        unused()
    }

    async fn heartbeat(&self, _: Request<pb::HeartbeatRequest>) -> Answer<pb::HeartbeatResponse> {
        unused()
    }

    async fn query_assignment(
        &self,
        _: Request<pb::QueryAssignmentRequest>,
    ) -> Answer<pb::QueryAssignmentResponse> {
        unused()
    }

    async fn forward_message_to_dead_letter_queue(
        &self,
        _: Request<pb::ForwardMessageToDeadLetterQueueRequest>,
    ) -> Answer<pb::ForwardMessageToDeadLetterQueueResponse> {
        unused()
    }

    async fn pull_message(
        &self,
        _: Request<pb::PullMessageRequest>,
    ) -> Answer<Self::PullMessageStream> {
        unused()
    }

    async fn update_offset(
        &self,
        _: Request<pb::UpdateOffsetRequest>,
    ) -> Answer<pb::UpdateOffsetResponse> {
        unused()
    }

    async fn get_offset(&self, _: Request<pb::GetOffsetRequest>) -> Answer<pb::GetOffsetResponse> {
        unused()
    }

    async fn query_offset(
        &self,
        _: Request<pb::QueryOffsetRequest>,
    ) -> Answer<pb::QueryOffsetResponse> {
        unused()
    }

    async fn end_transaction(
        &self,
        _: Request<pb::EndTransactionRequest>,
    ) -> Answer<pb::EndTransactionResponse> {
        unused()
    }

    async fn notify_client_termination(
        &self,
        _: Request<pb::NotifyClientTerminationRequest>,
    ) -> Answer<pb::NotifyClientTerminationResponse> {
        unused()
    }

    async fn change_invisible_duration(
        &self,
        _: Request<pb::ChangeInvisibleDurationRequest>,
    ) -> Answer<pb::ChangeInvisibleDurationResponse> {
        unused()
    }

    async fn recall_message(
        &self,
        _: Request<pb::RecallMessageRequest>,
    ) -> Answer<pb::RecallMessageResponse> {
        unused()
    }

    async fn sync_lite_subscription(
        &self,
        _: Request<pb::SyncLiteSubscriptionRequest>,
    ) -> Answer<pb::SyncLiteSubscriptionResponse> {
        unused()
    }
}
