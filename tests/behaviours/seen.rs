//! What handlers saw, to be waited for.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use rocketmq_actors::Delivery;
use tokio::sync::watch;

/// One handling.
#[derive(Debug, Clone)]
pub struct Sight {
    pub id: String,
    pub body: String,
    pub attempt: u32,
    pub by: &'static str,
}

/// All handlings so far. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    sights: Arc<Mutex<Vec<Sight>>>,
    count: watch::Sender<usize>,
}

impl Seen {
    /// Longer than any behaviour takes, on any server.
    const PATIENCE: Duration = Duration::from_secs(120);

    pub fn add(&self, delivery: &Delivery) {
        self.add_by(delivery, "");
    }

    pub fn add_by(&self, delivery: &Delivery, by: &'static str) {
        let sight = Sight {
            id: delivery.message_id().to_owned(),
            body: String::from_utf8_lossy(delivery.body()).into_owned(),
            attempt: delivery.attempt(),
            by,
        };
        self.sights.lock().unwrap().push(sight);
        self.count.send_modify(|count| *count += 1);
    }

    pub fn all(&self) -> Vec<Sight> {
        self.sights.lock().unwrap().clone()
    }

    /// Handlings by body.
    pub fn by_body(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for sight in self.all() {
            *counts.entry(sight.body).or_default() += 1;
        }
        counts
    }

    /// Waits until the handlings are as wanted.
    pub async fn until(&self, wanted: impl Fn(&[Sight]) -> bool) {
        let mut count = self.count.subscribe();
        let met = async {
            while !wanted(&self.all()) {
                count.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(Self::PATIENCE, met).await;
        assert!(waited.is_ok(), "not seen in time, but {:?}", self.by_body());
    }

    /// Waits until so many different messages were handled.
    pub async fn until_bodies(&self, count: usize) {
        self.until(|_| self.by_body().len() >= count).await;
    }
}
