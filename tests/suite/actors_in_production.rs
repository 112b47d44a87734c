//! What went wrong for others who ran actors in production, each item with its number in the
//! collection of field reports.

use std::sync::{Arc, OnceLock};

use actix::{Actor, Handler, SyncContext};
use futures::StreamExt;
use rocketmq_actors::{
    Client, ClientConfig, Deliver, Delivery, DeliveryHandler, EventKind, Filter, Message, Outcome,
    ProducerSpec, PushConsumer, PushConsumerSpec, Text, Tls,
};
use rocketmq_embedded::{Backoff, EmbeddedBroker, GroupConfig, Rpc, TopicConfig};

use super::harness::*;

/// Blocks its thread, and dies by the first sight of poison.
struct Blocking(Tally);

impl Actor for Blocking {
    type Context = SyncContext<Self>;
}

impl Handler<Deliver<String>> for Blocking {
    type Result = Outcome;

    fn handle(&mut self, order: Deliver<String>, _: &mut Self::Context) -> Outcome {
        let times = self.0.add(&order.payload);
        std::thread::sleep(millis(1));
        let poison = ["m3", "m4", "m5"].contains(&order.payload.as_str());
        assert!(!poison || times > 1, "poison");
        Outcome::Ack
    }
}

#[tokio::test]
async fn n85_a_sync_pool_whose_threads_die_is_made_whole_and_fails_no_other_delivery() {
    let broker = EmbeddedBroker::start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let soon = Backoff::Custom(vec![millis(50)]);
    broker.create_group("g", GroupConfig::default().backoff(soon));
    let config = ClientConfig::builder(broker.endpoints()).tls(Tls::Off);
    let client = Client::new(config.build().unwrap());
    let producer = client
        .start(ProducerSpec::builder().topic("t").build().unwrap())
        .await
        .unwrap();
    let seen = Tally::default();
    let counts = seen.clone();
    let pool = DeliveryHandler::sync_pool(2, Text, move || Blocking(counts.clone()));
    let spec = PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(pool)
        .build()
        .unwrap();
    let consumer = client.start(spec).await.unwrap();
    let lost = consumer
        .events()
        .filter(|event| std::future::ready(event.kind == EventKind::HandlerThreadLost));
    let message = |n| Message::builder("t").body(format!("m{n}")).build().unwrap();
    let sent = producer.send_all((0..60).map(message)).await;
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    broker.wait_for(|_| broker.acks().len() == 60).await;
    assert_eq!((seen.ids(), seen.total()), (60, 63));
    assert_eq!(
        lost.take(3).count().await,
        3,
        "more threads died than there were"
    );
    assert_eq!(consumer.stats().failed, 3, "{:?}", consumer.stats());
    consumer.shutdown(secs(5)).await;
}

#[test]
fn n82_a_shutdown_by_a_handler_does_not_wait_for_that_handler() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        store_numbered(&broker, "t", 8).await;
        let own = Arc::new(OnceLock::<PushConsumer>::new());
        let (handle, reports) = (own.clone(), Tally::default());
        let reported = reports.clone();
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .concurrency(4)
            .handler(move |delivery: Delivery| {
                let (handle, reported) = (handle.clone(), reported.clone());
                async move {
                    tokio::time::sleep(secs(2)).await;
                    if ["m1", "m2"].contains(&delivery.message_id()) {
                        let report = handle.get().unwrap().shutdown(secs(60)).await;
                        assert!(report.in_time && report.settled >= 2, "{report:?}");
                        reported.add(delivery.message_id());
                    }
                }
            })
            .build()
            .unwrap();
        let consumer = client(&broker).start(spec).await.unwrap();
        own.set(consumer.clone()).unwrap();
        broker
            .wait_for(|record| record.count(Rpc::NotifyClientTermination) == 1)
            .await;
        let begun = tokio::time::Instant::now();
        let report = consumer.shutdown(secs(60)).await;
        assert!(report.in_time && begun.elapsed() < secs(2), "{report:?}");
        assert_eq!(report.abandoned, 0, "{report:?}");
        assert_eq!(reports.ids(), 2, "both finished after their shutdown");
        let acked = broker.acks().len();
        assert!(acked >= 4, "what the callers handled is settled: {acked}");
        let stats = consumer.stats();
        assert_eq!((stats.tasks, stats.actors), (0, 0), "{stats:?}");
    });
}
