//! A node: one endpoint with its table of settings, and one broker with its messages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocketmq_proto::v2 as pb;
use rocketmq_proto::v2::telemetry_command::Command;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::live::{Gauge, Live, Open};
use crate::standing::Standings;
use crate::store::timers::{Event, TimerKey};
use crate::store::{Holder, Store};
use crate::wire::Valve;

/// A client's settings, as merged and answered.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) settings: Arc<pb::Settings>,
    pub(crate) last_seen: Instant,
    expiry: TimerKey,
}

impl Client {
    pub(crate) fn subscription(&self) -> Option<&pb::Subscription> {
        match self.settings.pub_sub.as_ref()? {
            pb::settings::PubSub::Subscription(subscription) => Some(subscription),
            pb::settings::PubSub::Publishing(_) => None,
        }
    }

    fn publishes(&self, topic: &str) -> bool {
        match self.settings.pub_sub.as_ref() {
            Some(pb::settings::PubSub::Publishing(publishing)) => {
                publishing.topics.iter().any(|own| own.name == topic)
            }
            _ => false,
        }
    }

    pub(crate) fn max_attempts(&self) -> Option<u32> {
        let policy = self.settings.backoff_policy.as_ref()?;
        u32::try_from(policy.max_attempts).ok()
    }
}

pub(crate) type CommandSender = mpsc::Sender<Result<pb::TelemetryCommand, tonic::Status>>;

/// The newest telemetry stream of a client.
#[derive(Clone, Debug)]
pub(crate) struct Observer {
    pub(crate) stream: u64,
    pub(crate) commands: CommandSender,
    pub(crate) stop: CancellationToken,
    pub(crate) connection: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct NodeState {
    pub(crate) store: Store,
    pub(crate) clients: HashMap<Arc<str>, Client>,
    pub(crate) observers: HashMap<Arc<str>, Observer>,
    pub(crate) standings: Standings,
    checks_sent: usize,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) index: usize,
    pub(crate) broker: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) valve: Arc<Valve>,
    /// Whether new connections are turned away.
    pub(crate) refusing: AtomicBool,
    /// Cuts all connections there are.
    pub(crate) reset: Notify,
    pub(crate) listeners: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) telemetry_streams: Gauge,
    pub(crate) parked: Gauge,
    advertised: Mutex<Option<(String, u16)>>,
    running: Mutex<CancellationToken>,
    state: Mutex<NodeState>,
}

impl Node {
    pub(crate) fn new(
        index: usize,
        (host, port): (String, u16),
        store: Store,
        running: CancellationToken,
    ) -> Self {
        Self {
            index,
            broker: store.broker.clone(),
            host,
            port,
            valve: Arc::default(),
            refusing: AtomicBool::new(false),
            reset: Notify::new(),
            listeners: Gauge::default(),
            connections: Gauge::default(),
            telemetry_streams: Gauge::default(),
            parked: Gauge::default(),
            advertised: Mutex::default(),
            running: Mutex::new(running),
            state: Mutex::new(NodeState {
                store,
                clients: HashMap::new(),
                observers: HashMap::new(),
                standings: Standings::default(),
                checks_sent: 0,
            }),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, NodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(self: &Arc<Self>, gauge: fn(&Node) -> &Gauge) -> Open {
        Open::new(self, gauge)
    }

    /// Whether new connections are turned away.
    pub(crate) fn refuses(&self) -> bool {
        self.refusing.load(Ordering::Acquire) || self.running().is_cancelled()
    }

    /// Cancelled when the node stops.
    pub(crate) fn running(&self) -> CancellationToken {
        self.running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn restart(&self, running: CancellationToken) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
    }

    pub(crate) fn advertise(&self, host: String, port: u16) {
        *self
            .advertised
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some((host, port));
    }

    /// The address that routes name.
    pub(crate) fn endpoints(&self) -> pb::Endpoints {
        let advertised = self
            .advertised
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let (host, port) = advertised.unwrap_or_else(|| (self.host.clone(), self.port));
        endpoints(host, port)
    }

    pub(crate) fn client(&self, id: &str) -> Option<Client> {
        self.state().clients.get(id).cloned()
    }

    pub(crate) fn live(&self) -> Live {
        Live {
            listening: self.listeners.now() > 0,
            connections: self.connections.now(),
            connections_accepted: self.connections.ever(),
            telemetry_streams: self.telemetry_streams.now(),
            telemetry_streams_opened: self.telemetry_streams.ever(),
            parked_polls: self.parked.now(),
            clients: self.state().clients.len(),
        }
    }

    pub(crate) fn holder(&self, client: &str) -> Holder {
        Holder {
            node: self.index,
            client: client.into(),
        }
    }
}

pub(crate) fn endpoints(host: String, port: u16) -> pb::Endpoints {
    let scheme = match host.parse() {
        Ok(std::net::IpAddr::V4(_)) => pb::AddressScheme::IPv4,
        Ok(std::net::IpAddr::V6(_)) => pb::AddressScheme::IPv6,
        Err(_) => pb::AddressScheme::DomainName,
    };
    pb::Endpoints {
        scheme: scheme.into(),
        addresses: vec![pb::Address {
            host,
            port: i32::from(port),
        }],
    }
}

impl NodeState {
    /// Keeps a client's settings and sees to their expiry.
    pub(crate) fn settle_in(&mut self, id: &str, settings: Arc<pb::Settings>, expiry: Duration) {
        self.remove_client(id);
        let id: Arc<str> = id.into();
        let last_seen = Instant::now();
        let event = Event::Client {
            id: Arc::clone(&id),
        };
        let client = Client {
            settings,
            last_seen,
            expiry: self.store.timers.insert(last_seen + expiry, event),
        };
        self.clients.insert(id, client);
    }

    /// Says whether there was one.
    pub(crate) fn remove_client(&mut self, id: &str) -> bool {
        let Some(client) = self.clients.remove(id) else {
            return false;
        };
        self.store.timers.remove(client.expiry);
        true
    }

    /// Whether the client has been silent for `expiry`; else looks again when it might be.
    pub(crate) fn expired(&mut self, id: &Arc<str>, expiry: Duration) -> bool {
        let Some(client) = self.clients.get_mut(id) else {
            return false;
        };
        let at = client.last_seen + expiry;
        if at <= Instant::now() {
            return true;
        }
        let event = Event::Client { id: Arc::clone(id) };
        client.expiry = self.store.timers.insert(at, event);
        false
    }

    /// Asks one producer of the topic what became of a transaction: the next in turn, whether
    /// or not it is listening.
    pub(crate) fn check(&mut self, topic: &Arc<str>, id: &Arc<str>) {
        let Some(command) = self.store.check(topic, id) else {
            return;
        };
        let mut producers: Vec<&Arc<str>> = self
            .clients
            .iter()
            .filter(|(_, client)| client.publishes(topic))
            .map(|(id, _)| id)
            .collect();
        producers.sort_unstable();
        let turn = self.checks_sent.checked_rem(producers.len());
        let producer = turn.and_then(|turn| producers.get(turn));
        self.checks_sent = self.checks_sent.wrapping_add(1);
        if let Some(observer) = producer.and_then(|id| self.observers.get(*id)) {
            // A check that gets lost is made again at the next scan.
            let _ = observer.commands.try_send(Ok(pb::TelemetryCommand {
                status: None,
                command: Some(Command::RecoverOrphanedTransactionCommand(command)),
            }));
        }
    }
}
