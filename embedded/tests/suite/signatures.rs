//! Signed calls.

use hmac::{Hmac, KeyInit, Mac};
use rocketmq_embedded::proto::Code;
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use sha1::Sha1;

use crate::client::{Client, producer_settings, receive};

const DATE: &str = "20200101T000000Z";

fn authorization(user: &str, secret: &str) -> String {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(DATE.as_bytes());
    let signature = data_encoding::HEXUPPER.encode(&mac.finalize().into_bytes());
    format!(
        "MQv2-HMAC-SHA1 Credential={user}/x, SignedHeaders=x-mq-date-time, Signature={signature}"
    )
}

async fn guarded() -> EmbeddedBroker {
    let builder = EmbeddedBroker::builder()
        .in_memory()
        .credentials("ak", "sk");
    let broker = builder.start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    broker
}

#[tokio::test(start_paused = true)]
async fn signed_calls_pass_whatever_the_date_and_others_say_what_is_wrong() {
    let broker = guarded().await;
    let plain = Client::of(&broker, "c");
    let dated = plain.clone().header("x-mq-date-time", DATE);
    let signed = |user: &str, secret: &str| {
        dated
            .clone()
            .header("authorization", &authorization(user, secret))
    };
    let cases = [
        (plain, "datetime is null."),
        (dated.clone(), "username cannot be null."),
        (
            dated.clone().header("authorization", "nonsense"),
            "authentication header is incorrect.",
        ),
        (signed("joe", "sk"), "User:joe is not found."),
        (signed("ak", "wrong"), "check signature failed."),
    ];
    for (client, text) in cases {
        let status = client.route("t").await.unwrap().status.unwrap();
        assert_eq!(
            (status.code(), status.message.as_str()),
            (Code::Unauthorized, text)
        );
    }
    let good = signed("ak", "sk");
    assert_eq!(
        good.route("t").await.unwrap().status.unwrap().code(),
        Code::Ok
    );
    good.settle(producer_settings("t")).await;
}

#[tokio::test(start_paused = true)]
async fn unsigned_telemetry_gets_one_answer_and_receives_their_status() {
    let broker = guarded().await;
    let client = Client::of(&broker, "");
    let mut telemetry = client.telemetry(producer_settings("t")).await.unwrap();
    let only = telemetry.down.message().await.unwrap().unwrap();
    assert_eq!(
        only.status.unwrap().code(),
        Code::Unauthorized,
        "asked before the client id"
    );
    assert!(telemetry.down.message().await.unwrap().is_none());
    assert_eq!(
        client.receive(receive("g", "t")).await.status().code(),
        Code::Unauthorized
    );
}
