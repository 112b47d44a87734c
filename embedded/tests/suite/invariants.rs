//! What holds whatever clients do.

use std::collections::{BTreeMap, BTreeSet};

use rocketmq_embedded::proto as pb;
use rocketmq_embedded::proto::Code;
use rocketmq_embedded::{EmbeddedBroker, GroupConfig, TopicConfig};

use crate::client::{Client, grouped, handle, message, properties, receive};
use crate::secs;

/// What one run of random calls knows.
struct Run {
    broker: EmbeddedBroker,
    client: Client,
    random: fastrand::Rng,
    topic: &'static str,
    sent: BTreeSet<String>,
    /// Messages that were delivered, with their newest handles.
    held: BTreeMap<String, (pb::Message, String)>,
    finished: BTreeSet<String>,
}

impl Run {
    async fn new(seed: u64, topic: &'static str, fifo: bool) -> Self {
        let broker = EmbeddedBroker::builder().in_memory().start().await.unwrap();
        broker.create_topic("t", TopicConfig::normal(3));
        broker.create_topic("f", TopicConfig::fifo(3));
        let group = GroupConfig::default().fifo(fifo).max_retries(1000);
        broker.create_group("g", group);
        let client = Client::of(&broker, "c");
        client.subscribe("g", topic).await;
        Self {
            broker,
            client,
            random: fastrand::Rng::with_seed(seed),
            topic,
            sent: BTreeSet::new(),
            held: BTreeMap::new(),
            finished: BTreeSet::new(),
        }
    }

    async fn step(&mut self) {
        match self.random.u8(0..10) {
            0..=2 => self.send().await,
            3..=4 => self.take().await,
            5..=7 => self.ack().await,
            8 => self.change().await,
            _ => {
                tokio::time::sleep(secs(self.random.u64(0..8))).await;
                self.client.heartbeat(Some("g")).await;
            }
        }
    }

    async fn send(&mut self) {
        let id = format!("m{}", self.sent.len());
        let body = match self.topic {
            "f" => grouped("f", &id, &self.random.u8(0..5).to_string()),
            topic => message(topic, &id),
        };
        let sent = self.client.send(vec![body]).await;
        assert_eq!(sent.status.unwrap().code(), Code::Ok);
        self.sent.insert(id);
    }

    async fn take(&mut self) {
        let mut request = receive("g", self.topic);
        request.batch_size = self.random.i32(1..6);
        for message in self.client.receive(request).await.messages() {
            let id = properties(&message).message_id;
            let again = self.finished.contains(&id);
            assert!(!again, "{id} was acknowledged with its newest handle");
            let newest = handle(&message);
            self.held.insert(id, (message, newest));
        }
    }

    fn any_held(&mut self) -> Option<String> {
        let ids: Vec<String> = self.held.keys().cloned().collect();
        self.random.choice(ids)
    }

    async fn ack(&mut self) {
        let Some(id) = self.any_held() else { return };
        let (_, newest) = self.held.remove(&id).unwrap();
        let before = self.broker.inspect(self.topic, "g").acked;
        self.client.ack("g", self.topic, &[(&id, &newest)]).await;
        let settled = self.broker.inspect(self.topic, "g").acked > before;
        // In an ordered queue an acknowledgement above a hole may be lost.
        if settled && self.topic == "t" {
            self.finished.insert(id);
        }
    }

    async fn change(&mut self) {
        let Some(id) = self.any_held() else { return };
        let (message, newest) = self.held.get(&id).cloned().unwrap();
        let invisible = self.random.i64(0..20);
        let suspend = self.random.bool();
        let changed = self
            .client
            .change("g", &message, &newest, invisible, suspend)
            .await;
        if changed.status.unwrap().code() == Code::Ok {
            self.held.insert(id, (message, changed.receipt_handle));
        }
    }

    /// Every message is ready, in flight or acknowledged.
    fn balance(&self) {
        let counts = self.broker.inspect(self.topic, "g");
        assert_eq!(counts.stored, self.sent.len());
        if self.topic == "t" {
            let acked = usize::try_from(counts.acked).unwrap();
            assert_eq!(
                counts.ready + counts.in_flight + acked,
                counts.stored,
                "{counts:?}"
            );
        }
    }

    /// Receives and acknowledges until nothing is left.
    async fn drain(&mut self) -> BTreeSet<String> {
        let mut last = BTreeSet::new();
        for _ in 0..1000 {
            let counts = self.broker.inspect(self.topic, "g");
            if counts.ready + counts.in_flight == 0 {
                return last;
            }
            self.client.heartbeat(Some("g")).await;
            for message in self
                .client
                .receive(receive("g", self.topic))
                .await
                .messages()
            {
                last.insert(properties(&message).message_id);
                assert_eq!(self.client.ack_message("g", &message).await, Code::Ok);
            }
        }
        panic!(
            "it does not end: {:?}",
            self.broker.inspect(self.topic, "g")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_message_is_lost_or_delivered_after_its_acknowledgement() {
    for seed in 0..12 {
        let mut run = Run::new(seed, "t", false).await;
        for _ in 0..100 {
            run.step().await;
            run.balance();
        }
        let last = run.drain().await;
        run.balance();
        let mut all = run.finished.clone();
        all.extend(last);
        assert_eq!(all, run.sent, "seed {seed}");
        assert!(run.broker.dead_letters("g").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_ordered_group_gets_everything_and_every_message_group_in_order() {
    for seed in 0..12 {
        let mut run = Run::new(seed, "f", true).await;
        for _ in 0..100 {
            run.step().await;
            run.balance();
        }
        run.drain().await;
        let delivered = run.broker.deliveries();
        let ids: BTreeSet<String> = delivered.iter().map(|d| d.message_id.clone()).collect();
        assert_eq!(ids, run.sent, "seed {seed}");
        // The first deliveries of a queue follow its offsets.
        let stored = run.broker.messages("f");
        for queue in 0..3 {
            let order: Vec<&String> = stored
                .iter()
                .filter(|m| m.queue == queue)
                .map(|m| &m.message_id)
                .collect();
            let mut firsts: Vec<&String> = Vec::new();
            for delivery in &delivered {
                if order.contains(&&delivery.message_id) && !firsts.contains(&&delivery.message_id)
                {
                    firsts.push(&delivery.message_id);
                }
            }
            assert_eq!(firsts, order, "seed {seed}, queue {queue}");
        }
    }
}
