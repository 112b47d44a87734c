//! How a push consumer consumes.

use std::{
    collections::BTreeSet,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use actix::{Actor, Context, Handler};
use rocketmq_actors::{
    ConsumerStats, Deliver, Delivery, Filter, IntoOutcome, Message, Outcome, PushConsumer,
    PushConsumerBuilder, PushConsumerSpec,
};

use super::{GRACE, Kind, Seen, Server, Sight, millis, pb};

fn spec(topic: &str, group: &str) -> PushConsumerBuilder {
    PushConsumerSpec::builder(group).subscribe(topic, Filter::any())
}

/// A consumer whose handler notes what it sees, then does what `then` says.
async fn consume<O: IntoOutcome + Send + 'static>(
    server: &impl Server,
    topic: &str,
    group: &str,
    seen: &Seen,
    then: impl Fn(&Delivery) -> O + Clone + Send + Sync + 'static,
) -> PushConsumer {
    let seen = seen.clone();
    let spec = spec(topic, group).handler(move |delivery: Delivery| {
        let (seen, then) = (seen.clone(), then.clone());
        async move {
            let outcome = then(&delivery);
            seen.add(&delivery);
            outcome
        }
    });
    server.client().start(spec.build().unwrap()).await.unwrap()
}

async fn send(server: &impl Server, topic: &str, bodies: impl IntoIterator<Item = String>) {
    let producer = server.producer(topic).await;
    let messages = bodies
        .into_iter()
        .map(|body| Message::builder(topic).body(body).build().unwrap());
    for sent in producer.send_all(messages).await {
        sent.unwrap();
    }
    producer.shutdown(GRACE).await;
}

fn numbered(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("m{number}"))
}

/// Ends a consumer and looks whether it left anything behind.
async fn end(consumer: PushConsumer) -> ConsumerStats {
    let report = consumer.shutdown(GRACE).await;
    assert!(report.in_time && report.abandoned == 0, "{report:?}");
    let stats = consumer.stats();
    assert_eq!(
        (stats.unsettled, stats.cached_messages, stats.actors),
        (0, 0, 0),
        "{stats:?}"
    );
    stats
}

pub async fn every_message_is_handled_once(server: &impl Server) {
    server.topic("b-once", Kind::Normal, 4).await;
    server.group("b-once", 16, false).await;
    let seen = Seen::default();
    let consumer = consume(server, "b-once", "b-once", &seen, |_| ()).await;
    send(server, "b-once", numbered(500)).await;
    seen.until_bodies(500).await;
    let stats = end(consumer).await;
    assert_eq!(seen.all().len(), 500, "none twice");
    assert_eq!(
        (stats.received, stats.handled, stats.acked),
        (500, 500, 500),
        "{stats:?}"
    );
}

pub async fn what_was_sent_arrives(server: &impl Server) {
    server.topic("b-fields", Kind::Normal, 4).await;
    server.group("b-fields", 16, false).await;
    let (deliver, mut delivered) = tokio::sync::mpsc::channel(1);
    let spec = spec("b-fields", "b-fields").handler(move |delivery: Delivery| {
        let deliver = deliver.clone();
        async move { deliver.send(delivery).await.map_err(|_| "nobody looks") }
    });
    let consumer = server.client().start(spec.build().unwrap()).await.unwrap();
    let producer = server.producer("b-fields").await;
    let message = Message::builder("b-fields")
        .body("Grüße".as_bytes().to_vec())
        .tag("paid")
        .keys(["order-1", "customer-7"])
        .property("currency", "EUR")
        .property("note", "größer als 1")
        .build()
        .unwrap();
    let receipt = producer.send(message).await.unwrap();
    let delivery = delivered.recv().await.unwrap();
    assert_eq!(delivery.message_id(), receipt.message_id());
    assert_eq!(delivery.topic(), "b-fields");
    assert_eq!(delivery.body().as_ref(), "Grüße".as_bytes());
    assert_eq!(delivery.tag(), Some("paid"));
    assert_eq!(delivery.keys(), ["order-1", "customer-7"]);
    assert_eq!(delivery.property("currency"), Some("EUR"));
    assert_eq!(delivery.property("note"), Some("größer als 1"));
    assert_eq!(delivery.attempt(), 1);
    assert_eq!(delivery.message_group(), None);
    assert!(delivery.born_at().is_some() && !delivery.born_host().is_empty());
    drop(delivery);
    producer.shutdown(GRACE).await;
    end(consumer).await;
}

pub async fn a_tag_filter_lets_its_tags_through(server: &impl Server) {
    server.topic("b-tags", Kind::Normal, 4).await;
    server.group("b-tags", 16, false).await;
    let seen = Seen::default();
    let noted = seen.clone();
    let spec = PushConsumerSpec::builder("b-tags")
        .subscribe("b-tags", Filter::tag("a || c"))
        .handler(move |delivery: Delivery| {
            noted.add(&delivery);
            async {}
        });
    let consumer = server.client().start(spec.build().unwrap()).await.unwrap();
    let producer = server.producer("b-tags").await;
    for (number, tag) in ["a", "b", "c"].iter().cycle().take(30).enumerate() {
        let body = format!("{tag}{number}");
        let message = Message::builder("b-tags").body(body).tag(*tag).build();
        producer.send(message.unwrap()).await.unwrap();
    }
    let untagged = Message::builder("b-tags").body("none").build();
    producer.send(untagged.unwrap()).await.unwrap();
    seen.until_bodies(20).await;
    producer.shutdown(GRACE).await;
    end(consumer).await;
    let bodies = seen.by_body();
    assert_eq!(bodies.len(), 20, "{bodies:?}");
    assert!(
        bodies.keys().all(|body| body.starts_with(['a', 'c'])),
        "{bodies:?}"
    );
}

pub async fn a_failed_message_comes_again_as_the_next_attempt(server: &impl Server) {
    server.topic("b-retry", Kind::Normal, 4).await;
    server.group("b-retry", 16, false).await;
    let seen = Seen::default();
    let consumer = consume(server, "b-retry", "b-retry", &seen, |delivery| {
        match (delivery.attempt(), delivery.body().as_ref()) {
            (1, b"m3") => Err("the first time"),
            (1, b"m5") => panic!("the first time"),
            _ => Ok(()),
        }
    })
    .await;
    send(server, "b-retry", numbered(10)).await;
    // A panic is not noted, so only the second attempt of m5 is seen.
    seen.until(|sights| sights.len() == 11).await;
    let stats = end(consumer).await;
    assert_eq!(
        (stats.failed, stats.retried, stats.acked),
        (2, 2, 10),
        "{stats:?}"
    );
    for body in ["m3", "m5"] {
        let last = seen
            .all()
            .into_iter()
            .rfind(|sight| sight.body == body)
            .unwrap();
        assert_eq!(last.attempt, 2, "{last:?}");
    }
    let ids: BTreeSet<_> = seen.all().into_iter().map(|sight| sight.id).collect();
    assert_eq!(ids.len(), 10, "the same id in every delivery of a message");
}

pub async fn a_message_that_always_fails_ends_as_a_dead_letter(server: &impl Server) {
    server.topic("b-hopeless", Kind::Normal, 1).await;
    server.group("b-hopeless", 2, false).await;
    let seen = Seen::default();
    let soon = |_: &Delivery| Outcome::RetryAfter(millis(100));
    let consumer = consume(server, "b-hopeless", "b-hopeless", &seen, soon).await;
    send(server, "b-hopeless", numbered(1)).await;
    dead_letter(server, "b-hopeless", "m0").await;
    end(consumer).await;
    let attempts: Vec<_> = seen.all().iter().map(|sight| sight.attempt).collect();
    assert_eq!(attempts, [1, 2, 3], "the first delivery and two more");
}

pub async fn a_dead_letter_outcome_moves_the_message_at_once(server: &impl Server) {
    server.topic("b-dead", Kind::Normal, 1).await;
    server.group("b-dead", 16, false).await;
    let seen = Seen::default();
    let at_once = |_: &Delivery| Outcome::dead_letter("no use");
    let consumer = consume(server, "b-dead", "b-dead", &seen, at_once).await;
    send(server, "b-dead", numbered(1)).await;
    dead_letter(server, "b-dead", "m0").await;
    let stats = end(consumer).await;
    assert_eq!((seen.all().len(), stats.dead_lettered), (1, 1), "{stats:?}");
}

/// Waits for the one dead letter of a group.
async fn dead_letter(server: &impl Server, group: &str, body: &str) {
    let letters = dead_letters(server, group, 1).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].body, body);
}

/// The dead letters of a group, once there are so many, read by a group with more retries than
/// they have had.
pub async fn dead_letters(server: &impl Server, group: &str, count: usize) -> Vec<Sight> {
    let reader = format!("{group}-letters");
    server.group(&reader, 100, false).await;
    let topic = format!("%DLQ%{group}");
    let letters = Seen::default();
    // The server makes the topic with the first letter, which may be a while.
    let consumer = loop {
        let noted = letters.clone();
        let spec = spec(&topic, &reader).handler(move |delivery: Delivery| {
            noted.add(&delivery);
            async {}
        });
        match server.client().start(spec.build().unwrap()).await {
            Ok(consumer) => break consumer,
            Err(error) => assert_eq!(error.server_code(), Some(40402), "{error}"),
        }
        tokio::time::sleep(millis(500)).await;
    };
    letters.until_bodies(count).await;
    end(consumer).await;
    letters.all()
}

struct Ledger(Seen);

impl Actor for Ledger {
    type Context = Context<Self>;
}

impl Handler<Deliver> for Ledger {
    type Result = Outcome;

    fn handle(&mut self, message: Deliver, _: &mut Self::Context) -> Outcome {
        assert_eq!(message.payload, message.delivery.body());
        self.0.add(&message.delivery);
        Outcome::Ack
    }
}

pub async fn an_actor_handles_deliveries(server: &impl Server) {
    server.topic("b-actor", Kind::Normal, 4).await;
    server.group("b-actor", 16, false).await;
    let seen = Seen::default();
    let ledger = Ledger(seen.clone()).start();
    let spec = spec("b-actor", "b-actor").handler(ledger.recipient());
    let consumer = server.client().start(spec.build().unwrap()).await.unwrap();
    send(server, "b-actor", numbered(50)).await;
    seen.until_bodies(50).await;
    assert_eq!(end(consumer).await.acked, 50);
}

pub async fn two_consumers_share_a_topic_of_one_queue(server: &impl Server) {
    server.topic("b-share", Kind::Normal, 1).await;
    server.group("b-share", 16, false).await;
    let seen = Seen::default();
    let mut consumers = Vec::new();
    for name in ["one", "two"] {
        let noted = seen.clone();
        let spec = spec("b-share", "b-share")
            .concurrency(4)
            .max_cached_messages(16)
            .handler(move |delivery: Delivery| {
                let noted = noted.clone();
                async move {
                    tokio::time::sleep(millis(5)).await;
                    noted.add_by(&delivery, name);
                }
            });
        consumers.push(server.client().start(spec.build().unwrap()).await.unwrap());
    }
    send(server, "b-share", numbered(600)).await;
    seen.until_bodies(600).await;
    for consumer in consumers {
        end(consumer).await;
    }
    let one = seen.all().iter().filter(|sight| sight.by == "one").count();
    assert_eq!(seen.all().len(), 600, "none twice");
    assert!(
        (120..=480).contains(&one),
        "both take a good part: {one} of 600"
    );
}

pub async fn no_more_handlers_run_than_allowed(server: &impl Server) {
    server.topic("b-limit", Kind::Normal, 4).await;
    server.group("b-limit", 16, false).await;
    send(server, "b-limit", numbered(60)).await;
    let seen = Seen::default();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (noted, peak) = (seen.clone(), most.clone());
    let spec = spec("b-limit", "b-limit")
        .concurrency(3)
        .handler(move |delivery: Delivery| {
            let (noted, running, peak) = (noted.clone(), running.clone(), peak.clone());
            async move {
                let now = running.fetch_add(1, Ordering::AcqRel) + 1;
                peak.fetch_max(now, Ordering::AcqRel);
                tokio::time::sleep(millis(10)).await;
                running.fetch_sub(1, Ordering::AcqRel);
                noted.add(&delivery);
            }
        });
    let consumer = server.client().start(spec.build().unwrap()).await.unwrap();
    seen.until_bodies(60).await;
    end(consumer).await;
    assert_eq!(
        most.load(Ordering::Acquire),
        3,
        "all three places are used, and no more"
    );
}

pub async fn shutdown_gives_back_what_has_not_started(server: &impl Server) {
    server.topic("b-back", Kind::Normal, 1).await;
    server.group("b-back", 16, false).await;
    send(server, "b-back", numbered(20)).await;
    let (first, second) = (Seen::default(), Seen::default());
    let noted = first.clone();
    let slow = spec("b-back", "b-back")
        .concurrency(1)
        .handler(move |delivery: Delivery| {
            let noted = noted.clone();
            async move {
                noted.add(&delivery);
                tokio::time::sleep(millis(500)).await;
            }
        });
    let consumer = server.client().start(slow.build().unwrap()).await.unwrap();
    first.until_bodies(1).await;
    let report = consumer.shutdown(GRACE).await;
    assert!(report.in_time && report.abandoned == 0, "{report:?}");
    assert_eq!(
        report.handed_back as usize,
        20 - first.all().len(),
        "{report:?}"
    );
    let consumer = consume(server, "b-back", "b-back", &second, |_| ()).await;
    second.until_bodies(20 - first.all().len()).await;
    end(consumer).await;
    let mut bodies = first.by_body();
    bodies.extend(second.by_body());
    assert_eq!(bodies.len(), 20, "every message was handled by one of them");
    assert_eq!(first.all().len() + second.all().len(), 20, "and none twice");
}

/// A message that says it is compressed.
fn flagged(topic: &str, id: &str, body: Vec<u8>) -> pb::Message {
    pb::Message {
        topic: Some(pb::Resource {
            name: topic.to_owned(),
            ..Default::default()
        }),
        body: body.into(),
        system_properties: Some(pb::SystemProperties {
            message_id: id.to_owned(),
            message_type: pb::MessageType::Normal as i32,
            body_encoding: pb::Encoding::Gzip as i32,
            ..Default::default()
        }),
        ..Default::default()
    }
}

pub async fn a_compressed_body_is_inflated(server: &impl Server) {
    server.topic("b-inflate", Kind::Normal, 1).await;
    server.group("b-inflate", 16, false).await;
    let text = "the same words again and again, ".repeat(100);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(text.as_bytes()).unwrap();
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(text.as_bytes()).unwrap();
    let bodies = [
        gzip.finish().unwrap(),
        zlib.finish().unwrap(),
        lz4.finish().unwrap(),
    ];
    for (id, body) in ["gzip", "zlib", "lz4"].into_iter().zip(bodies) {
        server.store(flagged("b-inflate", id, body)).await;
    }
    let seen = Seen::default();
    let consumer = consume(server, "b-inflate", "b-inflate", &seen, |_| ()).await;
    seen.until(|sights| sights.len() == 3).await;
    end(consumer).await;
    assert_eq!(seen.by_body(), [(text, 3)].into());
}

pub async fn a_body_that_cannot_be_inflated_costs_its_neighbours_nothing(server: &impl Server) {
    server.topic("b-damaged", Kind::Normal, 1).await;
    server.group("b-damaged", 0, false).await;
    server.store(flagged("b-damaged", "bad", vec![0x1f])).await;
    send(server, "b-damaged", numbered(5)).await;
    let seen = Seen::default();
    let consumer = consume(server, "b-damaged", "b-damaged", &seen, |_| ()).await;
    seen.until_bodies(5).await;
    let stats = end(consumer).await;
    assert_eq!(
        seen.all().len(),
        5,
        "the damaged one never reaches the handler"
    );
    assert_eq!(stats.acked, 5, "{stats:?}");
    assert!(
        stats.corrupted >= 1 && stats.retried >= 1,
        "it was retried: {stats:?}"
    );
}

pub async fn the_largest_body_is_delivered(server: &impl Server) {
    server.topic("b-large", Kind::Normal, 1).await;
    server.group("b-large", 16, false).await;
    let (deliver, mut delivered) = tokio::sync::mpsc::channel(1);
    let spec = spec("b-large", "b-large").handler(move |delivery: Delivery| {
        let deliver = deliver.clone();
        async move {
            deliver
                .send(delivery.body().len())
                .await
                .map_err(|_| "nobody looks")
        }
    });
    let consumer = server.client().start(spec.build().unwrap()).await.unwrap();
    let producer = server.producer("b-large").await;
    let message = Message::builder("b-large")
        .body(vec![b'x'; 4 * 1024 * 1024])
        .property("with", "properties")
        .build();
    producer.send(message.unwrap()).await.unwrap();
    assert_eq!(delivered.recv().await, Some(4 * 1024 * 1024));
    producer.shutdown(GRACE).await;
    end(consumer).await;
}

pub async fn an_ordered_group_is_handled_one_by_one(server: &impl Server) {
    server.topic("b-fifo", Kind::Fifo, 1).await;
    server.group("b-fifo", 3, true).await;
    let producer = server.producer("b-fifo").await;
    for body in numbered(12) {
        let message = Message::builder("b-fifo").body(body).group("one").build();
        producer.send(message.unwrap()).await.unwrap();
    }
    producer.shutdown(GRACE).await;
    let seen = Seen::default();
    let running = Arc::new(AtomicUsize::new(0));
    let noted = seen.clone();
    let spec = spec("b-fifo", "b-fifo").handler(move |delivery: Delivery| {
        let (noted, running) = (noted.clone(), running.clone());
        async move {
            assert_eq!(running.fetch_add(1, Ordering::AcqRel), 0, "one at a time");
            tokio::time::sleep(millis(5)).await;
            running.fetch_sub(1, Ordering::AcqRel);
            noted.add(&delivery);
            if delivery.body().as_ref() == b"m4" && delivery.attempt() == 1 {
                return Outcome::RetryAfter(millis(50));
            }
            Outcome::Ack
        }
    });
    let consumer = server.client().start(spec.build().unwrap()).await.unwrap();
    seen.until_bodies(12).await;
    end(consumer).await;
    let order: Vec<_> = seen.all().into_iter().map(|sight| sight.body).collect();
    let mut expected: Vec<_> = numbered(12).collect();
    expected.insert(5, "m4".to_owned());
    assert_eq!(
        order, expected,
        "the failed one is repeated before its successors"
    );
}
