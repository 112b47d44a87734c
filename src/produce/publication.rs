//! What a producer's handles and its actor share, and what outlives the actor's restarts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use actix::Addr;
use arc_swap::ArcSwap;

use super::{
    lane::Lane, limits::InFlight, settings::ProducerRole, shutdown::ProducerShutdownReport,
    spec::Options,
};
use crate::{
    actors::RouteActor,
    member::{Counter, Ending, Member},
    messages::session::SyncSettings,
    model::message_id::MessageIdGenerator,
    rpc::host_name,
};

/// Counts since the start of the producer.
#[derive(Debug, Default)]
pub(super) struct Stats {
    pub(super) sent: Counter,
    pub(super) failed: Counter,
    pub(super) retries: Counter,
    pub(super) requests: Counter,
    pub(super) batches: Counter,
    pub(super) cut_off: Counter,
}

type Lanes = HashMap<Arc<str>, Arc<Lane>>;

/// One producer. A send runs on this, in its caller's future, without asking any actor.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) member: Arc<Member>,
    pub(super) role: Arc<ProducerRole>,
    pub(super) options: Options,
    pub(super) routes: Addr<RouteActor>,
    pub(super) in_flight: InFlight,
    pub(super) ids: MessageIdGenerator,
    pub(super) born_host: String,
    pub(super) stats: Stats,
    pub(super) ending: Ending<ProducerShutdownReport>,
    lanes: ArcSwap<Lanes>,
    /// Held while the lanes are changed; readers never wait.
    changing: Mutex<()>,
}

impl Publication {
    pub(super) fn new(
        member: Arc<Member>,
        role: Arc<ProducerRole>,
        options: Options,
        routes: Addr<RouteActor>,
    ) -> Arc<Self> {
        let random = member.config.environment.rng().u64(..).to_be_bytes();
        let [a, b, c, d, e, f, _, _] = random;
        Arc::new(Self {
            in_flight: InFlight::new(options.max_in_flight, options.max_in_flight_bytes),
            ids: MessageIdGenerator::new([a, b, c, d, e, f], std::process::id()),
            born_host: host_name(),
            stats: Stats::default(),
            ending: Ending::default(),
            lanes: ArcSwap::default(),
            changing: Mutex::default(),
            member,
            role,
            options,
            routes,
        })
    }

    pub(super) fn lane(&self, topic: &str) -> Option<Arc<Lane>> {
        self.lanes.load().get(topic).cloned()
    }

    /// Makes the committed route of a topic the one that is sent by, and the topic a part of the
    /// settings. Nothing happens where both are so.
    pub(crate) fn adopt(&self, topic: &Arc<str>) -> Option<Arc<Lane>> {
        let lane = self.refresh(topic)?;
        if self.role.add(topic) {
            for session in self.member.sessions.all() {
                // One message for each topic, and their number is bounded.
                session.addr.do_send(SyncSettings);
            }
        }
        Some(lane)
    }

    fn refresh(&self, topic: &Arc<str>) -> Option<Arc<Lane>> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock: an older route never replaces a newer one.
        let route = self.member.routes.load().get(topic)?;
        let lanes = self.lanes.load();
        let turn = || self.member.config.environment.rng().usize(..);
        let lane = match lanes.get(topic) {
            Some(lane) if Arc::ptr_eq(&lane.route, &route) => return Some(lane.clone()),
            Some(lane) => Arc::new(lane.refreshed(route, turn())),
            None => Arc::new(Lane::new(route, turn())),
        };
        let mut changed = Lanes::clone(&lanes);
        changed.insert(topic.clone(), lane.clone());
        self.lanes.store(Arc::new(changed));
        Some(lane)
    }

    /// Adopts whatever was committed: what an actor that crashed may have missed.
    pub(crate) fn adopt_all(&self) {
        for topic in self.member.routes.load_full().topics() {
            self.adopt(topic);
        }
    }

    /// Has the producer end and waits for the report.
    pub(super) async fn end(&self, grace: Duration) -> ProducerShutdownReport {
        self.in_flight.close();
        self.ending.end(grace).await
    }

    pub(crate) fn log_statistics(&self) {
        let (messages, bytes) = self.in_flight.used();
        tracing::debug!(
            member = %self.member.path,
            sent = self.stats.sent.get(),
            failed = self.stats.failed.get(),
            retries = self.stats.retries.get(),
            requests = self.stats.requests.get(),
            batches = self.stats.batches.get(),
            messages,
            bytes,
            topics = self.role.topic_count(),
            "producer statistics"
        );
    }
}
