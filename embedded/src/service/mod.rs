//! The service: one [`Port`] per connection.

mod ack;
mod assignment;
mod change;
mod client;
mod forward;
mod limits;
mod pull;
mod recall;
mod receive;
mod route;
mod send;
mod telemetry;
mod ticket;
mod transaction;

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use rocketmq_proto::v2 as pb;
use rocketmq_proto::v2::messaging_service_server::MessagingService;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::cluster::Cluster;
use crate::node::Node;
use crate::rpc::{Answer, Ask, Checked};
use ticket::Caller;
pub(crate) use ticket::Ticket;

/// A node as one connection sees it.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) node: Arc<Node>,
    pub(crate) connection: CancellationToken,
    pub(crate) number: u64,
}

type Reply<T> = Result<Response<T>, Status>;
type Items<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A name, or nothing.
fn name(resource: Option<&pb::Resource>) -> &str {
    resource.map_or("", |resource| resource.name.as_str())
}

impl Port {
    /// Records a call, lets faults at it, checks who calls, and does its work.
    async fn unary<Q: Ask, A: Answer>(
        &self,
        request: Request<Q>,
        work: impl FnOnce(&Self, &Caller, Q) -> Checked<A> + Send,
    ) -> Reply<A> {
        let ticket = self.arrive(&request);
        ticket.delay().await;
        let request = request.into_inner();
        let answer = if ticket.works() {
            let checked = self
                .admit(&ticket)
                .and_then(|()| work(self, &ticket.caller, request));
            let mut answer = checked.unwrap_or_else(A::refused);
            ticket.mutate(answer.reply());
            ticket.delay_reply().await;
            Some(answer)
        } else {
            None
        };
        let answer = match ticket.instead().await? {
            Some(refusal) => A::refused(refusal),
            None => answer.ok_or_else(|| Status::internal("no answer"))?,
        };
        ticket.answered(answer.status());
        Ok(Response::new(answer))
    }

    /// A method that the real proxy does not serve.
    fn unimplemented<Q: Ask, T>(&self, request: &Request<Q>) -> Reply<T> {
        let ticket = self.arrive(request);
        let status = Status::unimplemented(format!(
            "Method apache.rocketmq.v2.MessagingService/{:?} is unimplemented",
            Q::RPC
        ));
        ticket.failed(&status);
        Err(status)
    }
}

#[tonic::async_trait]
impl MessagingService for Port {
    type ReceiveMessageStream = Items<pb::ReceiveMessageResponse>;
    type PullMessageStream = Items<pb::PullMessageResponse>;
    type TelemetryStream = Items<pb::TelemetryCommand>;

    async fn query_route(
        &self,
        request: Request<pb::QueryRouteRequest>,
    ) -> Reply<pb::QueryRouteResponse> {
        self.unary(request, Self::route).await
    }

    async fn heartbeat(
        &self,
        request: Request<pb::HeartbeatRequest>,
    ) -> Reply<pb::HeartbeatResponse> {
        self.unary(request, Self::beat).await
    }

    async fn send_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> Reply<pb::SendMessageResponse> {
        self.unary(request, Self::send).await
    }

    async fn query_assignment(
        &self,
        request: Request<pb::QueryAssignmentRequest>,
    ) -> Reply<pb::QueryAssignmentResponse> {
        self.unary(request, Self::assignment).await
    }

    async fn receive_message(
        &self,
        request: Request<pb::ReceiveMessageRequest>,
    ) -> Reply<Self::ReceiveMessageStream> {
        self.receive(request).await
    }

    async fn ack_message(
        &self,
        request: Request<pb::AckMessageRequest>,
    ) -> Reply<pb::AckMessageResponse> {
        self.unary(request, Self::ack).await
    }

    async fn forward_message_to_dead_letter_queue(
        &self,
        request: Request<pb::ForwardMessageToDeadLetterQueueRequest>,
    ) -> Reply<pb::ForwardMessageToDeadLetterQueueResponse> {
        self.unary(request, Self::forward).await
    }

    async fn pull_message(
        &self,
        request: Request<pb::PullMessageRequest>,
    ) -> Reply<Self::PullMessageStream> {
        if !self.cluster.options.pull {
            return self.unimplemented(&request);
        }
        self.pull(request).await
    }

    async fn update_offset(
        &self,
        request: Request<pb::UpdateOffsetRequest>,
    ) -> Reply<pb::UpdateOffsetResponse> {
        if !self.cluster.options.pull {
            return self.unimplemented(&request);
        }
        self.unary(request, |port, _, request| port.update_offset_of(&request))
            .await
    }

    async fn get_offset(
        &self,
        request: Request<pb::GetOffsetRequest>,
    ) -> Reply<pb::GetOffsetResponse> {
        if !self.cluster.options.pull {
            return self.unimplemented(&request);
        }
        self.unary(request, |port, _, request| port.offset_of(&request))
            .await
    }

    async fn query_offset(
        &self,
        request: Request<pb::QueryOffsetRequest>,
    ) -> Reply<pb::QueryOffsetResponse> {
        if !self.cluster.options.pull {
            return self.unimplemented(&request);
        }
        self.unary(request, |port, _, request| port.query_offset_of(&request))
            .await
    }

    async fn end_transaction(
        &self,
        request: Request<pb::EndTransactionRequest>,
    ) -> Reply<pb::EndTransactionResponse> {
        self.unary(request, Self::end).await
    }

    async fn telemetry(
        &self,
        request: Request<Streaming<pb::TelemetryCommand>>,
    ) -> Reply<Self::TelemetryStream> {
        Ok(Response::new(self.observe(request)))
    }

    async fn notify_client_termination(
        &self,
        request: Request<pb::NotifyClientTerminationRequest>,
    ) -> Reply<pb::NotifyClientTerminationResponse> {
        self.unary(request, Self::terminate).await
    }

    async fn change_invisible_duration(
        &self,
        request: Request<pb::ChangeInvisibleDurationRequest>,
    ) -> Reply<pb::ChangeInvisibleDurationResponse> {
        self.unary(request, Self::change).await
    }

    async fn recall_message(
        &self,
        request: Request<pb::RecallMessageRequest>,
    ) -> Reply<pb::RecallMessageResponse> {
        self.unary(request, Self::recall).await
    }

    async fn sync_lite_subscription(
        &self,
        request: Request<pb::SyncLiteSubscriptionRequest>,
    ) -> Reply<pb::SyncLiteSubscriptionResponse> {
        self.unimplemented(&request)
    }
}
