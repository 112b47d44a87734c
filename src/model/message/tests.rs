#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use proptest::prelude::*;

use super::{proto::Stamp, *};

fn plain() -> MessageBuilder {
    Message::builder("t").body("b")
}

fn refused(builder: MessageBuilder) -> String {
    builder.build().expect_err("refused").to_string()
}

#[test]
fn the_type_follows_from_what_is_set() {
    let now = SystemTime::UNIX_EPOCH;
    for (builder, expected) in [
        (plain(), MessageType::Normal),
        (plain().group("g"), MessageType::Fifo),
        (plain().deliver_at(now), MessageType::Delay),
        (plain().delay(Duration::ZERO), MessageType::Delay),
        (plain().priority(0), MessageType::Priority),
        (plain().lite_topic("l"), MessageType::Lite),
    ] {
        let message = builder.build().unwrap();
        assert_eq!(message.message_type(), expected);
    }
}

#[test]
fn no_two_of_group_time_priority_and_lite_topic_go_together() {
    type Set = fn(MessageBuilder) -> MessageBuilder;
    let setters: [Set; 5] = [
        |builder| builder.group("g"),
        |builder| builder.deliver_at(SystemTime::UNIX_EPOCH),
        |builder| builder.priority(1),
        |builder| builder.lite_topic("l"),
        |builder| builder.delay(Duration::ZERO),
    ];
    for (first, set_first) in setters.iter().enumerate() {
        for (second, set_second) in setters.iter().enumerate() {
            let built = set_second(set_first(plain())).build();
            let same = first == second || [first, second].iter().all(|set| [1, 4].contains(set));
            assert_eq!(built.is_ok(), same, "{first} {second}: {built:?}");
        }
    }
    let error = refused(plain().group("g").priority(1).group("g"));
    assert!(error.contains("message group or a priority"), "{error}");
    let again = plain().group("old").group("new").build().unwrap();
    assert_eq!(
        again.group(),
        Some("new"),
        "the same thing set again replaces"
    );
}

#[test]
fn each_rule_of_the_server_is_checked_before_anything_is_sent() {
    for (builder, said) in [
        (Message::builder("a b").body("b"), "topic"),
        (Message::builder("TBW102").body("b"), "system"),
        (Message::builder("t"), "body is empty"),
        (plain().tag("a|b"), "tag"),
        (plain().key(" "), "key"),
        (plain().keys(["good", "b\nad"]), "key"),
        (plain().property("TAGS", "v"), "property key \"TAGS\""),
        (plain().property("k", "a\u{2}"), "property value"),
        (plain().group("g".repeat(64)), "63"),
        (plain().lite_topic("l%"), "lite topic"),
        (plain().priority(-1), "priority -1"),
    ] {
        let error = refused(builder);
        assert!(
            error.starts_with("invalid argument in Message::build: "),
            "{error}"
        );
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn properties_may_fill_their_limits_but_not_more() {
    let many = |count: usize| {
        (0..count).fold(plain(), |builder, index| {
            builder.property(format!("k{index}"), "v")
        })
    };
    many(128).build().unwrap();
    assert_eq!(many(129).build().unwrap_err().kind(), ErrorKind::TooLarge);

    let filled = |value: usize| plain().tag("ta").key("ke").property("k", "v".repeat(value));
    filled(16_384 - 5).build().unwrap();
    let error = filled(16_384 - 4).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(
        error.to_string().contains("16385 bytes, 16384 at most"),
        "{error}"
    );
}

#[test]
fn the_body_is_held_against_the_limit_of_the_server() {
    let message = plain().body(vec![0; 10]).build().unwrap();
    message.check_size(10).unwrap();
    assert_eq!(
        message.check_size(9).unwrap_err().kind(),
        ErrorKind::TooLarge
    );
}

#[test]
fn the_body_is_never_copied_and_never_shown() {
    let body = Bytes::from("a-secret-body".to_owned());
    let builder = plain().body(body.clone()).property("p", "hidden");
    assert!(!format!("{builder:#?}").contains("secret"));
    let message = builder.build().unwrap();
    let sent = message.to_proto(&stamp(SystemTime::UNIX_EPOCH));
    assert_eq!(sent.body.as_ptr(), body.as_ptr());
    let shown = format!("{message:?} {message:#?}");
    assert!(shown.contains("13 bytes"), "{shown}");
    assert!(
        !shown.contains("secret") && !shown.contains("hidden"),
        "{shown}"
    );
}

fn stamp(now: SystemTime) -> Stamp<'static> {
    Stamp {
        namespace: "ns",
        message_id: "ID",
        born_host: "host",
        now,
        transactional: false,
    }
}

#[test]
fn the_server_gets_all_that_was_set() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1500);
    let builder = plain().tag("a").keys(["k", "l"]).property("p", "v");
    let message = builder.delay(Duration::from_secs(2)).build().unwrap();
    let sent = message.to_proto(&stamp(now));
    let topic = sent.topic.unwrap();
    assert_eq!((&*topic.resource_namespace, &*topic.name), ("ns", "t"));
    assert_eq!(
        sent.user_properties,
        HashMap::from([("p".to_owned(), "v".to_owned())])
    );
    let system = sent.system_properties.unwrap();
    assert_eq!(system.message_type, MessageType::Delay.to_proto() as i32);
    assert_eq!((system.tag.as_deref(), system.keys.len()), (Some("a"), 2));
    assert_eq!(
        (
            &*system.message_id,
            &*system.born_host,
            system.body_encoding
        ),
        ("ID", "host", 1)
    );
    let millis =
        |time: prost_types::Timestamp| time.seconds * 1000 + i64::from(time.nanos) / 1_000_000;
    assert_eq!(system.born_timestamp.map(millis), Some(1500));
    assert_eq!(system.delivery_timestamp.map(millis), Some(3500));
}

#[test]
fn delivery_times_before_and_beyond_the_calendar_are_sent_as_its_bounds() {
    let sent = |builder: MessageBuilder| {
        let message = builder
            .build()
            .unwrap()
            .to_proto(&stamp(SystemTime::UNIX_EPOCH));
        message
            .system_properties
            .unwrap()
            .delivery_timestamp
            .unwrap()
            .seconds
    };
    assert_eq!(
        sent(plain().deliver_at(SystemTime::UNIX_EPOCH - Duration::from_secs(9))),
        0
    );
    assert_eq!(
        sent(plain().delay(Duration::from_secs(1 << 50))),
        253_402_300_799
    );
    assert_eq!(sent(plain().delay(Duration::MAX)), 253_402_300_799);
}

#[test]
fn within_a_transaction_the_type_says_so() {
    let stamp = Stamp {
        transactional: true,
        ..stamp(SystemTime::UNIX_EPOCH)
    };
    let sent = plain()
        .build()
        .unwrap()
        .to_proto(&stamp)
        .system_properties
        .unwrap();
    assert_eq!(
        sent.message_type,
        MessageType::Transaction.to_proto() as i32
    );
}

proptest! {
    #[test]
    fn any_input_builds_or_says_why(
        topic in ".{0,9}", tag in ".{0,9}", key in ".{0,9}",
        property in (".{0,9}", ".{0,9}"), group in ".{0,99}",
    ) {
        let builder = Message::builder(topic).body("b").tag(tag).key(key);
        match builder.property(property.0, property.1).group(group).build() {
            Ok(message) => prop_assert_eq!(message.message_type(), MessageType::Fifo),
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::InvalidArgument),
        }
    }
}
