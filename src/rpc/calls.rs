//! The calls of one producer or consumer.

use std::{pin::pin, sync::Arc, time::Duration};

use rocketmq_proto::v2::{self as pb, messaging_service_client::MessagingServiceClient};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status, client::Grpc, codegen::http::uri::PathAndQuery, transport::Channel};

use super::{
    codec::{ExactCodec, Outgoing},
    headers::Headers,
    pool::{ChannelPool, Slot},
    status,
};
use crate::{
    Error, ErrorKind, Result,
    model::{Endpoints, message::encoded::SendRequest},
};

/// The deadline of a telemetry stream, which shall live as long as the client (60 years, as the
/// official Java client has it).
const STREAM_DEADLINE: Duration = Duration::from_secs(21_900 * 24 * 3600);
/// Settings and answers waiting to be written to one telemetry stream.
const TELEMETRY_QUEUE: usize = 64;

/// The notice of the end.
const TERMINATION: &str = "NotifyClientTermination";

type Client = MessagingServiceClient<Channel>;

/// An open telemetry stream: where to write, what to read, the slot it runs on.
#[derive(Debug)]
pub(crate) struct TelemetryStream {
    pub(crate) outgoing: mpsc::Sender<pb::TelemetryCommand>,
    pub(crate) incoming: Streaming<pb::TelemetryCommand>,
    pub(crate) slot: Arc<Slot>,
}

/// A stream of replies, with errors of this crate.
#[derive(Debug)]
pub(crate) struct Streaming<T> {
    inner: tonic::Streaming<T>,
    call: Call,
}

impl<T> Streaming<T> {
    /// The next item, `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<T>> {
        let dead = &self.call.slot.dead;
        match dead.run_until_cancelled(self.inner.message()).await {
            Some(item) => item.map_err(|status| self.call.failed(status)),
            None => Err(self.call.gone()),
        }
    }

    /// The id of the request this stream answers.
    pub(crate) fn request_id(&self) -> &str {
        &self.call.request_id
    }
}

/// What an error has to tell of its call.
#[derive(Debug)]
struct Call {
    operation: &'static str,
    endpoints: Endpoints,
    request_id: String,
    slot: Arc<Slot>,
}

impl Call {
    fn failed(&self, status: Status) -> Error {
        self.name(status::from_grpc(status, &self.slot.note))
    }

    fn gone(&self) -> Error {
        let text = "the server misses heartbeats, its connections are made anew";
        self.name(Error::new(ErrorKind::Disconnected, text))
    }

    fn timed_out(&self, after: Duration) -> Error {
        self.name(Error::new(
            ErrorKind::Timeout,
            format!("no answer within {after:?}"),
        ))
    }

    fn name(&self, error: Error) -> Error {
        error
            .operation(self.operation)
            .endpoint(&self.endpoints)
            .request_id(&self.request_id)
    }
}

/// Calls a server as one producer or consumer: with its headers, a deadline on the wire and on
/// this side, and business codes turned into errors.
#[derive(Debug, Clone)]
pub(crate) struct Rpc {
    pool: Arc<ChannelPool>,
    headers: Arc<Headers>,
    timeout: Duration,
    decode_limit: usize,
    /// Cancelled when the member takes leave: only its notice passes then.
    closed: CancellationToken,
}

impl Rpc {
    pub(crate) fn new(
        pool: Arc<ChannelPool>,
        headers: Headers,
        timeout: Duration,
        decode_limit: usize,
    ) -> Self {
        Self {
            pool,
            headers: Arc::new(headers),
            timeout,
            decode_limit,
            closed: CancellationToken::new(),
        }
    }

    /// Lets no request start any more but the notice of the end, and gives up those under way, of
    /// which some may still wait for a connection.
    pub(crate) fn close(&self) {
        self.closed.cancel();
    }

    async fn while_open<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = T>,
    ) -> Result<T> {
        if operation == TERMINATION {
            return Ok(call.await);
        }
        let ended = self.closed.run_until_cancelled(call).await;
        ended.ok_or_else(|| closed(operation).possibly())
    }

    /// Deadline of a unary request.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn pool(&self) -> &Arc<ChannelPool> {
        &self.pool
    }

    fn client(&self, channel: &Channel) -> Client {
        Client::new(channel.clone())
            .max_decoding_message_size(self.decode_limit)
            .max_encoding_message_size(usize::MAX)
    }

    fn request<T>(
        &self,
        operation: &'static str,
        at: &Endpoints,
        message: T,
        deadline: Duration,
    ) -> Result<(Request<T>, Call)> {
        if operation != TERMINATION && self.closed.is_cancelled() {
            return Err(closed(operation));
        }
        let slot = self.pool.slot(at)?;
        let mut request = Request::new(message);
        let request_id = self.headers.write(request.metadata_mut())?;
        request.set_timeout(deadline);
        Ok((
            request,
            Call {
                operation,
                endpoints: at.clone(),
                request_id,
                slot,
            },
        ))
    }

    async fn unary<Q, R>(
        &self,
        operation: &'static str,
        path: &'static str,
        at: &Endpoints,
        message: Q,
        timeout: Duration,
    ) -> Result<R>
    where
        Q: Outgoing,
        R: prost::Message + Default + HasStatus + 'static,
    {
        let (request, call) = self.request(operation, at, message, timeout)?;
        call.slot.touch();
        let mut grpc = Grpc::new(call.slot.control.clone())
            .max_decoding_message_size(self.decode_limit)
            .max_encoding_message_size(usize::MAX);
        // Pinned where it is: each future around it would else double its size.
        let answered = pin!(async {
            let not_ready = |error| Status::from_error(Box::new(error));
            grpc.ready().await.map_err(not_ready)?;
            let path = PathAndQuery::from_static(path);
            grpc.unary(request, path, ExactCodec::<Q, R>::default())
                .await
        });
        let reply = self
            .while_open(operation, tokio::time::timeout(timeout, answered))
            .await?
            .map_err(|_| call.timed_out(timeout))?
            .map_err(|status| call.failed(status))?
            .into_inner();
        status::check(reply.status()).map_err(|error| call.name(error))?;
        Ok(reply)
    }

    /// Opens a receive; its items are checked by the caller. `deadline` spans the whole stream.
    pub(crate) async fn receive_message(
        &self,
        at: &Endpoints,
        message: pb::ReceiveMessageRequest,
        deadline: Duration,
    ) -> Result<Streaming<pb::ReceiveMessageResponse>> {
        let (request, call) = self.request("ReceiveMessage", at, message, deadline)?;
        call.slot.touch();
        let mut client = self.client(&call.slot.poll);
        let opening = pin!(client.receive_message(request));
        let opening = tokio::time::timeout(deadline, opening);
        let opening = call.slot.dead.run_until_cancelled(opening);
        let opened = self
            .while_open("ReceiveMessage", opening)
            .await?
            .ok_or_else(|| call.gone())?
            .map_err(|_| call.timed_out(deadline))?
            .map_err(|status| call.failed(status))?;
        Ok(Streaming {
            inner: opened.into_inner(),
            call,
        })
    }

    /// Opens a telemetry stream whose first command is `first`; answered within `timeout`.
    pub(crate) async fn telemetry(
        &self,
        at: &Endpoints,
        first: pb::TelemetryCommand,
        timeout: Duration,
    ) -> Result<TelemetryStream> {
        let (outgoing, queue) = mpsc::channel(TELEMETRY_QUEUE);
        // A server may send its headers only with its first answer, so the question goes first.
        outgoing
            .try_send(first)
            .map_err(|_| Error::new(ErrorKind::Full, "the telemetry queue is full"))?;
        let (request, call) =
            self.request("Telemetry", at, ReceiverStream::new(queue), STREAM_DEADLINE)?;
        let mut client = self.client(&call.slot.control);
        let opening = pin!(client.telemetry(request));
        let opening = tokio::time::timeout(timeout, opening);
        let opened = self
            .while_open("Telemetry", opening)
            .await?
            .map_err(|_| call.timed_out(timeout))?
            .map_err(|status| call.failed(status))?;
        let slot = call.slot.clone();
        let incoming = Streaming {
            inner: opened.into_inner(),
            call,
        };
        Ok(TelemetryStream {
            outgoing,
            incoming,
            slot,
        })
    }
}

fn closed(operation: &'static str) -> Error {
    Error::closed("the producer or consumer").operation(operation)
}

/// A reply with a business status.
pub(crate) trait HasStatus {
    fn status(&self) -> Option<&pb::Status>;
}

macro_rules! unary_calls {
    ($($call:ident($request:ty) -> $response:ident, $name:literal;)*) => {
        $(impl HasStatus for pb::$response {
            fn status(&self) -> Option<&pb::Status> {
                self.status.as_ref()
            }
        })*

        impl Rpc {
            $(/// Within `timeout`, and never longer than a request may take.
            pub(crate) async fn $call(
                &self,
                at: &Endpoints,
                message: $request,
                timeout: Duration,
            ) -> Result<pb::$response> {
                let timeout = timeout.min(self.timeout);
                let path = concat!("/apache.rocketmq.v2.MessagingService/", $name);
                self.unary($name, path, at, message, timeout).await
            })*
        }
    };
}

unary_calls! {
    query_route(pb::QueryRouteRequest) -> QueryRouteResponse, "QueryRoute";
    query_assignment(pb::QueryAssignmentRequest) -> QueryAssignmentResponse, "QueryAssignment";
    heartbeat(pb::HeartbeatRequest) -> HeartbeatResponse, "Heartbeat";
    send_message(SendRequest) -> SendMessageResponse, "SendMessage";
    ack_message(pb::AckMessageRequest) -> AckMessageResponse, "AckMessage";
    change_invisible_duration(pb::ChangeInvisibleDurationRequest) -> ChangeInvisibleDurationResponse,
        "ChangeInvisibleDuration";
    forward_message_to_dead_letter_queue(pb::ForwardMessageToDeadLetterQueueRequest)
        -> ForwardMessageToDeadLetterQueueResponse, "ForwardMessageToDeadLetterQueue";
    notify_client_termination(pb::NotifyClientTerminationRequest) -> NotifyClientTerminationResponse,
        "NotifyClientTermination";
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use tokio::io::DuplexStream;

    use super::*;
    use crate::{ClientConfig, Tls, rpc::Transport};

    /// Calls of a member to an address that refuses, so that what starts is unreachable.
    fn rpc() -> (Rpc, Endpoints) {
        rpc_over(|_, _| async { Err(std::io::ErrorKind::ConnectionRefused.into()) })
    }

    fn rpc_over<F>(connect: impl Fn(String, u16) -> F + Send + Sync + 'static) -> (Rpc, Endpoints)
    where
        F: Future<Output = std::io::Result<DuplexStream>> + Send + 'static,
    {
        let config = ClientConfig::builder("127.0.0.1:8081")
            .tls(Tls::Off)
            .connector(crate::Connector::new(connect))
            .build()
            .unwrap();
        let runtime = tokio::runtime::Handle::current();
        let second = Duration::from_secs(1);
        let transport = Transport::new(&config.environment, Tls::Off, second, runtime);
        let pool = Arc::new(ChannelPool::new(transport));
        let headers = Headers::new("id", "", None, &config.environment).unwrap();
        (Rpc::new(pool, headers, second, 1024), config.endpoints)
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waits_for_a_connection_does_not_outlive_the_close() {
        let (rpc, at) = rpc_over(|_, _| std::future::pending::<std::io::Result<DuplexStream>>());
        let half = Duration::from_millis(500);
        let second = Duration::from_secs(1);
        let waits = rpc.heartbeat(&at, pb::HeartbeatRequest::default(), second);
        let closing = async {
            tokio::time::sleep(half).await;
            rpc.close();
        };
        let started = tokio::time::Instant::now();
        let (waited, ()) = tokio::join!(waits, closing);
        assert_eq!(waited.unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(started.elapsed(), half);
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_close_only_the_notice_of_the_end_leaves() {
        let (rpc, at) = rpc();
        let second = Duration::from_secs(1);
        let heartbeat = async || {
            let beat = rpc.heartbeat(&at, pb::HeartbeatRequest::default(), second);
            beat.await.unwrap_err().kind()
        };
        assert_eq!(heartbeat().await, ErrorKind::Unreachable);
        rpc.clone().close();
        assert_eq!(heartbeat().await, ErrorKind::Closed);
        let poll = pb::ReceiveMessageRequest::default();
        let refused = rpc.receive_message(&at, poll, second).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Closed);
        let first = pb::TelemetryCommand::default();
        let refused = rpc.telemetry(&at, first, second).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Closed);
        let notice = pb::NotifyClientTerminationRequest::default();
        let left = rpc.notify_client_termination(&at, notice, second).await;
        assert_eq!(left.unwrap_err().kind(), ErrorKind::Unreachable);
    }
}
