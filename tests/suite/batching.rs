//! Sends that share requests: full under load, at once without, and each with its own result.

use std::{collections::BTreeMap, time::Duration};

use futures::future::join_all;
use rocketmq_actors::{
    Batching, Error, ErrorKind, Message, Producer, ProducerBuilder, ProducerSpec, Result,
    SendReceipt,
};
use rocketmq_embedded::{
    Call, EmbeddedBroker, Fault, Reply, RequestBody, Rpc, StoredMessage, TopicConfig, proto as pb,
};
use tokio::{task::JoinHandle, time::Instant};

use super::harness::*;

fn message(body: impl ToString) -> Message {
    let body = body.to_string();
    Message::builder("t").body(body).build().unwrap()
}

fn spec() -> ProducerBuilder {
    let builder = ProducerSpec::builder().topic("t");
    builder.batching(Batching::adaptive())
}

async fn start(broker: &EmbeddedBroker, builder: ProducerBuilder) -> Producer {
    let spec = builder.build().unwrap();
    client(broker).start(spec).await.unwrap()
}

/// The topic `t` on so many nodes.
async fn with_topic(nodes: usize) -> Checked {
    let broker = broker(|builder| builder.nodes(nodes)).await;
    broker.create_topic("t", TopicConfig::normal(2));
    broker
}

fn bodies(call: &Call) -> Vec<String> {
    match &call.request {
        RequestBody::SendMessage(request) => {
            let body = |message: &pb::Message| String::from_utf8(message.body.to_vec()).unwrap();
            request.messages.iter().map(body).collect()
        }
        other => panic!("not a send: {other:?}"),
    }
}

/// The bodies of every SendMessage.
fn requests(broker: &EmbeddedBroker) -> Vec<Vec<String>> {
    let record = broker.record();
    record.of(Rpc::SendMessage).map(bodies).collect()
}

fn is_batch(call: &Call) -> bool {
    bodies(call).len() > 1
}

/// The first goes alone, and the others together while it is under way.
async fn send_together(producer: &Producer, bodies: &[&str]) -> Vec<Result<SendReceipt>> {
    join_all(bodies.iter().map(|body| producer.send(message(body)))).await
}

fn sending(producer: &Producer, body: &'static str) -> JoinHandle<Result<SendReceipt>> {
    let producer = producer.clone();
    tokio::task::spawn_local(async move { producer.send(message(body)).await })
}

async fn until_sent(broker: &EmbeddedBroker, requests: usize) {
    let sent = broker.wait_for(|record| record.count(Rpc::SendMessage) >= requests);
    sent.await;
}

fn stored(broker: &EmbeddedBroker) -> BTreeMap<String, StoredMessage> {
    let messages = broker.messages("t");
    let count = messages.len();
    let by_body = |one: StoredMessage| (String::from_utf8(one.body.to_vec()).unwrap(), one);
    let all: BTreeMap<_, _> = messages.into_iter().map(by_body).collect();
    assert_eq!(all.len(), count, "each is stored once");
    all
}

fn error_of(sent: &Result<SendReceipt>) -> &Error {
    sent.as_ref().expect_err("must fail")
}

#[test]
fn under_load_requests_are_full() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.fault(Fault::on(Rpc::SendMessage).always().delay_reply(millis(5)));
        let producer = start(&broker, spec().max_in_flight(512)).await;
        let all = join_all((0..2000).map(|number| producer.send(message(number)))).await;
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(stored(&broker).len(), 2000);
        let sizes: Vec<_> = requests(&broker).iter().map(Vec::len).collect();
        assert!(
            sizes.len() <= 2000 / 24,
            "{} requests: {sizes:?}",
            sizes.len()
        );
        assert!(sizes.iter().all(|size| *size <= 32), "{sizes:?}");
        let stats = producer.stats();
        assert_eq!(stats.requests, sizes.len() as u64);
        let batches = sizes.iter().filter(|size| **size > 1).count();
        assert_eq!((stats.batches, stats.retries), (batches as u64, 0));
        assert_eq!((stats.in_flight_messages, stats.in_flight_bytes), (0, 0));
    });
}

#[test]
fn send_all_fills_many_requests_at_a_time() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.fault(Fault::on(Rpc::SendMessage).always().delay_reply(secs(1)));
        let producer = start(&broker, spec()).await;
        let began = Instant::now();
        let all = producer.send_all((0..1024).map(message)).await;
        assert!(all.iter().all(Result::is_ok));
        assert!(began.elapsed() <= secs(4), "{:?}", began.elapsed());
        assert!(requests(&broker).len() <= 36, "{}", requests(&broker).len());
    });
}

#[test]
fn one_at_a_time_has_a_request_each_and_waits_for_nothing() {
    virtually(async {
        let broker = with_topic(1).await;
        let producer = start(&broker, spec()).await;
        let began = Instant::now();
        for number in 0..50 {
            let receipt = producer.send(message(number)).await.unwrap();
            assert!(receipt.offset().is_some(), "its result is its own");
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(requests(&broker).len(), 50);
        assert_eq!(producer.stats().batches, 0);
    });
}

#[test]
fn a_message_waits_no_longer_than_for_the_request_under_way() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.fault(Fault::on(Rpc::SendMessage).delay_reply(millis(700)));
        let producer = start(&broker, spec()).await;
        let first = sending(&producer, "first");
        until_sent(&broker, 1).await;
        let began = Instant::now();
        let sent = send_together(&producer, &["a", "b"]).await;
        assert!(sent.iter().all(Result::is_ok));
        assert_eq!(began.elapsed(), millis(700));
        first.await.unwrap().unwrap();
        assert_eq!(requests(&broker), [vec!["first"], vec!["a", "b"]]);
    });
}

#[test]
fn the_most_messages_and_bytes_of_a_request_are_kept() {
    virtually(async {
        let broker = with_topic(1).await;
        let few = spec().batching(Batching::adaptive().max_messages(3));
        let producer = start(&broker, few).await;
        let sent = send_together(&producer, &["1", "2", "3", "4", "5", "6"]).await;
        assert!(sent.iter().all(Result::is_ok));
        let sizes: Vec<_> = requests(&broker).iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 3, 2]);
    });
}

#[test]
fn n44_servers_up_to_5_3_3_mix_messages_up_which_is_why_batching_is_off_by_default() {
    let tags_stored = |batching: Batching| {
        virtually(async {
            let broker = broker(|builder| builder.legacy_batch(true)).await;
            broker.create_topic("t", TopicConfig::normal(1));
            let producer = start(&broker, spec().batching(batching)).await;
            let tagged = |tag: &str| {
                let message = Message::builder("t").body(tag.to_owned()).tag(tag);
                message.key(tag).property(tag, tag).build().unwrap()
            };
            let all = join_all(["x", "a", "b"].map(|tag| producer.send(tagged(tag)))).await;
            let ids: Vec<_> = all
                .iter()
                .map(|sent| sent.as_ref().unwrap().message_id().to_owned())
                .collect();
            let stored = stored(&broker);
            let own_id = stored["b"].message_id == ids[2];
            let leaked = stored["b"].properties.contains_key("a");
            (
                stored["b"].tag.clone().unwrap(),
                stored["b"].keys.clone(),
                own_id,
                leaked,
            )
        })
    };
    let kept = ("b".to_owned(), vec!["b".to_owned()], true, false);
    assert_eq!(tags_stored(Batching::default()), kept);
    let damaged = ("a".to_owned(), vec!["a".to_owned()], false, true);
    assert_eq!(tags_stored(Batching::adaptive()), damaged);
}

/// Changes the answer to batches.
fn answering(change: impl Fn(&mut pb::SendMessageResponse) + Send + Sync + 'static) -> Fault {
    let fault = Fault::on(Rpc::SendMessage).when(is_batch).always();
    fault.mutate(move |reply| {
        if let Reply::SendMessage(reply) = reply {
            change(reply);
        }
    })
}

#[test]
fn n45_one_result_for_all_is_a_success_of_each_and_nothing_is_sent_again() {
    virtually(async {
        for (id, offset) in [("FD00", 0), ("A,B,C", 17)] {
            let broker = with_topic(1).await;
            broker.fault(answering(move |reply| {
                reply.entries[0].message_id = id.to_owned();
                reply.entries[0].offset = offset;
            }));
            let producer = start(&broker, spec()).await;
            let sent = send_together(&producer, &["0", "1", "2", "3"]).await;
            let stored = stored(&broker);
            for (number, sent) in sent.into_iter().enumerate() {
                let receipt = sent.unwrap();
                assert_eq!(receipt.message_id(), stored[&number.to_string()].message_id);
                assert_eq!(
                    receipt.offset().is_some(),
                    number == 0,
                    "only if it is stated"
                );
                assert!(receipt.transaction_id().is_none() || number == 0);
            }
            assert_eq!(requests(&broker), [vec!["0"], vec!["1", "2", "3"]]);
            assert_eq!(producer.stats().retries, 0);
        }
    });
}

/// A result for each message, the one of number `refused` a refusal.
fn a_result_each(count: usize, refused: Option<usize>) -> Fault {
    answering(move |reply| {
        let template = reply.entries[0].clone();
        let entry = |number: usize| {
            let mut entry = template.clone();
            entry.message_id = format!("made up {number}");
            entry.offset = 40 + i64::try_from(number).unwrap();
            if refused == Some(number) {
                entry.status.as_mut().unwrap().code = pb::Code::Forbidden.into();
            }
            entry
        };
        reply.entries = (0..count).map(entry).collect();
    })
}

#[test]
fn n45_a_result_for_each_is_that_of_its_message() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.fault(a_result_each(3, Some(1)));
        let producer = start(&broker, spec()).await;
        let sent = send_together(&producer, &["0", "1", "2", "3"]).await;
        let offsets: Vec<_> = sent
            .iter()
            .map(|sent| sent.as_ref().ok().and_then(SendReceipt::offset))
            .collect();
        assert_eq!(offsets[1..], [Some(40), None, Some(42)]);
        assert_eq!(error_of(&sent[2]).kind(), ErrorKind::Forbidden);
        assert_eq!(requests(&broker).len(), 2);
    });
}

#[test]
fn n45_a_number_of_results_that_makes_no_sense_is_never_followed_by_a_repeat() {
    virtually(async {
        for count in [0, 2] {
            let broker = with_topic(1).await;
            broker.fault(a_result_each(count, None));
            let producer = start(&broker, spec()).await;
            let sent = send_together(&producer, &["0", "1", "2", "3"]).await;
            for sent in &sent[1..] {
                let error = error_of(sent);
                assert!(
                    error.kind() == ErrorKind::Protocol && !error.is_definite(),
                    "{error}"
                );
            }
            assert_eq!((requests(&broker).len(), stored(&broker).len()), (2, 4));
        }
    });
}

#[test]
fn n47_one_bad_message_fails_alone_with_its_own_code() {
    virtually(async {
        for (code, kind) in [
            (
                pb::Code::IllegalMessagePropertyKey,
                ErrorKind::InvalidArgument,
            ),
            (pb::Code::MessagePropertiesTooLarge, ErrorKind::TooLarge),
            (pb::Code::InternalServerError, ErrorKind::Server),
        ] {
            let broker = with_topic(2).await;
            let bad = |call: &Call| bodies(call).contains(&"bad".to_owned());
            broker.fault(
                Fault::on(Rpc::SendMessage)
                    .when(bad)
                    .always()
                    .status(code, "no"),
            );
            let producer = start(&broker, spec()).await;
            // One goes alone to each node, the rest is shared out to both.
            let all = ["1", "2", "3", "4", "bad", "5", "6", "7"];
            let sent = send_together(&producer, &all).await;
            for (body, sent) in all.iter().zip(&sent) {
                if *body == "bad" {
                    let error = error_of(sent);
                    assert_eq!(
                        (error.kind(), error.server_code()),
                        (kind, Some(code.into()))
                    );
                } else {
                    assert!(sent.is_ok(), "{body}: {sent:?}");
                }
            }
            assert_eq!(stored(&broker).len(), 7, "each once");
            let refused = requests(&broker);
            let batches = refused.iter().filter(|bodies| bodies.len() > 1).count();
            assert_eq!(batches, 2, "taken apart once: {refused:?}");
        }
    });
}

#[test]
fn n47_a_request_the_server_finds_too_large_is_taken_apart_and_isolates_nobody() {
    virtually(async {
        let broker = with_topic(2).await;
        let large = Fault::on(Rpc::SendMessage).when(is_batch).always();
        broker.fault(large.status(pb::Code::InternalServerError, "size exceeds the max"));
        let producer = start(&broker, spec().max_attempts(1)).await;
        let sent = send_together(&producer, &["1", "2", "3", "4", "5", "6"]).await;
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        assert_eq!(stored(&broker).len(), 6);
        let record = broker.record();
        let singles = record.of(Rpc::SendMessage).filter(|call| !is_batch(call));
        let nodes: Vec<_> = singles.map(|call| call.node).collect();
        let of_first = nodes.iter().filter(|node| **node == 0).count();
        assert_eq!((nodes.len(), of_first), (6, 3), "{nodes:?}");
    });
}

#[test]
fn n47_requests_stay_far_below_the_servers_limit() {
    virtually(async {
        let broker = with_topic(1).await;
        let producer = start(&broker, spec()).await;
        let large = |number: usize| message(number.to_string() + &"x".repeat(128 * 1024));
        let all = join_all((0..40).map(|number| producer.send(large(number)))).await;
        assert!(all.iter().all(Result::is_ok));
        let sizes: Vec<_> = requests(&broker).iter().map(Vec::len).collect();
        assert!(
            sizes.iter().all(|size| *size <= 7),
            "1 MiB at most: {sizes:?}"
        );
        assert!(sizes.len() <= 8, "{sizes:?}");
        assert_eq!(stored(&broker).len(), 40);
        // What has no room beside anything goes alone.
        let giant = producer.send(message("x".repeat(4 * 1024 * 1024))).await;
        giant.unwrap();
    });
}

#[test]
fn n48_messages_of_a_group_are_never_merged() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::mixed(4));
        let producer = start(&broker, spec()).await;
        let ordered = |number: usize| {
            let message = Message::builder("t").body(number.to_string());
            message.group("g").build().unwrap()
        };
        let delayed = |number: usize| {
            let message = Message::builder("t").body(number.to_string());
            message.delay(secs(60)).build().unwrap()
        };
        let sends = (0..50).flat_map(|number| [ordered(number), delayed(number)]);
        let all = join_all(sends.map(|message| producer.send(message))).await;
        assert!(all.iter().all(Result::is_ok));
        let sizes: Vec<_> = requests(&broker).iter().map(Vec::len).collect();
        assert_eq!(sizes, [1; 100]);
        assert_eq!(producer.stats().batches, 0);
    });
}

#[test]
fn dropped_sends_that_have_not_departed_leave_nothing_behind() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.fault(Fault::on(Rpc::SendMessage).delay_reply(secs(1)));
        let producer = start(&broker, spec()).await;
        let first = sending(&producer, "first");
        until_sent(&broker, 1).await;
        let (dropped, kept) = (sending(&producer, "dropped"), sending(&producer, "kept"));
        tokio::time::sleep(millis(100)).await;
        dropped.abort();
        assert!(dropped.await.unwrap_err().is_cancelled());
        assert_eq!(producer.stats().in_flight_messages, 2);
        first.await.unwrap().unwrap();
        kept.await.unwrap().unwrap();
        assert_eq!(requests(&broker), [["first"], ["kept"]]);
    });
}

#[test]
fn a_send_that_is_dropped_on_the_way_does_not_stop_its_neighbours() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.fault(Fault::on(Rpc::SendMessage).always().delay_reply(secs(1)));
        let producer = start(&broker, spec()).await;
        let first = sending(&producer, "first");
        until_sent(&broker, 1).await;
        first.abort();
        let (dropped, kept) = (sending(&producer, "dropped"), sending(&producer, "kept"));
        until_sent(&broker, 2).await;
        dropped.abort();
        kept.await.unwrap().unwrap();
        assert_eq!(stored(&broker).len(), 3);
        assert_eq!(producer.stats().in_flight_messages, 0);
        producer.send(message("later")).await.unwrap();
    });
}

#[test]
fn a_send_nobody_polls_holds_nobody_up() {
    virtually(async {
        let broker = with_topic(1).await;
        let producer = start(&broker, spec()).await;
        let mut forgotten = Box::pin(producer.send(message("forgotten")));
        assert!(futures::poll!(&mut forgotten).is_pending());
        let began = Instant::now();
        producer.send(message("next")).await.unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO);
        forgotten.await.unwrap();
    });
}

#[test]
fn a_shutdown_sends_what_has_collected() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.fault(Fault::on(Rpc::SendMessage).always().delay_reply(secs(1)));
        let producer = start(&broker, spec()).await;
        let all = ["1", "2", "3"].map(|body| sending(&producer, body));
        until_sent(&broker, 1).await;
        let report = producer.shutdown(secs(5)).await;
        assert_eq!(
            (report.finished, report.cut_off, report.in_time),
            (3, 0, true)
        );
        for sent in join_all(all).await {
            sent.unwrap().unwrap();
        }
        assert_eq!(requests(&broker), [vec!["1"], vec!["2", "3"]]);
    });
}

#[test]
fn what_a_shutdown_cuts_off_is_unknown_only_if_it_had_departed() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.fault(Fault::on(Rpc::SendMessage).always().hang());
        let producer = start(&broker, spec()).await;
        let first = sending(&producer, "first");
        until_sent(&broker, 1).await;
        let waiting = sending(&producer, "waiting");
        tokio::time::sleep(millis(10)).await;
        let report = producer.shutdown(secs(1)).await;
        assert_eq!((report.cut_off, report.in_time), (2, false));
        let (first, waiting) = (first.await.unwrap(), waiting.await.unwrap());
        assert_eq!(error_of(&first).kind(), ErrorKind::Closed);
        assert!(!error_of(&first).is_definite());
        assert!(error_of(&waiting).is_definite(), "it never left");
        assert!(broker.clients(0).is_empty());
    });
}

#[test]
fn a_lost_reply_is_followed_by_the_same_ids() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.fault(Fault::on(Rpc::SendMessage).when(is_batch).lose_reply());
        let producer = start(&broker, spec()).await;
        let sent = send_together(&producer, &["1", "2", "3"]).await;
        let messages = broker.messages("t");
        assert_eq!(messages.len(), 5, "twice, and to be recognised");
        for sent in sent {
            let id = sent.unwrap().message_id().to_owned();
            let copies: Vec<_> = messages.iter().filter(|one| one.message_id == id).collect();
            assert!(!copies.is_empty());
            assert!(copies.iter().all(|copy| copy.body == copies[0].body));
        }
        assert_eq!(producer.stats().retries, 2);
    });
}

#[test]
fn lost_replies_without_end_leave_it_open_whether_a_message_is_stored() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.fault(Fault::on(Rpc::SendMessage).always().lose_reply());
        let producer = start(&broker, spec()).await;
        let began = Instant::now();
        for sent in send_together(&producer, &["1", "2", "3"]).await {
            assert!(!error_of(&sent).is_definite());
        }
        assert!(began.elapsed() <= secs(9));
        assert_eq!(producer.stats().retries, 6, "three attempts each");
    });
}

#[test]
fn throttled_messages_come_back_together_by_the_servers_policy() {
    virtually(async {
        let broker = with_topic(1).await;
        let busy = Fault::on(Rpc::SendMessage).when(is_batch).times(3);
        broker.fault(busy.status(pb::Code::TooManyRequests, "flow limit"));
        let producer = start(&broker, spec()).await;
        let began = Instant::now();
        let bodies: Vec<_> = (0..33).map(|number| number.to_string()).collect();
        let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
        let sent = send_together(&producer, &bodies).await;
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        assert!(began.elapsed() >= millis(10 + 20 + 40) && began.elapsed() < millis(200));
        assert_eq!(stored(&broker).len(), 33);
        assert!(
            requests(&broker).len() <= 12,
            "no storm: {:?}",
            requests(&broker)
        );
    });
}

#[test]
fn what_waits_for_an_endpoint_that_falls_silent_takes_another() {
    virtually(async {
        let broker = with_topic(2).await;
        let producer = start(&broker, spec()).await;
        broker.black_hole(1, true);
        let began = Instant::now();
        let sent = join_all((0..100).map(|number| producer.send(message(number)))).await;
        for receipt in sent {
            assert_eq!(receipt.unwrap().broker_name(), "broker-0");
        }
        assert_eq!(began.elapsed(), secs(3), "one request time-out");
    });
}

#[test]
fn a_send_ends_within_its_own_time_also_while_it_waits_for_others() {
    virtually(async {
        let broker = with_topic(1).await;
        let hurried = spec().send_timeout(secs(1)).max_attempts(1);
        let producer = start(&broker, hurried).await;
        broker.fault(Fault::on(Rpc::SendMessage).always().hang());
        let first = sending(&producer, "first");
        until_sent(&broker, 1).await;
        tokio::time::sleep(millis(500)).await;
        let began = Instant::now();
        let second = producer.send(message("second")).await;
        assert_eq!(began.elapsed(), secs(1));
        assert!(!error_of(&second).is_definite(), "it left after the first");
        assert!(!error_of(&first.await.unwrap()).is_definite());
        assert_eq!(producer.stats().in_flight_messages, 0);
    });
}

#[test]
fn nothing_that_collected_goes_to_an_endpoint_whose_settings_are_lost() {
    virtually(async {
        let broker = with_topic(1).await;
        let producer = start(&broker, spec()).await;
        broker.forget_settings(0, producer.client_id());
        let lost = Fault::on(Rpc::SendMessage).status(pb::Code::UnrecognizedClientType, "who?");
        broker.fault(lost);
        let before = broker.record().next_seq();
        let sent = send_together(&producer, &["1", "2", "3"]).await;
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        let record = broker.record();
        let calls = record.since(before).map(|call| call.rpc);
        let calls: Vec<_> = calls.filter(|rpc| *rpc != Rpc::Heartbeat).collect();
        assert_eq!(calls[..2], [Rpc::SendMessage, Rpc::Telemetry]);
        assert!(
            calls[2..].iter().all(|rpc| *rpc == Rpc::SendMessage),
            "{calls:?}"
        );
    });
}

#[test]
fn what_collected_before_the_settings_were_lost_waits_until_they_are_back() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.create_topic("u", TopicConfig::normal(1));
        let producer = start(&broker, spec().topic("u")).await;
        broker.fault(Fault::on(Rpc::SendMessage).topic("t").delay_reply(secs(1)));
        let first = sending(&producer, "first");
        until_sent(&broker, 1).await;
        let collected = sending(&producer, "collected");
        tokio::time::sleep(millis(10)).await;
        broker.forget_settings(0, producer.client_id());
        broker.fault(Fault::on(Rpc::Telemetry).delay(secs(2)));
        let lost = Fault::on(Rpc::SendMessage).topic("u");
        broker.fault(lost.status(pb::Code::UnrecognizedClientType, "who?"));
        let other = Message::builder("u").body("other").build().unwrap();
        let began = Instant::now();
        let (other, waited) = tokio::join!(producer.send(other), async {
            collected.await.unwrap().unwrap();
            began.elapsed()
        });
        other.unwrap();
        first.await.unwrap().unwrap();
        assert_eq!(waited, secs(2));
        assert_eq!(stored(&broker).len(), 2);
    });
}

/// One of the ways a request goes wrong.
fn mishap(rng: &mut fastrand::Rng) -> Fault {
    let fault = Fault::on(Rpc::SendMessage)
        .skip(rng.u64(..20))
        .times(rng.u64(1..6));
    match rng.u8(..7) {
        0 => fault.lose_reply(),
        1 => fault.hang(),
        2 => fault.reset(),
        3 => fault.status(pb::Code::TooManyRequests, "flow limit"),
        4 => fault.status(pb::Code::InternalServerError, "sick"),
        5 => fault.status(pb::Code::Forbidden, "no writable queue"),
        _ => fault.delay_reply(millis(rng.u64(..5000))),
    }
}

#[test]
fn every_send_ends_in_time_and_definite_means_definite_in_company_too() {
    for seed in 0..12 {
        virtually(async {
            let mut rng = fastrand::Rng::with_seed(seed);
            let broker = with_topic(2).await;
            let few = Batching::adaptive().max_messages(5);
            let producer = start(&broker, spec().batching(few).max_in_flight(40)).await;
            for _ in 0..rng.u8(..8) {
                broker.fault(mishap(&mut rng));
            }
            let pauses: Vec<_> = (0..200).map(|_| millis(rng.u64(..4000))).collect();
            let patience: Vec<_> = (0..200).map(|_| rng.u64(..40)).collect();
            let sends = pauses.into_iter().zip(patience).enumerate();
            let sends = sends.map(|(number, (pause, patience))| {
                let producer = producer.clone();
                async move {
                    tokio::time::sleep(pause).await;
                    let began = Instant::now();
                    let send = producer.send(message(number));
                    let sent = tokio::time::timeout(secs(patience), send).await.ok();
                    assert!(began.elapsed() <= secs(9), "seed {seed}: {sent:?}");
                    sent
                }
            });
            let shutdown = async {
                tokio::time::sleep(millis(rng.u64(..6000))).await;
                if rng.bool() {
                    producer.shutdown(millis(rng.u64(..3000))).await;
                }
            };
            let (results, ()) = tokio::join!(join_all(sends), shutdown);
            let messages = broker.messages("t");
            for (number, sent) in results.into_iter().enumerate() {
                let body = number.to_string();
                let mut copies = messages.iter().filter(|one| one.body == body);
                match sent {
                    Some(Ok(receipt)) => {
                        let copy = copies
                            .next()
                            .unwrap_or_else(|| panic!("{seed}: lost {body}"));
                        assert_eq!(copy.message_id, receipt.message_id(), "seed {seed}");
                    }
                    Some(Err(error)) if error.is_definite() => {
                        assert_eq!(copies.count(), 0, "seed {seed}: {body}: {error}");
                    }
                    Some(Err(_)) | None => {}
                }
            }
            let stats = producer.stats();
            assert_eq!((stats.in_flight_messages, stats.in_flight_bytes), (0, 0));
        });
    }
}
