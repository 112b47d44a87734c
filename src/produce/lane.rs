//! Where the messages of one topic go.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::batch::Depot;
use crate::{
    Error, Result,
    model::{Endpoints, Message, balancer::PublishBalancer, queue::MessageQueue, route::Route},
};

/// One topic with its committed route. Immutable but for the turns; a new route makes a new one.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(super) route: Arc<Route>,
    /// Missing where the route has no queue to write to.
    balancer: Result<PublishBalancer>,
    /// The endpoints of these queues, each once.
    pub(super) endpoints: Vec<Endpoints>,
    accepted: Arc<AtomicBool>,
    /// Messages that wait for a request to share.
    pub(super) depot: Arc<Depot>,
}

/// What there is to send to.
#[derive(Debug)]
pub(super) enum Choice {
    /// This queue, of a broker that was not tried in this round.
    Queue(MessageQueue),
    /// Every broker that is ready was tried in this round.
    AllTried,
    /// No endpoint is ready.
    NoneReady,
}

/// What is known of the endpoints of a lane.
#[derive(Debug, Default)]
pub(super) struct Health {
    pub(super) not_ready: BTreeSet<Endpoints>,
    pub(super) isolated: BTreeSet<Endpoints>,
}

impl Lane {
    pub(super) fn new(route: Arc<Route>, turn: usize) -> Self {
        let balancer = PublishBalancer::new(&route, turn);
        Self::with(route, balancer, Arc::default(), Arc::default())
    }

    /// For a newer route: the turns go on.
    pub(super) fn refreshed(&self, route: Arc<Route>, turn: usize) -> Self {
        let balancer = match &self.balancer {
            Ok(balancer) => balancer.refreshed(&route),
            Err(_) => PublishBalancer::new(&route, turn),
        };
        Self::with(route, balancer, self.accepted.clone(), self.depot.clone())
    }

    fn with(
        route: Arc<Route>,
        balancer: Result<PublishBalancer>,
        accepted: Arc<AtomicBool>,
        depot: Arc<Depot>,
    ) -> Self {
        let endpoints: BTreeSet<_> = route
            .writable()
            .map(|queue| queue.endpoints.clone())
            .collect();
        Self {
            route,
            balancer,
            endpoints: endpoints.into_iter().collect(),
            accepted,
            depot,
        }
    }

    /// Whether the topic has taken a message of this producer.
    pub(super) fn has_accepted(&self) -> bool {
        self.accepted.load(Ordering::Relaxed)
    }

    pub(super) fn note_accepted(&self) {
        if !self.has_accepted() {
            self.accepted.store(true, Ordering::Relaxed);
        }
    }

    /// The queue whose turn it is, or the one queue of a message group.
    pub(super) fn next(&self, message: &Message) -> Result<MessageQueue> {
        let balancer = self.balancer()?;
        let queue = match message.group() {
            Some(group) => balancer.take_by_group(group),
            None => balancer.take(&BTreeSet::new(), 1).pop(),
        };
        // A balancer without queues is an error already.
        queue.ok_or_else(|| Error::invalid(format!("no queue in topic {}", self.route.topic)))
    }

    /// The best queue under these circumstances: one that is ready, rather not isolated, of a
    /// broker that was not tried. `breadth` is how many brokers are looked at.
    pub(super) fn choose(
        &self,
        message: &Message,
        health: &Health,
        tried: &BTreeSet<Arc<str>>,
        breadth: usize,
    ) -> Result<Choice> {
        let balancer = self.balancer()?;
        if message.group().is_some() {
            // Order matters more than anything: always the same queue.
            let queue = self.next(message)?;
            return Ok(match () {
                () if health.not_ready.contains(&queue.endpoints) => Choice::NoneReady,
                () if tried.contains(&queue.broker_name) => Choice::AllTried,
                () => Choice::Queue(queue),
            });
        }
        if self
            .endpoints
            .iter()
            .all(|endpoints| health.not_ready.contains(endpoints))
        {
            return Ok(Choice::NoneReady);
        }
        let careful = &health.not_ready | &health.isolated;
        for avoided in [&careful, &health.not_ready] {
            let fits = |queue: &MessageQueue| {
                !avoided.contains(&queue.endpoints) && !tried.contains(&queue.broker_name)
            };
            if let Some(queue) = balancer.take(avoided, breadth).into_iter().find(fits) {
                return Ok(Choice::Queue(queue));
            }
        }
        Ok(Choice::AllTried)
    }

    fn balancer(&self) -> Result<&PublishBalancer> {
        self.balancer.as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use rocketmq_proto::v2 as pb;

    use super::*;

    fn lane(brokers: &[(&str, &str)]) -> Lane {
        let queue = |(index, (broker, address)): (usize, &(&str, &str))| pb::MessageQueue {
            id: i32::try_from(index).unwrap(),
            permission: pb::Permission::ReadWrite.into(),
            broker: Some(pb::Broker {
                name: (*broker).to_owned(),
                id: 0,
                endpoints: Some(at(address).to_proto()),
            }),
            ..pb::MessageQueue::default()
        };
        let queues = brokers.iter().enumerate().map(queue).collect();
        let (route, warnings) = Route::from_proto("t", queues);
        assert!(warnings.is_empty(), "{warnings:?}");
        Lane::new(Arc::new(route), 0)
    }

    fn at(address: &str) -> Endpoints {
        Endpoints::parse(address).unwrap()
    }

    fn set<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
        items.into_iter().collect()
    }

    fn message(group: Option<&str>) -> Message {
        let message = Message::builder("t").body("x");
        match group {
            Some(group) => message.group(group),
            None => message,
        }
        .build()
        .unwrap()
    }

    fn chosen(lane: &Lane, health: &Health, tried: &[&str]) -> String {
        let tried = tried.iter().map(|broker| Arc::from(*broker)).collect();
        match lane.choose(&message(None), health, &tried, 3).unwrap() {
            Choice::Queue(queue) => queue.broker_name.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn healthy_brokers_go_before_isolated_ones_and_those_before_a_second_round() {
        let lane = lane(&[("a", "a:1"), ("b", "b:1"), ("c", "c:1")]);
        let health = Health {
            not_ready: set([at("c:1")]),
            isolated: set([at("a:1")]),
        };
        for _ in 0..5 {
            assert_eq!(chosen(&lane, &health, &[]), "b");
            assert_eq!(chosen(&lane, &health, &["b"]), "a");
            assert_eq!(chosen(&lane, &health, &["a", "b"]), "AllTried");
        }
        let health = Health {
            not_ready: set(["a:1", "b:1", "c:1"].map(at)),
            ..Health::default()
        };
        assert_eq!(chosen(&lane, &health, &[]), "NoneReady");
    }

    #[test]
    fn brokers_behind_one_proxy_are_tried_one_after_the_other() {
        let lane = lane(&[("a", "proxy:1"), ("b", "proxy:1")]);
        let health = Health {
            isolated: set([at("proxy:1")]),
            ..Health::default()
        };
        assert_eq!(chosen(&lane, &health, &["a"]), "b");
        assert_eq!(chosen(&lane, &health, &["b"]), "a");
    }

    #[test]
    fn a_group_stays_at_its_queue_whatever_is_isolated() {
        let lane = lane(&[("a", "a:1"), ("b", "b:1")]);
        let grouped = message(Some("g"));
        let home = lane.next(&grouped).unwrap();
        let health = Health {
            isolated: set([home.endpoints.clone()]),
            ..Health::default()
        };
        let choice = lane.choose(&grouped, &health, &BTreeSet::new(), 3).unwrap();
        assert!(matches!(choice, Choice::Queue(queue) if queue.broker_name == home.broker_name));
        let health = Health {
            not_ready: set([home.endpoints]),
            ..Health::default()
        };
        let choice = lane.choose(&grouped, &health, &BTreeSet::new(), 3).unwrap();
        assert!(matches!(choice, Choice::NoneReady));
    }

    #[test]
    fn a_newer_route_keeps_the_turn_and_what_was_learned() {
        let first = lane(&[("a", "a:1"), ("b", "b:1")]);
        first.note_accepted();
        let taken = first.next(&message(None)).unwrap().broker_name;
        let second = first.refreshed(first.route.clone(), 0);
        assert!(second.has_accepted());
        assert_ne!(second.next(&message(None)).unwrap().broker_name, taken);
    }
}
