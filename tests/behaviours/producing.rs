//! How a producer produces.

use std::collections::BTreeSet;

use actix::{Actor, Context, Handler, Recipient, ResponseFuture};
use rocketmq_actors::{Message, SendMessage};

use super::{GRACE, Kind, Server};

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
