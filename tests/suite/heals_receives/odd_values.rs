//! Whatever value a server sends is clamped, cut or refused, and nothing else suffers.

use rocketmq_actors::{Delivery, Outcome};
use rocketmq_embedded::{EmbeddedBroker, Fault, Reply, RequestBody, Rpc, proto as pb};

use super::*;

type Change<T> = fn(&mut T);

/// Changes every settings a server answers.
fn settings(broker: &EmbeddedBroker, change: Change<pb::Settings>) {
    use pb::telemetry_command::Command;
    broker.fault(Fault::on(Rpc::Telemetry).always().mutate(move |reply| {
        if let Reply::Telemetry(command) = reply
            && let Some(Command::Settings(settings)) = &mut command.command
        {
            change(settings);
        }
    }));
}

fn subscription(settings: &mut pb::Settings) -> &mut pb::Subscription {
    match &mut settings.pub_sub {
        Some(pb::settings::PubSub::Subscription(subscription)) => subscription,
        other => panic!("{other:?}"),
    }
}

fn span(seconds: i64, nanos: i32) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos })
}

#[test]
fn q9_odd_batches_and_long_polls_are_clamped_or_left_as_they_were() {
    let cases: [(&str, Change<pb::Settings>, i32, i64); 9] = [
        (
            "no batch",
            |s| subscription(s).receive_batch_size = None,
            32,
            20,
        ),
        (
            "batch 0",
            |s| subscription(s).receive_batch_size = Some(0),
            32,
            20,
        ),
        (
            "batch -1",
            |s| subscription(s).receive_batch_size = Some(-1),
            32,
            20,
        ),
        (
            "huge batch",
            |s| subscription(s).receive_batch_size = Some(i32::MAX),
            32,
            20,
        ),
        (
            "no poll",
            |s| subscription(s).long_polling_timeout = None,
            32,
            30,
        ),
        (
            "poll 0",
            |s| subscription(s).long_polling_timeout = span(0, 0),
            32,
            30,
        ),
        (
            "negative",
            |s| subscription(s).long_polling_timeout = span(-5, -1),
            32,
            30,
        ),
        (
            "short",
            |s| subscription(s).long_polling_timeout = span(0, 1),
            32,
            5,
        ),
        (
            "endless",
            |s| subscription(s).long_polling_timeout = span(i64::MAX, i32::MAX),
            32,
            60,
        ),
    ];
    for (what, change, batch, polling) in cases {
        virtually(async {
            let broker = topic(1).await;
            settings(&broker, change);
            let consumer = start(&broker, counting(&Tally::default())).await;
            within(secs(10), || broker.record().count(Rpc::ReceiveMessage) > 0).await;
            let record = broker.record();
            let asked = receive_of(record.of(Rpc::ReceiveMessage).next().unwrap());
            assert_eq!(asked.batch_size, batch, "{what}");
            assert_eq!(
                asked.long_polling_timeout.unwrap().seconds,
                polling,
                "{what}"
            );
            consumer.shutdown(secs(5)).await;
        });
    }
}

fn exponential(settings: &mut pb::Settings, multiplier: f32, initial: i64, max: i64) {
    let backoff = pb::ExponentialBackoff {
        initial: span(initial, 0),
        max: span(max, 0),
        multiplier,
    };
    let policy = settings.backoff_policy.get_or_insert_default();
    policy.strategy = Some(pb::retry_policy::Strategy::ExponentialBackoff(backoff));
}

fn customized(settings: &mut pb::Settings, next: Vec<prost_types::Duration>) {
    let policy = settings.backoff_policy.get_or_insert_default();
    let backoff = pb::CustomizedBackoff { next };
    policy.strategy = Some(pb::retry_policy::Strategy::CustomizedBackoff(backoff));
}

#[test]
fn q9_q15_retry_policies_that_make_no_sense_leave_the_one_before() {
    // The one before has a second for the first attempt; no delay is over twelve hours.
    let cases: [(&str, Change<pb::Settings>, i64); 12] = [
        ("none", |s| s.backoff_policy = None, 1),
        (
            "no kind",
            |s| s.backoff_policy.get_or_insert_default().strategy = None,
            1,
        ),
        (
            "attempts 0",
            |s| s.backoff_policy.get_or_insert_default().max_attempts = 0,
            1,
        ),
        (
            "attempts -1",
            |s| s.backoff_policy.get_or_insert_default().max_attempts = -1,
            1,
        ),
        ("not a number", |s| exponential(s, f32::NAN, 7, 60), 1),
        ("infinite", |s| exponential(s, f32::INFINITY, 7, 60), 1),
        ("multiplier 0", |s| exponential(s, 0.0, 7, 60), 1),
        ("initial over max", |s| exponential(s, 2.0, 60, 7), 1),
        ("no steps", |s| customized(s, Vec::new()), 1),
        (
            "too many steps",
            |s| customized(s, vec![prost_types::Duration::default(); 5_000]),
            1,
        ),
        ("negative", |s| customized(s, vec![span(-9, 0).unwrap()]), 0),
        (
            "endless",
            |s| customized(s, vec![span(i64::MAX, 0).unwrap()]),
            12 * 3600,
        ),
    ];
    for (what, change, expected) in cases {
        virtually(async {
            let broker = topic(1).await;
            settings(&broker, change);
            store_numbered(&broker, "t", 1).await;
            let builder = spec().handler(|delivery: Delivery| async move {
                if delivery.attempt() == 1 {
                    Outcome::Retry
                } else {
                    Outcome::Ack
                }
            });
            let consumer = start(&broker, builder).await;
            within(secs(10), || consumer.stats().retried == 1).await;
            let record = broker.record();
            let change = record.of(Rpc::ChangeInvisibleDuration).next().unwrap();
            let RequestBody::ChangeInvisibleDuration(change) = &change.request else {
                panic!("{change:?}");
            };
            assert_eq!(
                change.invisible_duration.unwrap().seconds,
                expected,
                "{what}"
            );
            consumer.shutdown(secs(5)).await;
        });
    }
}

fn system(message: &mut pb::Message) -> &mut pb::SystemProperties {
    message.system_properties.as_mut().unwrap()
}

#[test]
fn odd_fields_of_a_message_are_handed_on_or_left_out() {
    let time = |seconds, nanos| Some(prost_types::Timestamp { seconds, nanos });
    virtually(async {
        let broker = topic(1).await;
        store_numbered(&broker, "t", 6).await;
        broker.fault(
            Fault::on(Rpc::ReceiveMessage)
                .times(1)
                .mutate(messages(move |message| {
                    match system(message).message_id.as_str() {
                        "m0" => system(message).born_timestamp = time(i64::MAX, i32::MAX),
                        "m1" => system(message).born_timestamp = time(-1, -1),
                        "m2" => system(message).body_digest = Some(pb::Digest::default()),
                        "m3" => system(message).body_encoding = 99,
                        "m4" => system(message).message_type = -1,
                        _ => system(message).message_id.clear(),
                    };
                })),
        );
        let handled = Tally::default();
        let tally = handled.clone();
        let builder = spec().handler(move |delivery: Delivery| {
            if ["m0", "m1"].contains(&delivery.message_id()) {
                assert_eq!(delivery.born_at(), None);
            }
            tally.add(delivery.message_id());
            async {}
        });
        let consumer = start(&broker, builder).await;
        within(secs(20), || broker.acks().len() == 6).await;
        assert_eq!((handled.ids(), handled.total(), handled.of("")), (6, 6, 1));
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn a_message_that_cannot_be_settled_or_is_of_another_topic_reaches_no_handler() {
    virtually(async {
        let broker = topic(1).await;
        store_numbered(&broker, "t", 5).await;
        broker.fault(
            Fault::on(Rpc::ReceiveMessage)
                .times(1)
                .mutate(messages(|message| {
                    match system(message).message_id.as_str() {
                        "m0" => system(message).receipt_handle = None,
                        "m1" => system(message).receipt_handle = Some(String::new()),
                        "m2" => message.topic.as_mut().unwrap().name = "foreign".to_owned(),
                        _ => {}
                    }
                })),
        );
        let handled = Tally::default();
        let consumer = start(&broker, counting(&handled)).await;
        // The one of another topic was given back, and comes as ours.
        within(secs(20), || broker.acks().len() == 3).await;
        assert_eq!(
            (handled.of("m2"), handled.of("m3"), handled.of("m4")),
            (1, 1, 1)
        );
        assert_eq!(handled.total(), 3);
        let stats = consumer.stats();
        assert_eq!((stats.abandoned, stats.handed_back), (2, 1), "{stats:?}");
        assert_eq!(
            (stats.unsettled, stats.cached_messages),
            (0, 0),
            "{stats:?}"
        );
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn a_handle_of_a_megabyte_with_control_bytes_is_passed_back_as_it_came() {
    virtually(async {
        let broker = topic(1).await;
        store_numbered(&broker, "t", 1).await;
        let handle = "\u{1}\n\u{7f}x".repeat(1 << 18);
        let sent = handle.clone();
        broker.fault(
            Fault::on(Rpc::ReceiveMessage)
                .times(1)
                .mutate(messages(move |message| {
                    system(message).receipt_handle = Some(sent.clone())
                })),
        );
        let log = crate::log::Log::start(tracing::level_filters::LevelFilter::DEBUG);
        let consumer = start(&broker, counting(&Tally::default())).await;
        within(secs(20), || broker.record().count(Rpc::AckMessage) > 0).await;
        let record = broker.record();
        let ack = record.of(Rpc::AckMessage).next().unwrap();
        assert!(handles(ack) == [handle], "as it came");
        // This server cannot read it, and says so by a code that time may mend.
        within(secs(25 * 60), || consumer.stats().unsettled == 0).await;
        assert_eq!(consumer.stats().abandoned, 1);
        assert!(
            log.text().len() < 100_000,
            "{} bytes of log",
            log.text().len()
        );
        consumer.shutdown(secs(5)).await;
    });
}
