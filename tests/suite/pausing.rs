//! Consumers that are told to receive nothing for a while.

use futures::StreamExt;
use rocketmq_actors::{
    Delivery, ErrorKind, EventKind, Filter, PushConsumer, PushConsumerSpec, Reason,
};
use rocketmq_embedded::{EmbeddedBroker, RequestBody, Rpc, TopicConfig};

use super::harness::*;

/// Longer than a poll that was under way.
const POLLS_ENDED: u64 = 30;

async fn two_topics() -> Checked {
    let broker = broker(|builder| builder).await;
    broker.create_topic("t", TopicConfig::normal(2));
    broker.create_topic("u", TopicConfig::normal(1));
    broker
}

async fn consumer(broker: &EmbeddedBroker) -> PushConsumer {
    let spec = PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .subscribe("u", Filter::any())
        .handler(|_: Delivery| async {})
        .build()
        .unwrap();
    client(broker).start(spec).await.unwrap()
}

fn receives(broker: &EmbeddedBroker, topic: &str) -> usize {
    let record = broker.record();
    let of_topic = record.of(Rpc::ReceiveMessage).filter(|call| {
        let RequestBody::ReceiveMessage(request) = &call.request else {
            return false;
        };
        let queue = request.message_queue.as_ref();
        queue.and_then(|queue| queue.topic.as_ref()).unwrap().name == topic
    });
    of_topic.count()
}

#[test]
fn a_paused_consumer_starts_no_receive_and_goes_on_where_it_was() {
    virtually(async {
        let broker = two_topics().await;
        let consumer = consumer(&broker).await;
        tokio::time::sleep(secs(5)).await;
        consumer.pause();
        assert!(consumer.is_paused());
        tokio::time::sleep(secs(POLLS_ENDED)).await;
        let before = receives(&broker, "t") + receives(&broker, "u");
        store_numbered(&broker, "t", 20).await;
        tokio::time::sleep(secs(600)).await;
        assert_eq!(receives(&broker, "t") + receives(&broker, "u"), before);
        assert_eq!(broker.acks().len(), 0);
        consumer.resume();
        assert!(!consumer.is_paused());
        broker.wait_for(|_| broker.acks().len() == 20).await;
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn what_a_paused_consumer_has_cached_is_handled_all_the_same() {
    virtually(async {
        let broker = two_topics().await;
        store_numbered(&broker, "t", 40).await;
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .concurrency(1)
            .handler(|_: Delivery| tokio::time::sleep(secs(10)))
            .build()
            .unwrap();
        let consumer = client(&broker).start(spec).await.unwrap();
        broker.wait_for(|_| broker.deliveries().len() == 40).await;
        consumer.pause();
        broker.wait_for(|_| broker.acks().len() == 40).await;
        assert!(consumer.is_paused());
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn one_topic_is_paused_and_the_others_go_on() {
    virtually(async {
        let broker = two_topics().await;
        let consumer = consumer(&broker).await;
        let error = consumer.pause_topic("other").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(consumer.resume_topic("other").is_err());
        consumer.pause_topic("t").unwrap();
        assert!(!consumer.is_paused());
        assert_eq!(consumer.paused_topics(), ["t".into()]);
        tokio::time::sleep(secs(POLLS_ENDED)).await;
        let (of_t, of_u) = (receives(&broker, "t"), receives(&broker, "u"));
        tokio::time::sleep(secs(300)).await;
        assert_eq!(receives(&broker, "t"), of_t);
        assert!(receives(&broker, "u") > of_u);
        consumer.pause();
        consumer.resume_topic("t").unwrap();
        assert_eq!(consumer.paused_topics(), ["u".into()]);
        store_numbered(&broker, "t", 5).await;
        broker.wait_for(|_| broker.acks().len() == 5).await;
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn a_pause_outlives_restarts_of_the_actors_and_a_shutdown_ends_it() {
    virtually(async {
        let broker = two_topics().await;
        let consumer = consumer(&broker).await;
        tokio::time::sleep(secs(5)).await;
        consumer.pause();
        for actor in ["queue", "consumer", "routes", "session"] {
            consumer.crash(actor);
            tokio::time::sleep(secs(POLLS_ENDED)).await;
        }
        assert!(consumer.stats().restarts >= 4, "{:?}", consumer.stats());
        store_numbered(&broker, "t", 20).await;
        let before = receives(&broker, "t");
        tokio::time::sleep(secs(300)).await;
        assert_eq!((receives(&broker, "t"), broker.acks().len()), (before, 0));
        let begun = tokio::time::Instant::now();
        let report = consumer.shutdown(secs(30)).await;
        assert!(report.in_time && begun.elapsed() < secs(2), "{report:?}");
    });
}

#[test]
fn a_pause_is_told_and_is_no_failure() {
    virtually(async {
        let broker = two_topics().await;
        let consumer = consumer(&broker).await;
        let mut told = consumer.events().filter_map(|event| {
            let pausing = match event.kind {
                EventKind::Paused { topic } => Some((true, topic)),
                EventKind::Resumed { topic } => Some((false, topic)),
                _ => None,
            };
            std::future::ready(pausing)
        });
        let health = consumer.health();
        let reason = |topic: Option<&str>| Reason::Paused {
            topic: topic.map(Into::into),
        };
        consumer.pause_topic("t").unwrap();
        consumer.pause_topic("t").unwrap();
        assert_eq!(health.borrow().reasons, [reason(Some("t"))]);
        consumer.pause();
        assert_eq!(health.borrow().reasons, [reason(None)]);
        tokio::time::sleep(secs(1000)).await;
        let long_paused = health.borrow().clone();
        assert!(long_paused.live && long_paused.ready, "{long_paused:?}");
        assert_eq!(long_paused.reasons, [reason(None)]);
        consumer.resume_topic("t").unwrap();
        consumer.resume();
        assert_eq!(health.borrow().reasons, []);
        consumer.resume();
        let told: Vec<_> = told.by_ref().take(4).collect().await;
        let expected = [
            (true, Some("t".into())),
            (true, None),
            (false, Some("t".into())),
            (false, None),
        ];
        assert_eq!(told, expected);
        consumer.shutdown(secs(5)).await;
    });
}
