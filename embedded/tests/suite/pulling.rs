//! Pulling, where it is served.

use rocketmq_embedded::proto as pb;
use rocketmq_embedded::proto::pull_message_response::Content;
use rocketmq_embedded::proto::{Code, QueryOffsetPolicy};
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use tokio::time::Instant;

use crate::client::{Client, properties, push_settings, resource, seconds, tagged, tags};
use crate::secs;

async fn pulling() -> (EmbeddedBroker, Client) {
    let builder = EmbeddedBroker::builder().in_memory().pull_rpcs(true);
    let broker = builder.start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let client = Client::of(&broker, "c");
    let mut settings = push_settings("g", "t");
    settings.set_client_type(pb::ClientType::PullConsumer);
    client.settle(settings).await;
    (broker, client)
}

fn queue(id: i32) -> Option<pb::MessageQueue> {
    Some(pb::MessageQueue {
        topic: resource("t"),
        id,
        ..pb::MessageQueue::default()
    })
}

/// Code, message ids, next offset.
async fn pull(client: &Client, offset: i64, filter: &str, wait: i64) -> (Code, Vec<String>, i64) {
    let request = client.request(pb::PullMessageRequest {
        group: resource("g"),
        message_queue: queue(0),
        offset,
        batch_size: 2,
        filter_expression: Some(tags(filter)),
        long_polling_timeout: Some(seconds(wait)),
    });
    let reply = client.grpc.clone().pull_message(request).await.unwrap();
    let mut stream = reply.into_inner();
    let (mut code, mut ids, mut next) = (Code::Unspecified, Vec::new(), -1);
    while let Some(item) = stream.message().await.unwrap() {
        match item.content.unwrap() {
            Content::Status(status) => code = status.code(),
            Content::Message(message) => ids.push(properties(&message).message_id),
            Content::NextOffset(offset) => next = offset,
        }
    }
    (code, ids, next)
}

#[tokio::test(start_paused = true)]
async fn messages_are_read_from_any_offset_as_often_as_asked() {
    let (_broker, client) = pulling().await;
    for (id, tag) in [("a", "A"), ("b", "B"), ("c", "A")] {
        client.send(vec![tagged("t", id, tag)]).await;
    }
    let ids = |ids: &[&str]| -> Vec<String> { ids.iter().map(|id| (*id).to_owned()).collect() };
    for _ in 0..2 {
        assert_eq!(
            pull(&client, 0, "*", 0).await,
            (Code::Ok, ids(&["a", "b"]), 2)
        );
    }
    assert_eq!(pull(&client, 2, "*", 0).await, (Code::Ok, ids(&["c"]), 3));
    assert_eq!(
        pull(&client, 0, "A", 0).await,
        (Code::Ok, ids(&["a", "c"]), 3)
    );
    assert_eq!(
        pull(&client, 3, "*", 0).await,
        (Code::MessageNotFound, vec![], 3)
    );
    assert_eq!(pull(&client, 4, "*", 0).await.0, Code::IllegalOffset);
    assert_eq!(pull(&client, -1, "*", 0).await.0, Code::IllegalOffset);
}

#[tokio::test(start_paused = true)]
async fn a_pull_waits_for_a_message() {
    let (_broker, client) = pulling().await;
    let start = Instant::now();
    assert_eq!(pull(&client, 0, "*", 7).await.0, Code::MessageNotFound);
    assert_eq!(start.elapsed().as_secs(), 7);
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { pull(&client, 0, "*", 20).await }
    });
    tokio::time::sleep(secs(3)).await;
    client.send_ids("t", &["m"]).await;
    assert_eq!(waiting.await.unwrap().1, ["m"]);
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn offsets_are_noted_per_group_and_found_by_place_and_time() {
    let (broker, client) = pulling().await;
    let mut grpc = client.grpc.clone();
    let get = || {
        client.request(pb::GetOffsetRequest {
            group: resource("g"),
            message_queue: queue(0),
        })
    };
    let none = grpc.get_offset(get()).await.unwrap().into_inner();
    assert_eq!(none.status.unwrap().code(), Code::OffsetNotFound);
    client.send_ids("t", &["a"]).await;
    tokio::time::sleep(secs(5)).await;
    client.send_ids("t", &["b"]).await;
    let update = |offset| {
        client.request(pb::UpdateOffsetRequest {
            group: resource("g"),
            message_queue: queue(0),
            offset,
        })
    };
    let far = grpc.update_offset(update(9)).await.unwrap().into_inner();
    assert_eq!(far.status.unwrap().code(), Code::IllegalOffset);
    grpc.update_offset(update(2)).await.unwrap();
    assert_eq!(grpc.get_offset(get()).await.unwrap().into_inner().offset, 2);
    let wall = broker.now() - secs(2);
    let wall = wall.duration_since(std::time::UNIX_EPOCH).unwrap();
    let at = prost_types::Timestamp {
        seconds: wall.as_secs().try_into().unwrap(),
        nanos: 0,
    };
    let cases = [
        (QueryOffsetPolicy::Beginning, 0),
        (QueryOffsetPolicy::End, 2),
        (QueryOffsetPolicy::Timestamp, 1),
    ];
    for (policy, expected) in cases {
        let query = client.request(pb::QueryOffsetRequest {
            message_queue: queue(0),
            query_offset_policy: policy.into(),
            timestamp: Some(at),
        });
        let reply = grpc.query_offset(query).await.unwrap().into_inner();
        assert_eq!(reply.offset, expected, "{policy:?}");
    }
    let unknown = client.request(pb::GetOffsetRequest {
        group: resource("g"),
        message_queue: queue(5),
    });
    let unknown = grpc.get_offset(unknown).await.unwrap().into_inner();
    assert_eq!(unknown.status.unwrap().code(), Code::Forbidden);
}
