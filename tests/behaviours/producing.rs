//! How a producer produces.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use actix::{Actor, Context, Handler, Recipient, ResponseFuture};
use futures::future::join_all;
use rocketmq_actors::{
    Batching, Delivery, Filter, Message, ProducerSpec, PushConsumerSpec, SendMessage,
};
use tokio::{sync::mpsc, time::timeout};

use super::{GRACE, Kind, Server};

/// Longer than the messages of any behaviour here take.
const PATIENCE: Duration = Duration::from_secs(60);

fn message(topic: &str, body: &str) -> Message {
    Message::builder(topic)
        .body(body.to_owned())
        .build()
        .unwrap()
}

pub async fn each_message_gets_a_receipt(server: &impl Server) {
    server.topic("p-receipt", Kind::Normal, 2).await;
    let producer = server.producer("p-receipt").await;
    let mut places = BTreeSet::new();
    for number in 0..8 {
        let receipt = producer
            .send(message("p-receipt", &format!("m{number}")))
            .await
            .unwrap();
        assert_eq!(receipt.message_id().len(), 34);
        assert_eq!(receipt.topic(), "p-receipt");
        assert!(receipt.recall_handle().is_none());
        places.insert((receipt.message_id().to_owned(), receipt.offset()));
    }
    assert_eq!(
        places.len(),
        8,
        "every message has an id of its own: {places:?}"
    );
    assert_eq!(producer.stats().sent, 8);
    let report = producer.shutdown(GRACE).await;
    assert_eq!(report.cut_off, 0, "{report:?}");
}

pub async fn many_messages_get_a_result_each(server: &impl Server) {
    server.topic("p-many", Kind::Normal, 4).await;
    let producer = server.producer("p-many").await;
    let messages = (0..300).map(|number| message("p-many", &format!("m{number}")));
    let results = producer.send_all(messages).await;
    assert_eq!(results.len(), 300);
    let ids: BTreeSet<_> = results
        .into_iter()
        .map(|sent| sent.unwrap().message_id().to_owned())
        .collect();
    assert_eq!(ids.len(), 300);
    producer.shutdown(GRACE).await;
}

/// Under one number: body, tag, key and, for every third, a property.
fn numbered(number: usize) -> Message {
    let name = format!("m{number}");
    let message = Message::builder("p-together").body(name.clone());
    let message = message.tag(format!("tag{}", number % 5)).key(&name);
    match number % 3 {
        0 => message.property("own", name),
        _ => message,
    }
    .build()
    .unwrap()
}

/// What a delivery tells of its message.
fn told(delivery: &Delivery) -> Message {
    let message = Message::builder(delivery.topic()).body(delivery.body().clone());
    let message = message
        .tag(delivery.tag().unwrap())
        .keys(delivery.keys().to_vec());
    match delivery.property("own") {
        Some(own) => message.property("own", own),
        None => message,
    }
    .build()
    .unwrap()
}

/// Two thousand messages in shared requests: each arrives once and as it was sent, and each sender
/// gets the id of its own.
pub async fn messages_that_share_requests_are_kept_apart(server: &impl Server) {
    const COUNT: usize = 2000;
    server.topic("p-together", Kind::Normal, 4).await;
    server.group("p-together", 16, false).await;
    let client = server.client();
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let consumer = PushConsumerSpec::builder("p-together")
        .subscribe("p-together", Filter::any())
        .handler(move |delivery: Delivery| {
            let sight = (delivery.message_id().to_owned(), told(&delivery));
            let arrived = arrived.clone();
            async move { arrived.send(sight).unwrap() }
        });
    let consumer = client.start(consumer.build().unwrap()).await.unwrap();
    let spec = ProducerSpec::builder().topic("p-together");
    let spec = spec.batching(Batching::adaptive()).build().unwrap();
    let producer = client.start(spec).await.unwrap();
    let sent = join_all((0..COUNT).map(|number| producer.send(numbered(number)))).await;
    let stats = producer.stats();
    assert!(stats.requests <= 250 && stats.retries == 0, "{stats:?}");
    let mut seen = HashMap::new();
    for _ in 0..COUNT {
        let arrival = timeout(PATIENCE, arrivals.recv()).await;
        let (id, message) = arrival.expect("all arrive").unwrap();
        assert!(seen.insert(id, message).is_none(), "none twice");
    }
    for (number, receipt) in sent.into_iter().enumerate() {
        let id = receipt.unwrap().message_id().to_owned();
        assert_eq!(seen[&id], numbered(number));
    }
    consumer.shutdown(GRACE).await;
    producer.shutdown(GRACE).await;
}

/// The last stage of a pipeline: what it gets, it sends.
struct Stage(Recipient<SendMessage>);

impl Actor for Stage {
    type Context = Context<Self>;
}

#[derive(actix::Message)]
#[rtype(result = "Option<String>")]
struct Order(&'static str);

impl Handler<Order> for Stage {
    type Result = ResponseFuture<Option<String>>;

    fn handle(&mut self, order: Order, _: &mut Self::Context) -> Self::Result {
        let sent = self.0.send(SendMessage {
            message: message("p-actor", order.0),
        });
        Box::pin(async move { Some(sent.await.ok()?.ok()?.message_id().to_owned()) })
    }
}

pub async fn an_actor_pipeline_ends_in_a_topic(server: &impl Server) {
    server.topic("p-actor", Kind::Normal, 1).await;
    let producer = server.producer("p-actor").await;
    let stage = Stage(producer.recipient()).start();
    let id = stage.send(Order("an order")).await.unwrap();
    assert_eq!(id.unwrap().len(), 34);
    assert_eq!(producer.stats().sent, 1);
    producer.shutdown(GRACE).await;
}
