//! What is refused, and how the error says so.

use rocketmq_actors::{Delivery, ErrorKind, Filter, Message, ProducerSpec, PushConsumerSpec};

use super::{GRACE, Kind, Server};

pub async fn an_unknown_topic_to_consume(server: &impl Server) {
    server.group("r-unknown", 16, false).await;
    let spec = PushConsumerSpec::builder("r-unknown")
        .subscribe("r-not-there", Filter::any())
        .handler(|_: Delivery| async {})
        .build()
        .unwrap();
    let error = server.client().start(spec).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert_eq!(error.server_code(), Some(40402), "{error}");
    assert!(error.server_request_id().is_some(), "{error}");
}

pub async fn an_unknown_topic_to_send_to(server: &impl Server) {
    let declared = ProducerSpec::builder()
        .topic("r-not-there")
        .build()
        .unwrap();
    let error = server.client().start(declared).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");

    let producer = server
        .client()
        .start(ProducerSpec::builder().build().unwrap())
        .await
        .unwrap();
    let message = Message::builder("r-not-there").body("m").build().unwrap();
    let error = producer.send(message).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.is_definite(), "{error}");
    producer.shutdown(GRACE).await;
}

pub async fn a_body_over_the_limit(server: &impl Server) {
    server.topic("r-large", Kind::Normal, 1).await;
    let producer = server.producer("r-large").await;
    let message = Message::builder("r-large")
        .body(vec![0; 4 * 1024 * 1024 + 1])
        .build();
    let error = producer.send(message.unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(error.is_definite() && !error.is_retryable(), "{error}");
    producer.shutdown(GRACE).await;
}

pub async fn a_message_of_a_type_the_topic_does_not_take(server: &impl Server) {
    server.topic("r-fifo", Kind::Fifo, 1).await;
    let producer = server.producer("r-fifo").await;
    let message = Message::builder("r-fifo").body("no group").build().unwrap();
    let error = producer.send(message).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeConflict, "{error}");
    assert!(error.is_definite(), "{error}");
    producer.shutdown(GRACE).await;
}
