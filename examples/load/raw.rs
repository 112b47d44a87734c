//! A bare client: a connection, its headers and a session with one server, nothing else.

use std::time::Duration;

use rocketmq_proto::v2::{
    self as pb, messaging_service_client::MessagingServiceClient, settings::PubSub,
    telemetry_command::Command,
};
use tokio::{sync::mpsc, task::AbortHandle, time::interval};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Request, Streaming,
    metadata::AsciiMetadataValue,
    transport::{Channel, Endpoint},
};

use crate::{Failure, options::Options};

/// For one answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// For the telemetry stream, which has to outlive the run.
const STREAM_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
const HEARTBEAT: Duration = Duration::from_secs(10);

pub(crate) type Grpc = MessagingServiceClient<Channel>;

/// A connection whose settings the server has answered; heartbeats go on while it is kept.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) grpc: Grpc,
    heartbeats: AbortHandle,
    _up: mpsc::Sender<pb::TelemetryCommand>,
    _down: Streaming<pb::TelemetryCommand>,
}

impl Raw {
    pub(crate) async fn connect(
        options: &Options,
        client_type: pb::ClientType,
        pub_sub: PubSub,
    ) -> Result<Self, Failure> {
        let endpoint = Endpoint::new(format!("http://{}", options.endpoints))?;
        // The largest body is 4 MiB, and a message is more than its body.
        let mut grpc = Grpc::new(endpoint.connect().await?).max_decoding_message_size(8 << 20);
        let (up, commands) = mpsc::channel(1);
        let settings = pb::Settings {
            client_type: Some(client_type.into()),
            access_point: Some(access_point(&options.endpoints)?),
            pub_sub: Some(pub_sub),
            ..Default::default()
        };
        up.send(pb::TelemetryCommand {
            command: Some(Command::Settings(settings)),
            ..Default::default()
        })
        .await?;
        let stream = request(ReceiverStream::new(commands), STREAM_TIMEOUT);
        let mut down = grpc.telemetry(stream).await?.into_inner();
        let answer = down.message().await?.ok_or("no answer to the settings")?;
        let Some(Command::Settings(_)) = answer.command else {
            return Err(format!("no settings but {answer:?}").into());
        };
        let heartbeats = tokio::spawn(heartbeats(
            grpc.clone(),
            pb::HeartbeatRequest {
                client_type: client_type.into(),
                group: (!options.group.is_empty()).then(|| resource(&options.group)),
            },
        ));
        Ok(Self {
            grpc,
            heartbeats: heartbeats.abort_handle(),
            _up: up,
            _down: down,
        })
    }

    /// Takes leave: a server gives what a consumer has not acknowledged to others at once.
    pub(crate) async fn leave(mut self, options: &Options) -> Result<(), Failure> {
        let termination = pb::NotifyClientTerminationRequest {
            group: (!options.group.is_empty()).then(|| resource(&options.group)),
        };
        let termination = request(termination, TIMEOUT);
        self.grpc.notify_client_termination(termination).await?;
        Ok(())
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.heartbeats.abort();
    }
}

/// Servers forget a client that is silent for two minutes.
async fn heartbeats(mut grpc: Grpc, heartbeat: pb::HeartbeatRequest) {
    let mut beats = interval(HEARTBEAT);
    loop {
        beats.tick().await;
        if let Err(error) = grpc.heartbeat(unary(heartbeat.clone())).await {
            tracing::warn!(%error, "heartbeat");
        }
    }
}

pub(crate) fn unary<T>(message: T) -> Request<T> {
    request(message, TIMEOUT)
}

pub(crate) fn request<T>(message: T, timeout: Duration) -> Request<T> {
    let mut request = Request::new(message);
    let headers = request.metadata_mut();
    headers.insert("x-mq-client-id", std::process::id().into());
    headers.insert("x-mq-language", AsciiMetadataValue::from_static("RUST"));
    headers.insert(
        "x-mq-client-version",
        AsciiMetadataValue::from_static("5.2.0"),
    );
    request.set_timeout(timeout);
    request
}

pub(crate) fn resource(name: &str) -> pb::Resource {
    pb::Resource {
        name: name.to_owned(),
        ..Default::default()
    }
}

/// Whether a server has done it.
pub(crate) fn check(status: Option<pb::Status>) -> Result<(), Failure> {
    let status = status.ok_or("an answer without a status")?;
    if status.code == pb::Code::Ok as i32 {
        return Ok(());
    }
    Err(format!("{}: {}", status.code().as_str_name(), status.message).into())
}

fn access_point(endpoints: &str) -> Result<pb::Endpoints, Failure> {
    let (host, port) = endpoints.rsplit_once(':').ok_or("no HOST:PORT")?;
    Ok(pb::Endpoints {
        scheme: pb::AddressScheme::IPv4.into(),
        addresses: vec![pb::Address {
            host: host.to_owned(),
            port: port.parse()?,
        }],
    })
}
