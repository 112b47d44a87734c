//! A delivery is settled once, by its handle, tried again while that can help, and never otherwise.

use std::collections::BTreeMap;

use rocketmq_actors::{Delivery, Outcome};
use rocketmq_embedded::{EmbeddedBroker, Fault, Reply, Rpc, proto as pb};

use super::*;

/// What each way to settle is decided by, and asked with.
const WAYS: [(fn() -> Outcome, Rpc); 3] = [
    (|| Outcome::Ack, Rpc::AckMessage),
    (
        || Outcome::RetryAfter(secs(3600)),
        Rpc::ChangeInvisibleDuration,
    ),
    (
        || Outcome::dead_letter("no use"),
        Rpc::ForwardMessageToDeadLetterQueue,
    ),
];

/// One message, whose handler decides so; with what goes wrong at settling it.
async fn settling(outcome: fn() -> Outcome, fault: Fault) -> (Checked, PushConsumer) {
    let broker = topic(1).await;
    store_numbered(&broker, "t", 1).await;
    broker.fault(fault);
    let builder = spec().handler(move |_: Delivery| async move { outcome() });
    let consumer = start(&broker, builder).await;
    broker.wait_for(|_| !broker.deliveries().is_empty()).await;
    (broker, consumer)
}

/// Each handle is settled in one way, and never again once that succeeded.
fn settled_once(broker: &EmbeddedBroker) {
    let mut done: BTreeMap<String, (Rpc, bool)> = BTreeMap::new();
    for call in broker.record().calls() {
        if !SETTLING.contains(&call.rpc) {
            continue;
        }
        for handle in handles(call) {
            let good = call.answered(pb::Code::Ok);
            let (rpc, over) = done.entry(handle).or_insert((call.rpc, false));
            assert!(*rpc == call.rpc, "first {rpc:?}, then {call:?}");
            assert!(!*over, "settled already: {call:?}");
            *over = good;
        }
    }
}

fn settled(consumer: &PushConsumer) -> u64 {
    let stats = consumer.stats();
    stats.acked + stats.retried + stats.dead_lettered
}

#[test]
fn n64_n67_q40_a_failed_settling_is_repeated_and_the_message_counts_until_it_is_done() {
    type Failure = fn(Rpc) -> Fault;
    let failures: [Failure; 7] = [
        |rpc| Fault::on(rpc).status(pb::Code::InternalServerError, "not now"),
        |rpc| Fault::on(rpc).status(pb::Code::TooManyRequests, "slower"),
        |rpc| Fault::on(rpc).status(pb::Code::ProxyTimeout, "late"),
        |rpc| Fault::on(rpc).raw_status(59_999, "something new"),
        |rpc| Fault::on(rpc).grpc(tonic::Code::Unavailable, "gone"),
        |rpc| Fault::on(rpc).grpc(tonic::Code::Internal, "no"),
        |rpc| Fault::on(rpc).hang(),
    ];
    for (outcome, rpc) in WAYS {
        for failure in failures {
            virtually(async {
                let fault = failure(rpc).times(2);
                let what = format!("{fault:?}");
                let (broker, consumer) = settling(outcome, fault).await;
                broker.wait_for(|record| record.count(rpc) == 2).await;
                let stats = consumer.stats();
                assert_eq!((stats.cached_messages, stats.unsettled), (1, 1), "{what}");
                assert_eq!(settled(&consumer), 0, "{what}");
                within(secs(20), || settled(&consumer) == 1).await;
                assert_eq!(broker.record().count(rpc), 3, "{what}");
                tokio::time::sleep(secs(60)).await;
                let stats = consumer.stats();
                assert_eq!((stats.cached_messages, stats.unsettled), (0, 0), "{what}");
                assert_eq!((settled(&consumer), broker.record().count(rpc)), (1, 3));
                settled_once(&broker);
                consumer.shutdown(secs(5)).await;
            });
        }
    }
}

#[test]
fn n64_as_many_leave_the_cache_as_came_whatever_the_answers_are() {
    const CODES: [i32; 7] = [50_001, 42_900, 40_013, 40_300, 40_402, 50_400, 12_345];
    for seed in 0..12 {
        virtually(async {
            let broker = topic(1).await;
            store_numbered(&broker, "t", 60).await;
            let mut rng = fastrand::Rng::with_seed(seed);
            for _ in 0..80 {
                let rpc = SETTLING[rng.usize(..3)];
                let fault = Fault::on(rpc).skip(rng.u64(..3));
                broker.fault(match rng.u8(..6) {
                    0 => fault.lose_reply(),
                    1 => fault.grpc(tonic::Code::Unavailable, "gone"),
                    2 => fault.delay_reply(millis(rng.u64(..4_000))),
                    _ => fault.raw_status(CODES[rng.usize(..CODES.len())], "no"),
                });
            }
            let builder = spec().handler(move |delivery: Delivery| async move {
                match delivery.message_id().as_bytes().last() {
                    _ if delivery.attempt() > 1 => Outcome::Ack,
                    Some(b'3' | b'7') => Outcome::RetryAfter(secs(3)),
                    Some(b'5') => Outcome::dead_letter("no use"),
                    _ => Outcome::Ack,
                }
            });
            let consumer = start(&broker, builder).await;
            // What was given up stays hidden for as long as the server renews it.
            let over = || broker.inspect("t", "g").ready == 0 && consumer.stats().unsettled == 0;
            tokio::time::sleep(secs(60)).await;
            within(secs(900), over).await;
            consumer.shutdown(secs(5)).await;
            let stats = consumer.stats();
            let cached = (stats.cached_messages, stats.cached_bytes);
            assert_eq!(cached, (0, 0), "seed {seed}: {stats:?}");
            let given_up = stats.expired + stats.abandoned + stats.handed_back;
            let ended = settled(&consumer) + given_up;
            assert_eq!(stats.received, ended, "seed {seed}: {stats:?}");
            assert!(stats.received >= 60, "seed {seed}: {stats:?}");
        });
    }
}

#[test]
fn n65_a_dead_letter_that_failed_is_followed_by_dead_letters_only() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        ordered(&broker).await;
        broker.create_group("g", GroupConfig::default().max_retries(1).fifo(true));
        let failing = Fault::on(Rpc::ForwardMessageToDeadLetterQueue).times(3);
        broker.fault(failing.status(pb::Code::InternalServerError, "not now"));
        let builder = spec().handler(|delivery: Delivery| async move {
            if delivery.message_id() == "m0" {
                Err("never")
            } else {
                Ok(())
            }
        });
        let consumer = start(&broker, builder).await;
        within(secs(60), || broker.acks().len() == 3).await;
        assert_eq!(broker.dead_letters("g").len(), 1);
        let poisoned = &broker.deliveries()[0].receipt_handle;
        let record = broker.record();
        let about = |call: &&Call| SETTLING.contains(&call.rpc) && handles(call).contains(poisoned);
        let kinds: Vec<_> = record.calls().filter(about).map(|call| call.rpc).collect();
        assert_eq!(kinds, [Rpc::ForwardMessageToDeadLetterQueue; 4]);
        settled_once(&broker);
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn n66_a_stale_handle_ends_the_matter_at_once() {
    for (outcome, rpc) in WAYS {
        virtually(async {
            let stale = Fault::on(rpc).always();
            let stale = stale.status(pb::Code::InvalidReceiptHandle, "receipt handle is expired");
            let (broker, consumer) = settling(outcome, stale).await;
            within(secs(5), || consumer.stats().expired == 1).await;
            tokio::time::sleep(secs(50)).await;
            let stats = consumer.stats();
            assert_eq!((stats.expired, settled(&consumer)), (1, 0), "{stats:?}");
            assert_eq!(
                (stats.cached_messages, stats.unsettled),
                (0, 0),
                "{stats:?}"
            );
            assert_eq!(broker.record().count(rpc), 1, "{rpc:?}");
            consumer.shutdown(secs(5)).await;
        });
    }
}

#[test]
fn settling_that_cannot_succeed_is_given_up_with_its_reason() {
    for (outcome, rpc) in WAYS {
        for code in [
            pb::Code::Forbidden,
            pb::Code::IllegalTopic,
            pb::Code::NotImplemented,
            pb::Code::BadRequest,
        ] {
            virtually(async {
                let log = crate::log::Log::start(tracing::level_filters::LevelFilter::WARN);
                let refused = Fault::on(rpc)
                    .always()
                    .status(code, "that is not allowed here");
                let (broker, consumer) = settling(outcome, refused).await;
                within(secs(5), || consumer.stats().unsettled == 0).await;
                tokio::time::sleep(secs(30)).await;
                let count = broker.record().count(rpc);
                assert!(
                    count <= 2,
                    "{rpc:?} {code:?}: in its batch and alone, {count}"
                );
                let told = log.lines("settling given up");
                assert_eq!(told.len(), 1, "{}", log.text());
                assert!(told[0].contains("that is not allowed here"), "{told:?}");
                assert_eq!(consumer.stats().abandoned, 1);
                consumer.shutdown(secs(5)).await;
            });
        }
    }
}

#[test]
fn settling_that_fails_for_ever_ends_with_its_patience() {
    for (outcome, rpc) in WAYS {
        virtually(async {
            let failing = Fault::on(rpc).always();
            let failing = failing.status(pb::Code::InternalServerError, "never");
            let (broker, consumer) = settling(outcome, failing).await;
            tokio::time::sleep(secs(9 * 60)).await;
            assert_eq!(consumer.stats().unsettled, 1, "not before its end");
            within(secs(15 * 60), || consumer.stats().unsettled == 0).await;
            let count = broker.record().count(rpc);
            assert!((100..400).contains(&count), "{count} tries in ten minutes");
            settled_once(&broker);
            consumer.shutdown(secs(5)).await;
        });
    }
}

#[test]
fn n68_the_handle_of_the_receive_is_used_whatever_failed_replies_carry() {
    for carried in ["", "another"] {
        virtually(async {
            let rpc = Rpc::ChangeInvisibleDuration;
            let fault = Fault::on(rpc).times(2).mutate(move |reply| {
                if let Reply::ChangeInvisibleDuration(reply) = reply {
                    reply.receipt_handle = carried.to_owned();
                    reply.status = Some(pb::Status {
                        code: pb::Code::TooManyRequests as i32,
                        message: "slower".to_owned(),
                    });
                }
            });
            let (broker, consumer) = settling(WAYS[1].0, fault).await;
            within(secs(20), || settled(&consumer) == 1).await;
            let delivered = &broker.deliveries()[0].receipt_handle;
            let record = broker.record();
            assert_eq!(record.count(rpc), 3);
            for call in record.of(rpc) {
                assert_eq!(handles(call), std::slice::from_ref(delivered), "{call:?}");
            }
            consumer.shutdown(secs(5)).await;
        });
    }
}

#[test]
fn n68_a_success_without_a_handle_is_a_success() {
    virtually(async {
        let fault = Fault::on(Rpc::ChangeInvisibleDuration).mutate(|reply| {
            if let Reply::ChangeInvisibleDuration(reply) = reply {
                reply.receipt_handle.clear();
            }
        });
        let (broker, consumer) = settling(WAYS[1].0, fault).await;
        within(secs(5), || settled(&consumer) == 1).await;
        tokio::time::sleep(secs(30)).await;
        settled_once(&broker);
        assert_eq!(broker.record().count(Rpc::ChangeInvisibleDuration), 1);
        consumer.shutdown(secs(5)).await;
    });
}

/// Answers the entries of a batch of five as OK, OK, invalid, internal and not at all, in another
/// order, with a stranger's among them.
fn of_all_kinds(reply: &mut Reply<'_>) {
    let Reply::AckMessage(reply) = reply else {
        return;
    };
    let code = |code: pb::Code| {
        Some(pb::Status {
            code: code as i32,
            message: String::new(),
        })
    };
    assert_eq!(reply.entries.len(), 5, "five had collected");
    reply.entries.truncate(4);
    reply.entries[2].status = code(pb::Code::InvalidReceiptHandle);
    reply.entries[3].status = code(pb::Code::InternalServerError);
    reply.entries.reverse();
    reply.entries.push(pb::AckMessageResultEntry {
        message_id: "same".to_owned(),
        receipt_handle: "of nobody here".to_owned(),
        status: code(pb::Code::Ok),
    });
    reply.status = code(pb::Code::MultipleResults);
}

#[test]
fn n71_q40_answers_of_a_batch_are_matched_by_handle_and_what_failed_goes_alone() {
    virtually(async {
        let broker = topic(1).await;
        // All have the same id: only the handles tell them apart.
        let same = (0..6).map(|n| message("t", "same", format!("{n}").as_bytes()));
        store(&broker, 0, same.collect()).await;
        broker.fault(Fault::on(Rpc::AckMessage).delay_reply(secs(1)));
        broker.fault(Fault::on(Rpc::AckMessage).mutate(of_all_kinds));
        let builder = spec().handler(|delivery: Delivery| async move {
            if delivery.body().as_ref() != b"0" {
                tokio::time::sleep(millis(100)).await;
            }
        });
        let consumer = start(&broker, builder).await;
        within(secs(20), || {
            let stats = consumer.stats();
            stats.acked == 5 && stats.expired == 1
        })
        .await;
        tokio::time::sleep(secs(10)).await;
        let record = broker.record();
        let sizes: Vec<_> = record
            .of(Rpc::AckMessage)
            .map(|call| handles(call).len())
            .collect();
        assert_eq!(sizes, [1, 5, 1, 1]);
        let calls: Vec<_> = record.of(Rpc::AckMessage).collect();
        let (batch, alone) = (
            handles(calls[1]),
            [handles(calls[2]), handles(calls[3])].concat(),
        );
        assert!(
            alone.iter().all(|handle| batch[3..].contains(handle)),
            "{alone:?} of {batch:?}"
        );
        assert_eq!(consumer.stats().unsettled, 0);
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn n71_a_shutdown_sends_the_acks_that_have_collected() {
    virtually(async {
        let broker = topic(1).await;
        store_numbered(&broker, "t", 20).await;
        broker.fault(Fault::on(Rpc::AckMessage).delay_reply(secs(1)));
        let handled = Tally::default();
        let consumer = start(&broker, counting(&handled)).await;
        broker.wait_for(|_| handled.ids() == 20).await;
        let report = consumer.shutdown(secs(5)).await;
        assert!(report.in_time && report.handed_back == 0, "{report:?}");
        assert_eq!(broker.inspect("t", "g").acked, 20);
    });
}

/// A handler that takes so long with the first delivery, while the proxy dies and comes back.
async fn proxy_dies_while_handling(takes: Duration) -> (Checked, PushConsumer, Tally) {
    let broker = topic(1).await;
    store_numbered(&broker, "t", 1).await;
    let handled = Tally::default();
    let tally = handled.clone();
    let builder = spec().handler(move |delivery: Delivery| {
        let first = tally.add(delivery.message_id()) == 1;
        async move {
            if first {
                tokio::time::sleep(takes).await;
            }
        }
    });
    let consumer = start(&broker, builder.slow_handler_after(secs(60))).await;
    broker.wait_for(|_| handled.total() == 1).await;
    tokio::time::sleep(secs(5)).await;
    broker.stop_node(0);
    tokio::time::sleep(secs(5)).await;
    broker.start_node(0).await.unwrap();
    (broker, consumer, handled)
}

#[test]
fn n72_a_handle_outlives_its_proxy_while_its_lease_lasts() {
    virtually(async {
        let (broker, consumer, handled) = proxy_dies_while_handling(secs(30)).await;
        within(secs(60), || broker.acks().len() == 1).await;
        tokio::time::sleep(secs(120)).await;
        assert_eq!((handled.total(), broker.inspect("t", "g").ready), (1, 0));
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn n72_n73_a_handler_longer_than_a_lease_nobody_renews_is_named_and_its_message_comes_again() {
    virtually(async {
        let log = crate::log::Log::start(tracing::level_filters::LevelFilter::WARN);
        let (broker, consumer, handled) = proxy_dies_while_handling(secs(90)).await;
        within(secs(300), || broker.acks().len() == 1).await;
        tokio::time::sleep(secs(120)).await;
        // By the same id, which is what a handler can tell repeats by.
        assert_eq!((handled.ids(), handled.total()), (1, 2));
        let stats = consumer.stats();
        assert_eq!(
            (stats.acked, stats.expired, stats.unsettled),
            (1, 1, 0),
            "{stats:?}"
        );
        assert!(
            broker.record().count(Rpc::AckMessage) <= 4,
            "bounded retries"
        );
        assert!(
            log.text().contains("m0"),
            "the slow one is named: {}",
            log.text()
        );
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn n73_a_long_handler_on_a_server_that_renews_is_not_repeated() {
    virtually(async {
        let broker = topic(1).await;
        store_numbered(&broker, "t", 1).await;
        let handled = Tally::default();
        let tally = handled.clone();
        let builder = spec().handler(move |delivery: Delivery| {
            tally.add(delivery.message_id());
            tokio::time::sleep(secs(30 * 60))
        });
        let consumer = start(&broker, builder).await;
        within(secs(45 * 60), || broker.acks().len() == 1).await;
        assert_eq!(handled.total(), 1);
        consumer.shutdown(secs(5)).await;
    });
}
