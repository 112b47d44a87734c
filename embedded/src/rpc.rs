//! The methods of the service, their requests and replies.

use rocketmq_proto::v2 as pb;

/// A request that can be recorded and matched by faults.
pub(crate) trait Ask: Send + 'static {
    const RPC: Rpc;
    fn topic(&self) -> Option<&str>;
    fn group(&self) -> Option<&str>;
    fn body(&self) -> RequestBody;
}

/// A reply with a business status.
pub(crate) trait Answer: Sized + Send + 'static {
    fn refused(status: pb::Status) -> Self;
    fn status(&self) -> Option<&pb::Status>;
    fn reply(&mut self) -> Reply<'_>;
}

macro_rules! rpcs {
    ($($rpc:ident $request:ident $reply:ident;)*) => {
        /// A method of the service.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "named after the methods of the protocol")]
        #[non_exhaustive]
        pub enum Rpc { $($rpc,)* }

        /// What was asked. Bodies of sent messages longer than 64 KiB are left out.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "named after the methods of the protocol")]
        #[allow(clippy::large_enum_variant, reason = "lives in calls, which are on the heap")]
        #[non_exhaustive]
        pub enum RequestBody { $($rpc(pb::$request),)* }

        /// What is about to be answered, for a fault to change. A [`Rpc::ReceiveMessage`] passes
        /// here once for every item of its stream.
        #[derive(Debug)]
        #[allow(missing_docs, reason = "named after the methods of the protocol")]
        #[non_exhaustive]
        pub enum Reply<'a> { $($rpc(&'a mut pb::$reply),)* }
    };
}

rpcs! {
    QueryRoute QueryRouteRequest QueryRouteResponse;
    Heartbeat HeartbeatRequest HeartbeatResponse;
    SendMessage SendMessageRequest SendMessageResponse;
    QueryAssignment QueryAssignmentRequest QueryAssignmentResponse;
    ReceiveMessage ReceiveMessageRequest ReceiveMessageResponse;
    AckMessage AckMessageRequest AckMessageResponse;
    ForwardMessageToDeadLetterQueue ForwardMessageToDeadLetterQueueRequest ForwardMessageToDeadLetterQueueResponse;
    PullMessage PullMessageRequest PullMessageResponse;
    UpdateOffset UpdateOffsetRequest UpdateOffsetResponse;
    GetOffset GetOffsetRequest GetOffsetResponse;
    QueryOffset QueryOffsetRequest QueryOffsetResponse;
    EndTransaction EndTransactionRequest EndTransactionResponse;
    Telemetry TelemetryCommand TelemetryCommand;
    NotifyClientTermination NotifyClientTerminationRequest NotifyClientTerminationResponse;
    ChangeInvisibleDuration ChangeInvisibleDurationRequest ChangeInvisibleDurationResponse;
    RecallMessage RecallMessageRequest RecallMessageResponse;
    SyncLiteSubscription SyncLiteSubscriptionRequest SyncLiteSubscriptionResponse;
}

fn name(resource: Option<&pb::Resource>) -> Option<&str> {
    resource.map(|resource| resource.name.as_str())
}

fn queue_topic(queue: Option<&pb::MessageQueue>) -> Option<&str> {
    queue.and_then(|queue| name(queue.topic.as_ref()))
}

macro_rules! asks {
    ($($rpc:ident $request:ident, $this:ident => $topic:expr, $group:expr;)*) => {$(
        impl Ask for pb::$request {
            const RPC: Rpc = Rpc::$rpc;
            fn topic(&self) -> Option<&str> { let $this = self; let _ = $this; $topic }
            fn group(&self) -> Option<&str> { let $this = self; let _ = $this; $group }
            fn body(&self) -> RequestBody { RequestBody::$rpc(self.clone()) }
        }
    )*};
}

asks! {
    QueryRoute QueryRouteRequest, r => name(r.topic.as_ref()), None;
    Heartbeat HeartbeatRequest, r => None, name(r.group.as_ref());
    QueryAssignment QueryAssignmentRequest, r => name(r.topic.as_ref()), name(r.group.as_ref());
    ReceiveMessage ReceiveMessageRequest, r => queue_topic(r.message_queue.as_ref()), name(r.group.as_ref());
    AckMessage AckMessageRequest, r => name(r.topic.as_ref()), name(r.group.as_ref());
    ForwardMessageToDeadLetterQueue ForwardMessageToDeadLetterQueueRequest, r => name(r.topic.as_ref()), name(r.group.as_ref());
    PullMessage PullMessageRequest, r => queue_topic(r.message_queue.as_ref()), name(r.group.as_ref());
    UpdateOffset UpdateOffsetRequest, r => queue_topic(r.message_queue.as_ref()), name(r.group.as_ref());
    GetOffset GetOffsetRequest, r => queue_topic(r.message_queue.as_ref()), name(r.group.as_ref());
    QueryOffset QueryOffsetRequest, r => queue_topic(r.message_queue.as_ref()), None;
    EndTransaction EndTransactionRequest, r => name(r.topic.as_ref()), None;
    NotifyClientTermination NotifyClientTerminationRequest, r => None, name(r.group.as_ref());
    ChangeInvisibleDuration ChangeInvisibleDurationRequest, r => name(r.topic.as_ref()), name(r.group.as_ref());
    RecallMessage RecallMessageRequest, r => name(r.topic.as_ref()), None;
    SyncLiteSubscription SyncLiteSubscriptionRequest, r => name(r.topic.as_ref()), name(r.group.as_ref());
}

/// Longer bodies of sent messages are not kept by the record.
const RECORDED_BODY: usize = 64 * 1024;

impl Ask for pb::SendMessageRequest {
    const RPC: Rpc = Rpc::SendMessage;

    fn topic(&self) -> Option<&str> {
        self.messages
            .first()
            .and_then(|message| name(message.topic.as_ref()))
    }

    fn group(&self) -> Option<&str> {
        None
    }

    fn body(&self) -> RequestBody {
        let mut request = self.clone();
        for message in &mut request.messages {
            if message.body.len() > RECORDED_BODY {
                message.body = bytes::Bytes::new();
            }
        }
        RequestBody::SendMessage(request)
    }
}

impl Ask for pb::TelemetryCommand {
    const RPC: Rpc = Rpc::Telemetry;

    fn topic(&self) -> Option<&str> {
        None
    }

    fn group(&self) -> Option<&str> {
        use pb::{settings::PubSub, telemetry_command::Command};
        match self.command.as_ref()? {
            Command::Settings(settings) => match settings.pub_sub.as_ref()? {
                PubSub::Subscription(subscription) => name(subscription.group.as_ref()),
                PubSub::Publishing(_) => None,
            },
            _ => None,
        }
    }

    fn body(&self) -> RequestBody {
        RequestBody::Telemetry(self.clone())
    }
}

macro_rules! answers {
    ($($rpc:ident $reply:ident;)*) => {$(
        impl Answer for pb::$reply {
            #[allow(clippy::needless_update, reason = "some replies are only a status")]
            fn refused(status: pb::Status) -> Self {
                Self { status: Some(status), ..Self::default() }
            }
            fn status(&self) -> Option<&pb::Status> { self.status.as_ref() }
            fn reply(&mut self) -> Reply<'_> { Reply::$rpc(self) }
        }
    )*};
}

answers! {
    QueryRoute QueryRouteResponse;
    Heartbeat HeartbeatResponse;
    SendMessage SendMessageResponse;
    QueryAssignment QueryAssignmentResponse;
    AckMessage AckMessageResponse;
    ForwardMessageToDeadLetterQueue ForwardMessageToDeadLetterQueueResponse;
    UpdateOffset UpdateOffsetResponse;
    GetOffset GetOffsetResponse;
    QueryOffset QueryOffsetResponse;
    EndTransaction EndTransactionResponse;
    Telemetry TelemetryCommand;
    NotifyClientTermination NotifyClientTerminationResponse;
    ChangeInvisibleDuration ChangeInvisibleDurationResponse;
    RecallMessage RecallMessageResponse;
    SyncLiteSubscription SyncLiteSubscriptionResponse;
}

/// A business status; an OK one says its code's name.
pub(crate) fn status(code: pb::Code, message: impl Into<String>) -> pb::Status {
    pb::Status {
        code: code.into(),
        message: message.into(),
    }
}

pub(crate) fn ok() -> pb::Status {
    status(pb::Code::Ok, "OK")
}

/// A check's outcome: what to refuse with.
pub(crate) type Checked<T> = Result<T, pb::Status>;

pub(crate) fn refuse<T>(code: pb::Code, message: impl Into<String>) -> Checked<T> {
    Err(status(code, message))
}
