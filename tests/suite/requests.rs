//! What every request carries: headers, a deadline, the namespace, a fresh signature.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use rocketmq_actors::{
    Client, ClientConfigBuilder, Credentials, Delivery, Filter, Message, Producer, ProducerSpec,
    PushConsumer, PushConsumerSpec,
};
use rocketmq_embedded::{EmbeddedBroker, RequestBody, Rpc, TopicConfig};

use super::harness::*;

/// A consumer that handled three messages of a producer; both have lived a while and ended.
async fn ended(broker: &EmbeddedBroker, config: ClientConfigBuilder) -> (PushConsumer, Producer) {
    broker.create_topic("t", TopicConfig::normal(1));
    let client = Client::new(config.build().unwrap());
    let spec = PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(|delivery: Delivery| async move {
            if delivery.attempt() == 1 {
                Err("once")
            } else {
                Ok(())
            }
        })
        .build()
        .unwrap();
    let consumer = client.start(spec).await.unwrap();
    let producer = client
        .start(ProducerSpec::builder().topic("t").build().unwrap())
        .await
        .unwrap();
    let messages = (0..3).map(|n| Message::builder("t").body(format!("m{n}")).build().unwrap());
    for sent in producer.send_all(messages).await {
        sent.unwrap();
    }
    broker.wait_for(|_| broker.acks().len() == 3).await;
    tokio::time::sleep(secs(11)).await;
    consumer.shutdown(secs(5)).await;
    producer.shutdown(secs(5)).await;
    (consumer, producer)
}

#[test]
fn every_request_carries_the_headers_and_a_deadline() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        let (consumer, producer) = ended(&broker, config(&broker)).await;
        let mut kinds = BTreeSet::new();
        let mut ids = BTreeSet::new();
        let record = broker.record();
        for call in record.calls() {
            let headers = &call.headers;
            assert!([consumer.client_id(), producer.client_id()].contains(&&*headers.client_id));
            assert_eq!(headers.language, "RUST", "{call:?}");
            assert_eq!(headers.protocol, "v2");
            // Servers compare it with this, as text.
            assert!(headers.version.as_str() > "5.0.3", "{call:?}");
            assert_eq!(headers.namespace, "");
            assert_eq!(headers.date_time.len(), 16, "{call:?}");
            assert_eq!(headers.authorization, "", "nobody signs");
            assert!(
                headers.timeout.is_some_and(|timeout| timeout >= secs(1)),
                "{call:?}"
            );
            kinds.insert(format!("{:?}", call.rpc));
            if call.rpc != Rpc::Telemetry {
                assert!(
                    ids.insert(headers.request_id.clone()),
                    "an id of its own: {call:?}"
                );
            }
        }
        assert_eq!(kinds.len(), 9, "{kinds:?}");
    });
}

/// The namespaces of all topics and groups in a request.
fn namespaces(request: &RequestBody) -> Vec<String> {
    // Every resource shows itself so, however deep it lies.
    let text = format!("{request:?}");
    text.split("resource_namespace: \"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(ToOwned::to_owned)
        .collect()
}

#[test]
fn the_namespace_is_in_the_headers_and_in_every_topic_and_group() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        ended(&broker, config(&broker).namespace("tenant")).await;
        let record = broker.record();
        let mut named = 0;
        for call in record.calls() {
            assert_eq!(call.headers.namespace, "tenant", "{call:?}");
            let namespaces = namespaces(&call.request);
            // A queue is echoed as the server named it, and this one knows no namespaces.
            let foreign = usize::from(call.rpc == Rpc::ReceiveMessage);
            assert!(
                namespaces.iter().filter(|name| *name != "tenant").count() <= foreign,
                "{call:?}"
            );
            named += namespaces.len();
        }
        assert!(named > 20, "{named} resources were looked at");
    });
}

#[test]
fn the_provider_is_asked_for_each_request_and_each_is_signed_by_its_date() {
    virtually(async {
        let broker = broker(|builder| builder.credentials("key", "secret")).await;
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let credentials = Credentials::new("key", "secret")
            .unwrap()
            .with_token("token")
            .unwrap();
        let provider = move || {
            count.fetch_add(1, Ordering::AcqRel);
            Some(credentials.clone())
        };
        ended(&broker, config(&broker).credentials(provider)).await;
        let record = broker.record();
        let streams: usize = record
            .of(Rpc::Telemetry)
            .map(|call| &call.headers.request_id)
            .collect::<BTreeSet<_>>()
            .len();
        let requests = record.len() - record.count(Rpc::Telemetry) + streams;
        assert_eq!(asked.load(Ordering::Acquire), requests);
        let mut signatures = BTreeSet::new();
        for call in record.calls() {
            let headers = &call.headers;
            assert!(
                headers.authorization.starts_with(
                    "MQv2-HMAC-SHA1 Credential=key, SignedHeaders=x-mq-date-time, Signature="
                ),
                "{call:?}"
            );
            assert_eq!(headers.session_token, "token");
            signatures.insert((headers.date_time.clone(), headers.authorization.clone()));
        }
        let dates: BTreeSet<_> = signatures.iter().map(|(date, _)| date).collect();
        assert!(
            dates.len() > 3 && dates.len() == signatures.len(),
            "one signature a date"
        );
    });
}
