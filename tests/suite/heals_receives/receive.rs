//! What a receive brought is kept, what was lost is asked for again, and nothing else changes.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use rocketmq_actors::{Client, Delivery};
use rocketmq_embedded::{EmbeddedBroker, Fault, Reply, Rpc, TopicConfig, proto as pb};
use tracing::level_filters::LevelFilter;

use super::*;
use crate::log::Log;

/// The attempt ids of all receives, in their order.
fn attempt_ids(broker: &EmbeddedBroker) -> Vec<String> {
    let record = broker.record();
    let receives = record.of(Rpc::ReceiveMessage);
    receives
        .map(|call| receive_of(call).attempt_id.clone().unwrap())
        .collect()
}

#[test]
fn n36_an_attempt_id_is_kept_until_a_reply_with_messages_came() {
    let lost = || Fault::on(Rpc::ReceiveMessage).after_items(0);
    for (how, fault, limit) in [
        (
            "unavailable",
            Fault::on(Rpc::ReceiveMessage).lose_reply(),
            5,
        ),
        ("reset", lost().reset(), 5),
        ("ended", lost().end(), 5),
        ("internal", lost().grpc(tonic::Code::Internal, "no"), 5),
        (
            "a server error",
            lost().status(pb::Code::InternalServerError, "no"),
            5,
        ),
        // The deadline: 20 s of long polling and 3 s for the request.
        ("deadline", lost().hang(), 60),
    ] {
        virtually(async {
            let broker = broker(|builder| builder).await;
            ordered(&broker).await;
            broker.fault(fault);
            let empty = Fault::on(Rpc::ReceiveMessage).times(2);
            broker.fault(empty.status(pb::Code::MessageNotFound, "no new message"));
            let handled = Tally::default();
            let consumer = start(&broker, counting(&handled)).await;
            within(secs(limit), || broker.acks().len() == 4).await;
            assert_eq!((handled.ids(), handled.total()), (4, 4), "{how}");
            tokio::time::sleep(millis(100)).await;
            let ids = attempt_ids(&broker);
            assert!(ids.len() >= 5, "{how}: {ids:?}");
            assert!(ids[1..4].iter().all(|id| *id == ids[0]), "{how}: {ids:?}");
            assert!(ids[4..].iter().all(|id| *id != ids[0]), "{how}: {ids:?}");
            consumer.shutdown(secs(5)).await;
        });
    }
}

#[test]
fn n36_what_had_arrived_before_a_stream_broke_is_kept() {
    let broken = || Fault::on(Rpc::ReceiveMessage).after_items(3);
    for fault in [
        broken().grpc(tonic::Code::Unavailable, "the proxy goes"),
        broken().grpc(tonic::Code::Internal, "no"),
        broken().end(),
        broken().hang(),
    ] {
        virtually(async {
            let broker = topic(1).await;
            store_numbered(&broker, "t", 5).await;
            broker.fault(fault);
            let handled = Tally::default();
            let consumer = start(&broker, counting(&handled)).await;
            within(secs(60), || broker.acks().len() == 2).await;
            // The status was one of the three items.
            assert_eq!(
                (handled.of("m0"), handled.of("m1"), handled.ids()),
                (1, 1, 2)
            );
            store(&broker, 0, vec![message("t", "later", b"body")]).await;
            within(secs(60), || broker.acks().len() == 3).await;
            consumer.shutdown(secs(5)).await;
            assert_eq!((consumer.stats().received, consumer.stats().acked), (3, 3));
        });
    }
}

#[test]
fn n42_an_idle_minute_is_no_error_and_says_nothing() {
    virtually(async {
        let broker = broker(|builder| builder.nodes(4)).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let consumer = start(&broker, counting(&Tally::default())).await;
        tokio::time::sleep(secs(5)).await;
        let before = broker.record().count(Rpc::ReceiveMessage);
        let log = Log::start(LevelFilter::DEBUG);
        tokio::time::sleep(secs(60)).await;
        let polls = broker.record().count(Rpc::ReceiveMessage) - before;
        assert!((8..=16).contains(&polls), "{polls} polls of four queues");
        let text = log.text();
        assert!(!text.contains("receive failed"), "{text}");
        let loud: Vec<_> = text
            .lines()
            .filter(|line| !line.contains("DEBUG"))
            .collect();
        assert!(loud.is_empty(), "{loud:#?}");
        consumer.shutdown(secs(5)).await;
    });
}

/// The largest body a server takes, with all that may go with it.
fn largest(id: &str) -> pb::Message {
    let mut message = message("t", id, &vec![b'x'; 4 << 20]);
    let property = |n| (format!("key-{n}"), "v".repeat(1_000));
    message.user_properties = (0..15).map(property).collect();
    message
}

#[test]
fn n39_the_largest_legal_messages_are_received_whole() {
    virtually(async {
        let broker = topic(1).await;
        store(&broker, 0, vec![largest("a"), largest("b"), largest("c")]).await;
        let (handled, bytes) = (Tally::default(), Arc::new(AtomicUsize::new(0)));
        let (tally, sum) = (handled.clone(), bytes.clone());
        let builder = spec().handler(move |delivery: Delivery| {
            sum.fetch_add(delivery.body().len(), Ordering::AcqRel);
            tally.add(delivery.message_id());
            async {}
        });
        let consumer = start(&broker, builder).await;
        within(secs(10), || broker.acks().len() == 3).await;
        assert_eq!(
            (handled.ids(), bytes.load(Ordering::Acquire)),
            (3, 3 * (4 << 20))
        );
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn n39_replies_over_the_decode_limit_are_told_once_and_are_no_tight_loop() {
    virtually(async {
        let broker = topic(1).await;
        let long = Fault::on(Rpc::ReceiveMessage).times(20);
        broker.fault(long.status(pb::Code::MessageNotFound, "x".repeat(6 << 20)));
        let handled = Tally::default();
        let log = Log::start(LevelFilter::WARN);
        let config = config(&broker).decode_limit(5 << 20);
        let client = Client::new(config.build().unwrap());
        let consumer = client
            .start(counting(&handled).build().unwrap())
            .await
            .unwrap();
        tokio::time::sleep(secs(10)).await;
        let receives = broker.record().count(Rpc::ReceiveMessage);
        assert!((5..=10).contains(&receives), "{receives} in ten seconds");
        let told = log.lines("decode_limit");
        assert_eq!(told.len(), 1, "{}", log.text());
        store_numbered(&broker, "t", 1).await;
        within(secs(60), || handled.of("m0") == 1).await;
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn n40_a_damaged_body_costs_its_neighbours_nothing() {
    let bodies: [(&str, &[u8]); 7] = [
        ("empty", b""),
        ("half a gzip magic", b"\x1f"),
        ("half a zstd magic", b"\x28"),
        ("three quarters of an lz4 magic", b"\x04\x22\x4d"),
        ("a zlib header alone", b"\x78\x9c"),
        ("a gzip header alone", b"\x1f\x8b\x08\x00"),
        ("no format at all", b"plain"),
    ];
    for (what, body) in bodies {
        virtually(async {
            let broker = topic(1).await;
            store_numbered(&broker, "t", 5).await;
            let body = body.to_vec();
            broker.fault(Fault::on(Rpc::ReceiveMessage).times(1).mutate(messages(
                move |message| {
                    let system = message.system_properties.as_mut().unwrap();
                    if system.message_id == "m2" {
                        message.body = body.clone().into();
                        system.body_encoding = pb::Encoding::Gzip as i32;
                        system.body_digest = None;
                    }
                },
            )));
            let handled = Tally::default();
            let consumer = start(&broker, counting(&handled)).await;
            // The damaged one was given back, and is whole when it comes again.
            within(secs(30), || broker.acks().len() == 5).await;
            assert_eq!((handled.ids(), handled.total()), (5, 5), "{what}");
            consumer.shutdown(secs(5)).await;
            let stats = consumer.stats();
            assert_eq!(
                (stats.corrupted, stats.retried),
                (1, 1),
                "{what}: {stats:?}"
            );
        });
    }
}

#[test]
fn q12_a_body_that_stays_damaged_ends_as_a_dead_letter_after_its_attempts() {
    virtually(async {
        let broker = topic(1).await;
        broker.create_group("g", GroupConfig::default().max_retries(2));
        store_numbered(&broker, "t", 32).await;
        broker.fault(
            Fault::on(Rpc::ReceiveMessage)
                .always()
                .mutate(messages(|message| {
                    let system = message.system_properties.as_mut().unwrap();
                    if system.message_id == "m7" {
                        system.body_digest = Some(pb::Digest {
                            r#type: pb::DigestType::Crc32 as i32,
                            checksum: "1".to_owned(),
                        });
                    }
                })),
        );
        let handled = Tally::default();
        let consumer = start(&broker, counting(&handled)).await;
        within(secs(120), || broker.dead_letters("g").len() == 1).await;
        assert_eq!(
            (handled.ids(), handled.total(), handled.of("m7")),
            (31, 31, 0)
        );
        consumer.shutdown(secs(5)).await;
        assert_eq!(
            (consumer.stats().corrupted, consumer.stats().acked),
            (3, 31)
        );
    });
}

#[test]
fn q15_absurd_attempts_are_handled_and_retried() {
    for (sent, seen) in [
        (None, 1),
        (Some(0), 1),
        (Some(-7), 1),
        (Some(i32::MAX), i32::MAX),
    ] {
        virtually(async {
            let broker = topic(1).await;
            store_numbered(&broker, "t", 1).await;
            broker.fault(Fault::on(Rpc::ReceiveMessage).times(1).mutate(messages(
                move |message| {
                    message.system_properties.as_mut().unwrap().delivery_attempt = sent;
                },
            )));
            let attempts = Tally::default();
            let tally = attempts.clone();
            let builder = spec().handler(move |delivery: Delivery| {
                let first = tally.add(&delivery.attempt().to_string()) == 1 && tally.ids() == 1;
                async move { if first { Err("once") } else { Ok(()) } }
            });
            let consumer = start(&broker, builder).await;
            // The longest delay of the policy is two hours.
            within(secs(3 * 3600), || broker.acks().len() == 1).await;
            assert!(
                attempts.of(&seen.to_string()) >= 1,
                "{sent:?}: {attempts:?}"
            );
            consumer.shutdown(secs(5)).await;
            let stats = consumer.stats();
            assert_eq!((stats.retried, stats.cached_messages), (1, 0), "{stats:?}");
        });
    }
}

#[test]
fn q18_a_shutdown_while_a_batch_arrives_leaves_no_message_hidden() {
    for cut in [0, 1, 5, 20, 80, 300] {
        virtually(async {
            let broker = topic(1).await;
            store_numbered(&broker, "t", 32).await;
            broker.fault(
                Fault::on(Rpc::ReceiveMessage)
                    .times(1)
                    .delay_reply(millis(50)),
            );
            let consumer = start(&broker, counting(&Tally::default()).concurrency(1)).await;
            broker
                .wait_for(|record| record.count(Rpc::ReceiveMessage) > 0)
                .await;
            tokio::time::sleep(millis(cut)).await;
            let report = consumer.shutdown(secs(5)).await;
            assert!(report.in_time && report.abandoned == 0, "{report:?}");
            tokio::time::sleep(secs(1)).await;
            let counts = broker.inspect("t", "g");
            assert_eq!(counts.in_flight, 0, "after {cut} ms: {counts:?}");
            assert_eq!(
                counts.acked + counts.ready as u64,
                32,
                "after {cut} ms: {counts:?}"
            );
        });
    }
}

#[test]
fn messages_beyond_what_was_asked_for_are_given_back() {
    use pb::receive_message_response::Content;
    virtually(async {
        let broker = topic(1).await;
        store_numbered(&broker, "t", 5).await;
        // The first reply is kept back, and follows at the end of the second.
        let kept = Arc::new(Mutex::new(None));
        let (keep, kept_back) = (kept.clone(), kept);
        broker.fault(Fault::on(Rpc::ReceiveMessage).mutate(move |reply| {
            if let Reply::ReceiveMessage(reply) = reply
                && matches!(reply.content, Some(Content::Message(_)))
            {
                *keep.lock().unwrap() = reply.content.take();
            }
        }));
        broker.fault(Fault::on(Rpc::ReceiveMessage).mutate(move |reply| {
            if let Reply::ReceiveMessage(reply) = reply
                && matches!(reply.content, Some(Content::DeliveryTimestamp(_)))
            {
                reply.content = kept_back.lock().unwrap().take();
            }
        }));
        let handled = Tally::default();
        let consumer = start(&broker, counting(&handled).max_cached_messages(1)).await;
        within(secs(30), || broker.acks().len() == 5).await;
        assert_eq!((handled.ids(), handled.total()), (5, 5));
        let stats = consumer.stats();
        assert_eq!((stats.handed_back, stats.acked), (1, 5), "{stats:?}");
        consumer.shutdown(secs(5)).await;
    });
}
