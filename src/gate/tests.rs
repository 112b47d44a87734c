#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod property;
mod sentences;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rocketmq_proto::v2 as pb;
use tokio::time::Instant;

use super::{Commit, Gate, RouteTable, Step, Witness};
use crate::{
    Error, ErrorKind,
    model::{Endpoints, route::Route},
};

const REFRESH: Duration = Duration::from_secs(30);

/// Proof that holds until its session dies.
#[derive(Debug, Clone)]
struct Proof {
    life: Arc<AtomicU64>,
    generation: u64,
}

impl Witness for Proof {
    fn is_current(&self) -> bool {
        self.life.load(Ordering::Relaxed) == self.generation
    }
}

/// The sessions, as far as a gate can see them.
#[derive(Debug, Default)]
struct Lives(BTreeMap<Endpoints, Arc<AtomicU64>>);

impl Lives {
    fn prove(&mut self, endpoints: &Endpoints) -> Proof {
        let life = self.0.entry(endpoints.clone()).or_default().clone();
        let generation = life.load(Ordering::Relaxed);
        Proof { life, generation }
    }

    fn die(&mut self, endpoints: &Endpoints) {
        let life = self.0.entry(endpoints.clone()).or_default();
        life.fetch_add(1, Ordering::Relaxed);
    }
}

fn endpoints(name: &str) -> Endpoints {
    Endpoints::parse(&format!("{name}:8081")).unwrap()
}

fn dead(name: &str) -> Error {
    Error::new(ErrorKind::Unreachable, "connection refused").endpoint(endpoints(name))
}

fn proto_queue(topic: &str, at: &str, typed: bool) -> pb::MessageQueue {
    pb::MessageQueue {
        topic: Some(pb::Resource {
            name: topic.to_owned(),
            ..Default::default()
        }),
        id: 0,
        permission: pb::Permission::ReadWrite as i32,
        broker: Some(pb::Broker {
            name: format!("broker {at}"),
            id: 0,
            endpoints: Some(endpoints(at).to_proto()),
        }),
        accept_message_types: if typed {
            vec![pb::MessageType::Normal as i32]
        } else {
            Vec::new()
        },
    }
}

/// A route with one queue at each of these hosts.
fn route(topic: &str, hosts: &[&str], typed: bool) -> Arc<Route> {
    let queues = hosts
        .iter()
        .map(|host| proto_queue(topic, host, typed))
        .collect();
    let (route, warnings) = Route::from_proto(topic, queues);
    assert!(warnings.is_empty(), "{warnings:?}");
    Arc::new(route)
}
