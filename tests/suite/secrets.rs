//! No secret, signature or body shows in any log, at any level, nor in any `Debug` or error.

use rocketmq_actors::{
    Client, Credentials, Delivery, Filter, Message, Outcome, ProducerSpec, PushConsumerSpec,
};
use rocketmq_embedded::{Fault, Rpc, TopicConfig, proto as pb};
use tracing::level_filters::LevelFilter;

use super::{harness::*, log::Log};

const SECRET: &str = "MARKER-SECRET";
const TOKEN: &str = "MARKER-TOKEN";
const BODY: &str = "MARKER-BODY";

#[test]
fn n114_nothing_secret_is_logged_at_trace_or_shown_by_debug() {
    let log = Log::start(LevelFilter::TRACE);
    virtually(async {
        let broker = broker(|builder| builder.credentials("key", SECRET)).await;
        broker.create_topic("t", TopicConfig::normal(1));
        broker.fault(
            Fault::on(Rpc::AckMessage)
                .times(2)
                .status(pb::Code::InternalServerError, "x"),
        );
        broker.fault(
            Fault::on(Rpc::SendMessage)
                .times(1)
                .grpc(tonic::Code::Unavailable, "x"),
        );
        let credentials = Credentials::new("key", SECRET)
            .unwrap()
            .with_token(TOKEN)
            .unwrap();
        let config = config(&broker)
            .credentials(credentials.clone())
            .build()
            .unwrap();
        let mut shown = format!("{config:?} {credentials:?}");
        let client = Client::new(config);
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(|delivery: Delivery| async move {
                assert_eq!(delivery.body().as_ref(), BODY.as_bytes());
                if delivery.attempt() == 1 {
                    Outcome::Retry
                } else {
                    Outcome::Ack
                }
            })
            .build()
            .unwrap();
        let consumer = client.start(spec.clone()).await.unwrap();
        let producer = client
            .start(ProducerSpec::builder().build().unwrap())
            .await
            .unwrap();
        let message = Message::builder("t")
            .body(BODY)
            .property("p", "v")
            .build()
            .unwrap();
        shown += &format!("{client:?} {spec:?} {consumer:?} {producer:?} {message:?}");
        let receipt = producer.send(message).await.unwrap();
        broker.wait_for(|_| broker.acks().len() == 1).await;
        shown += &format!("{receipt:?} {:?} {:?}", consumer.stats(), producer.stats());
        consumer.shutdown(secs(1)).await;
        producer.shutdown(secs(1)).await;
        let signature = broker
            .record()
            .of(Rpc::SendMessage)
            .last()
            .map(|call| call.headers.authorization.clone())
            .unwrap();
        let signature = signature.rsplit('=').next().unwrap().to_owned();
        assert_eq!(signature.len(), 40, "a signature was sent");

        let ours: String = log
            .text()
            .lines()
            .filter(|line| line.contains("rocketmq_actors"))
            .fold(String::new(), |all, line| all + line + "\n");
        assert!(
            ours.contains("settings applied"),
            "the log was captured: {ours}"
        );
        for secret in [SECRET, TOKEN, BODY, signature.as_str()] {
            assert!(!shown.contains(secret), "{secret} is shown: {shown}");
            // Wire libraries included: their TRACE shows frames, but headers are marked secret.
            let line = log
                .text()
                .lines()
                .find(|line| line.contains(secret) && !line.contains("broker"))
                .map(ToOwned::to_owned);
            if secret != BODY {
                assert_eq!(line, None, "{secret} is logged");
            }
            assert!(!ours.contains(secret), "{secret} is logged by us");
        }
    });
}

#[test]
fn a_minute_of_idling_logs_nothing_at_info() {
    let log = Log::start(LevelFilter::INFO);
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(|_: Delivery| async {})
            .build()
            .unwrap();
        let consumer = client(&broker).start(spec).await.unwrap();
        tokio::time::sleep(secs(30)).await;
        assert!(
            log.text().contains("route committed"),
            "the log was captured"
        );
        let before = log.text().len();
        tokio::time::sleep(secs(60)).await;
        assert_eq!(&log.text()[before..], "", "an idle minute is silent");
        consumer.shutdown(secs(1)).await;
    });
}
