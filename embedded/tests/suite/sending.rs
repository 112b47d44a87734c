//! What can be sent, and what is answered.

use std::collections::BTreeSet;

use prost_types::Timestamp;
use rocketmq_embedded::TopicConfig;
use rocketmq_embedded::proto as pb;
use rocketmq_embedded::proto::{Code, MessageType, Permission};

use crate::broker;
use crate::client::{Client, grouped, message, properties, receive, resource, seconds, with};

const T: &str = "t";

async fn refusal(client: &Client, message: pb::Message) -> (Code, String) {
    let status = client.send(vec![message]).await.status.unwrap();
    (status.code(), status.message)
}

#[tokio::test(start_paused = true)]
async fn a_message_is_stored_with_its_id_and_offsets_count_per_queue() {
    let broker = broker().await;
    broker.create_topic("one", TopicConfig::normal(1));
    let client = Client::of(&broker, "p");
    for offset in 0..3 {
        let id = format!("m{offset}");
        let reply = client.send(vec![message("one", &id)]).await;
        assert_eq!(
            reply.status.unwrap(),
            pb::Status {
                code: Code::Ok.into(),
                message: "OK".into()
            }
        );
        let entry = &reply.entries[0];
        assert_eq!((&entry.message_id, &entry.transaction_id), (&id, &id));
        assert_eq!(entry.offset, offset);
        assert_eq!(entry.recall_handle, "");
    }
    let stored = broker.messages("one");
    assert_eq!(stored.len(), 3);
    assert_eq!(stored[2].message_id, "m2");
    assert_eq!(stored[2].offset, 2);
    assert_eq!(stored[2].body, "body of m2");
}

#[tokio::test(start_paused = true)]
async fn a_batch_lies_in_one_queue_and_gets_one_entry_with_an_id_of_its_own() {
    let broker = broker().await;
    let client = Client::of(&broker, "p");
    let reply = client
        .send(vec![message(T, "a"), message(T, "b"), message(T, "c")])
        .await;
    assert_eq!(reply.entries.len(), 1);
    let id = &reply.entries[0].message_id;
    assert!(id.starts_with("FD00") && id.len() == 56, "{id}");
    let stored = broker.messages(T);
    let queues: BTreeSet<_> = stored.iter().map(|message| message.queue).collect();
    assert_eq!((stored.len(), queues.len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn messages_without_a_group_take_turns_over_the_queues() {
    let broker = broker().await;
    let client = Client::of(&broker, "p");
    client.send_ids(T, &["a", "b", "c", "d"]).await;
    let queues: Vec<_> = broker.messages(T).iter().map(|m| m.queue).collect();
    assert_eq!(queues, [0, 0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_group_lie_in_one_queue() {
    let broker = broker().await;
    broker.create_topic("f", TopicConfig::fifo(8));
    let client = Client::of(&broker, "p");
    for group in ["g1", "g2", "g3", "g4"] {
        for n in 0..3 {
            client
                .send(vec![grouped("f", &format!("{group}-{n}"), group)])
                .await;
        }
    }
    let stored = broker.messages("f");
    let places: BTreeSet<_> = stored
        .iter()
        .map(|m| (m.message_group.clone(), m.queue))
        .collect();
    assert_eq!((stored.len(), places.len()), (12, 4));
    let queues: BTreeSet<_> = places.iter().map(|(_, queue)| queue).collect();
    assert!(queues.len() > 1, "groups are spread");
}

#[tokio::test(start_paused = true)]
async fn malformed_messages_are_refused_with_the_proxys_codes() {
    let broker = broker().await;
    let client = Client::of(&broker, "p");
    let valid = || message(T, "m");
    let body = |size: usize| pb::Message {
        body: vec![1; size].into(),
        ..valid()
    };
    let property = |key: &str, value: String| {
        let mut message = valid();
        message.user_properties.insert(key.into(), value);
        message
    };
    let many = {
        let mut message = valid();
        message.user_properties = (0..129).map(|n| (n.to_string(), "v".into())).collect();
        message
    };
    let cases = [
        (message("a b", "m"), Code::IllegalTopic),
        (body(0), Code::MessageBodyEmpty),
        (body(4 * 1024 * 1024 + 1), Code::MessageBodyTooLarge),
        (many, Code::MessagePropertiesTooLarge),
        (
            property("k", "v".repeat(16 * 1024)),
            Code::MessagePropertiesTooLarge,
        ),
        (
            property("KEYS", "v".into()),
            Code::IllegalMessagePropertyKey,
        ),
        (
            property("k", "\u{7}".into()),
            Code::IllegalMessagePropertyKey,
        ),
        (
            with(valid(), |p| p.tag = Some("a|b".into())),
            Code::IllegalMessageTag,
        ),
        (
            with(valid(), |p| p.tag = Some(" ".into())),
            Code::IllegalMessageTag,
        ),
        (
            with(valid(), |p| p.keys = vec!["\n".into()]),
            Code::IllegalMessageKey,
        ),
        (message(T, " "), Code::IllegalMessageId),
        (
            with(valid(), |p| p.priority = Some(-1)),
            Code::InternalServerError,
        ),
        (grouped(T, "m", " "), Code::IllegalMessageGroup),
        (grouped(T, "m", &"x".repeat(64)), Code::IllegalMessageGroup),
        (
            with(valid(), |p| {
                p.set_message_type(MessageType::Transaction);
                p.orphaned_transaction_recovery_duration = Some(seconds(3601));
            }),
            Code::BadRequest,
        ),
        (
            with(valid(), |p| {
                p.delivery_timestamp = Some(Timestamp {
                    seconds: i64::MAX,
                    nanos: 0,
                });
            }),
            Code::IllegalDeliveryTime,
        ),
    ];
    for (message, code) in cases {
        let shown = format!("{:?}", message.system_properties);
        assert_eq!(refusal(&client, message).await.0, code, "{shown}");
    }
    assert!(broker.messages(T).is_empty());
    let texts = [
        (body(0), "message body cannot be empty"),
        (
            body(4 * 1024 * 1024 + 1),
            "message body cannot exceed the max 4194304",
        ),
        (
            property("TAGS", "v".into()),
            "property is used by system: TAGS",
        ),
        (message(T, ""), "message id cannot be empty"),
    ];
    for (message, text) in texts {
        assert_eq!(refusal(&client, message).await.1, text);
    }
    assert_eq!(
        refusal(&client, body(4 * 1024 * 1024)).await.0,
        Code::Ok,
        "the limit itself passes"
    );
}

#[tokio::test(start_paused = true)]
async fn batches_of_nothing_or_of_two_topics_are_refused() {
    let broker = broker().await;
    let client = Client::of(&broker, "p");
    let none = client.send(vec![]).await.status.unwrap();
    assert_eq!(
        (none.code(), none.message.as_str()),
        (Code::MessageCorrupted, "no message to send")
    );
    let two = client
        .send(vec![message(T, "a"), message("u", "b")])
        .await
        .status
        .unwrap();
    assert_eq!(
        (two.code(), two.message.as_str()),
        (Code::MessageCorrupted, "topic in message is not same")
    );
}

#[tokio::test(start_paused = true)]
async fn the_type_is_what_the_properties_make_of_a_message_and_has_to_fit_the_topic() {
    let broker = broker().await;
    broker.create_topic("f", TopicConfig::fifo(1));
    broker.create_topic("m", TopicConfig::mixed(1));
    let client = Client::of(&broker, "p");
    let fifo_in_name = with(message("f", "m"), |p| p.set_message_type(MessageType::Fifo));
    let (code, text) = refusal(&client, fifo_in_name).await;
    assert_eq!(code, Code::MessagePropertyConflictWithType);
    assert!(
        text.ends_with("the expected type is FIFO, but actual type is NORMAL"),
        "{text}"
    );
    assert_eq!(refusal(&client, grouped("f", "m", "g")).await.0, Code::Ok);
    assert_eq!(refusal(&client, grouped("m", "m", "g")).await.0, Code::Ok);
    let (code, text) = refusal(&client, grouped(T, "m", "g")).await;
    assert_eq!(code, Code::MessagePropertyConflictWithType);
    assert!(
        text.ends_with("the expected type is NORMAL, but actual type is FIFO"),
        "{text}"
    );
    let (code, text) = refusal(&client, message("unknown", "m")).await;
    assert_eq!(code, Code::MessagePropertyConflictWithType);
    assert!(text.contains("the expected type is UNSPECIFIED"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_cannot_be_written_is_forbidden() {
    let broker = broker().await;
    broker.create_topic("r", TopicConfig::normal(1).permission(Permission::Read));
    let client = Client::of(&broker, "p");
    let refused = refusal(&client, message("r", "m")).await;
    assert_eq!(refused, (Code::Forbidden, "no writable queue".into()));
}

#[tokio::test(start_paused = true)]
async fn a_message_is_received_as_it_was_sent_with_what_the_broker_adds() {
    let broker = broker().await;
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", T).await;
    let mut sent = with(message(T, "m"), |p| {
        p.tag = Some("tag".into());
        p.keys = vec!["k1".into(), "k2 k3".into()];
        p.born_host = "born".into();
        p.born_timestamp = Some(Timestamp {
            seconds: 7,
            nanos: 0,
        });
        p.set_body_encoding(pb::Encoding::Gzip);
        p.trace_context = Some("trace".into());
    });
    sent.topic = Some(pb::Resource {
        resource_namespace: "ns".into(),
        name: T.into(),
    });
    sent.user_properties.insert("a".into(), "b".into());
    sent.body = "hello".into();
    client.send(vec![sent]).await;
    let received = client.receive(receive("g", T)).await.only();
    let p = properties(&received);
    assert_eq!(received.topic, resource(T));
    assert_eq!(received.body, "hello");
    assert_eq!(received.user_properties["a"], "b");
    assert_eq!(p.message_id, "m");
    assert_eq!(p.tag.as_deref(), Some("tag"));
    assert_eq!(p.keys, ["k1", "k2", "k3"]);
    assert_eq!(p.body_encoding(), pb::Encoding::Gzip);
    assert_eq!(p.message_type(), MessageType::Normal);
    assert_eq!(p.born_host, "born");
    assert_eq!(p.born_timestamp.unwrap().seconds, 7);
    assert_eq!(p.trace_context.as_deref(), Some("trace"));
    let digest = p.body_digest.unwrap();
    assert_eq!(digest.r#type(), pb::DigestType::Md5);
    assert_eq!(digest.checksum, "5D41402ABC4B2A76B9719D911017C592");
    assert_eq!(p.store_host, "10.0.0.1:8081");
    assert!(p.store_timestamp.is_some());
    assert_eq!((p.queue_id, p.queue_offset), (0, Some(0)));
    assert_eq!(p.delivery_attempt, Some(1));
    assert_eq!(p.invisible_duration, None);
    let handle = p.receipt_handle.unwrap();
    let fields: Vec<_> = handle.split(' ').collect();
    assert_eq!(fields.len(), 9);
    assert_eq!(
        (fields[0], fields[2], fields[4], fields[5]),
        ("0", "10000", "0", "broker-0")
    );
}

#[tokio::test(start_paused = true)]
async fn priorities_pick_the_queue_and_high_ones_come_first() {
    let broker = broker().await;
    broker.create_topic("p", TopicConfig::priority(4));
    let client = Client::of(&broker, "c");
    let _telemetry = client.subscribe("g", "p").await;
    for (id, priority) in [("low", 0), ("high", 99), ("mid", 2)] {
        client
            .send(vec![with(message("p", id), |p| {
                p.priority = Some(priority)
            })])
            .await;
    }
    let received = client.receive(receive("g", "p")).await;
    assert_eq!(received.ids(), ["high", "mid", "low"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_real_proxy_does_not_serve_says_so() {
    let broker = broker().await;
    let client = Client::of(&broker, "p");
    broker.create_topic("d", TopicConfig::delay(1));
    let recall = client.request(pb::RecallMessageRequest {
        topic: resource("d"),
        recall_handle: "x".into(),
    });
    let status = client
        .grpc
        .clone()
        .recall_message(recall)
        .await
        .unwrap()
        .into_inner()
        .status
        .unwrap();
    assert_eq!(status.message, "recall failed, operation is forbidden");
    let offset = client.request(pb::GetOffsetRequest::default());
    let status = client.grpc.clone().get_offset(offset).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
    assert_eq!(
        status.message(),
        "Method apache.rocketmq.v2.MessagingService/GetOffset is unimplemented"
    );
    let pull = client.request(pb::PullMessageRequest::default());
    let status = client.grpc.clone().pull_message(pull).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
}

#[tokio::test(start_paused = true)]
async fn messages_can_be_put_without_a_producer_and_are_checked_alike() {
    let broker = broker().await;
    let entries = broker.put(0, vec![message(T, "m")]).unwrap();
    assert_eq!(entries[0].message_id, "m");
    let refused = broker.put(0, vec![message("unknown", "m")]).unwrap_err();
    assert_eq!(refused.code(), Code::MessagePropertyConflictWithType);
    assert!(broker.put(7, vec![message(T, "m")]).unwrap().is_empty());
    assert_eq!(broker.messages(T).len(), 1);
    assert!(broker.record().is_empty());
}
