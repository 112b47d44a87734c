//! What every test stands on: one thread, a paused clock, pipes instead of sockets.

use std::{
    collections::HashMap,
    future::Future,
    ops::Deref,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use rocketmq_actors::{Client, ClientConfig, ClientConfigBuilder, Connector, Tls, WallClock};
use rocketmq_embedded::{Builder, EmbeddedBroker, proto as pb};
use tokio::{task::LocalSet, time::Instant};
use tonic::{Request, transport::Endpoint};

/// Runs a test in virtual time. Longer than a virtual month is a hang.
pub fn virtually<T>(test: impl Future<Output = T>) -> T {
    super::log::install();
    let runtime = paused();
    LocalSet::new().block_on(&runtime, within_a_month(test))
}

/// The same within an actix System, which pools of threads need.
pub fn virtually_in_a_system<T>(test: impl Future<Output = T>) -> T {
    super::log::install();
    actix::System::with_tokio_rt(paused).block_on(within_a_month(test))
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

async fn within_a_month<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(secs(30 * 24 * 3600), test)
        .await
        .expect("the test hangs")
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A broker that checks at its end, in every test, that no node was used before it had answered
/// the settings of the client.
pub struct Checked(EmbeddedBroker);

impl Deref for Checked {
    type Target = EmbeddedBroker;

    fn deref(&self) -> &EmbeddedBroker {
        &self.0
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        let ours = |violation: &String| !violation.contains(&format!(" of {RAW} "));
        let violations: Vec<_> = self.0.violations().into_iter().filter(ours).collect();
        if !std::thread::panicking() {
            assert!(
                violations.is_empty(),
                "settings come first: {violations:#?}"
            );
        }
    }
}

/// Starts a broker without sockets; the default has one node.
pub async fn broker(change: impl FnOnce(Builder) -> Builder) -> Checked {
    Checked(
        change(EmbeddedBroker::builder().in_memory())
            .start()
            .await
            .unwrap(),
    )
}

/// A wall clock that goes with virtual time.
pub struct VirtualClock {
    base: SystemTime,
    start: Instant,
}

impl VirtualClock {
    pub fn at(base: SystemTime) -> Self {
        Self {
            base,
            start: Instant::now(),
        }
    }
}

impl WallClock for VirtualClock {
    fn now(&self) -> SystemTime {
        self.base + self.start.elapsed()
    }
}

/// A configuration for this broker, all on this thread.
pub fn config(broker: &EmbeddedBroker) -> ClientConfigBuilder {
    config_at(broker, &broker.endpoints())
}

/// The same with another access point.
pub fn config_at(broker: &EmbeddedBroker, endpoints: &str) -> ClientConfigBuilder {
    let connector = broker.connector();
    ClientConfig::builder(endpoints)
        .tls(Tls::Off)
        .on_this_thread(true)
        .seed(7)
        .clock(VirtualClock::at(broker.now()))
        .connector(Connector::new(move |host: String, port| {
            let connected = connector.connect(&host, port);
            async move { connected }
        }))
}

pub fn client(broker: &EmbeddedBroker) -> Client {
    Client::new(config(broker).build().unwrap())
}

type Raw = pb::messaging_service_client::MessagingServiceClient<tonic::transport::Channel>;

/// A bare client of one node, with nothing of ours in it.
pub fn raw(broker: &EmbeddedBroker, node: usize) -> Raw {
    let (connector, address) = (broker.connector(), broker.node_endpoints(node));
    let (host, port) = address.rsplit_once(':').unwrap();
    let (host, port) = (host.to_owned(), port.parse().unwrap());
    let connect = tower::service_fn(move |_| {
        let connected = connector.connect(&host, port);
        async move { connected.map(hyper_util::rt::TokioIo::new) }
    });
    let channel = Endpoint::from_static("http://broker").connect_with_connector_lazy(connect);
    Raw::new(channel)
}

/// The client id of bare clients.
const RAW: &str = "raw";

pub fn raw_request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    let headers = request.metadata_mut();
    headers.insert("x-mq-client-id", RAW.parse().unwrap());
    headers.insert("x-mq-language", "RUST".parse().unwrap());
    headers.insert("x-mq-client-version", "5.0.3".parse().unwrap());
    request.set_timeout(secs(30));
    request
}

/// A message as a producer would send it.
pub fn message(topic: &str, id: &str, body: &[u8]) -> pb::Message {
    pb::Message {
        topic: Some(pb::Resource {
            name: topic.to_owned(),
            ..Default::default()
        }),
        body: body.to_vec().into(),
        system_properties: Some(pb::SystemProperties {
            message_id: id.to_owned(),
            message_type: pb::MessageType::Normal as i32,
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Stores messages on a node, as a bare client.
pub async fn store(broker: &EmbeddedBroker, node: usize, messages: Vec<pb::Message>) {
    let mut raw = raw(broker, node);
    for message in messages {
        let request = raw_request(pb::SendMessageRequest {
            messages: vec![message],
        });
        let reply = raw.send_message(request).await.unwrap().into_inner();
        let code = reply.status.unwrap().code;
        assert_eq!(code, pb::Code::Ok as i32, "the broker stores the message");
    }
}

/// Stores `count` messages with the ids `m0`, `m1` … and their id as body.
pub async fn store_numbered(broker: &EmbeddedBroker, topic: &str, count: usize) {
    let messages = (0..count).map(|n| message(topic, &format!("m{n}"), format!("m{n}").as_bytes()));
    store(broker, 0, messages.collect()).await;
}

/// Counts by message id.
#[derive(Debug, Clone, Default)]
pub struct Tally(Arc<Mutex<HashMap<String, usize>>>);

impl Tally {
    /// One more; says how many that makes.
    pub fn add(&self, id: &str) -> usize {
        let mut counts = self.0.lock().unwrap();
        let count = counts.entry(id.to_owned()).or_default();
        *count += 1;
        *count
    }

    pub fn of(&self, id: &str) -> usize {
        self.0.lock().unwrap().get(id).copied().unwrap_or(0)
    }

    pub fn ids(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn total(&self) -> usize {
        self.0.lock().unwrap().values().sum()
    }
}
