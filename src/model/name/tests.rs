#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use proptest::prelude::*;

use super::*;

type Validate = fn(&str) -> Result<()>;
type Refused = (&'static str, Validate, Vec<(String, &'static str)>);

#[test]
fn names_of_the_right_length_and_alphabet_pass() {
    let longest = |length| "x".repeat(length);
    let cases: [(Validate, Vec<String>); 6] = [
        (
            validate_topic,
            vec!["%RETRY%g".into(), "a|b-c_9".into(), longest(127)],
        ),
        (validate_group, vec!["%g|".into(), longest(120)]),
        (validate_lite_topic, vec!["a-b_9".into(), longest(64)]),
        (validate_tag, vec!["tag a".into(), "täg".into(), "*".into()]),
        (validate_key, vec!["two words".into(), longest(5000)]),
        (validate_message_group, vec!["ä b".into(), longest(63)]),
    ];
    for (validate, names) in cases {
        for name in names {
            validate(&name).unwrap();
        }
    }
}

#[test]
fn others_are_refused_with_field_limit_and_value() {
    let long = |length| "x".repeat(length);
    let cases: [Refused; 6] = [
        (
            "topic",
            validate_topic,
            vec![
                (long(128), "127"),
                ("a b".into(), "' '"),
                ("a.b".into(), "%, |"),
            ],
        ),
        (
            "group",
            validate_group,
            vec![(long(121), "120"), ("ä".into(), "'ä'")],
        ),
        (
            "lite topic",
            validate_lite_topic,
            vec![(long(65), "64"), ("a%b".into(), "'%'")],
        ),
        (
            "tag",
            validate_tag,
            vec![("a||b".into(), "|"), ("a\nb".into(), "control")],
        ),
        ("key", validate_key, vec![("a\u{1}b".into(), "control")]),
        (
            "message group",
            validate_message_group,
            vec![
                (long(64), "63"),
                ("ä".repeat(32), "63"),
                ("a\tb".into(), "control"),
            ],
        ),
    ];
    for (field, validate, names) in cases {
        let blank = ["", " ", "\t"].map(|blank| (blank.to_owned(), "blank"));
        for (name, said) in names.into_iter().chain(blank) {
            let error = validate(&name).expect_err(&name).to_string();
            assert!(
                error.contains(&format!(": {field} \"")) && error.contains(said),
                "{error}"
            );
            assert!(error.len() < 250, "{error}");
        }
    }
}

#[test]
fn names_of_the_system_are_refused() {
    for topic in [
        "TBW102",
        "rmq_sys_anything",
        "RMQ_SYS_TRACE_TOPIC",
        "RMQ_SYS_ROCKSDB_X",
    ] {
        assert!(
            validate_topic(topic)
                .unwrap_err()
                .to_string()
                .contains("system"),
            "{topic}"
        );
    }
    assert!(
        validate_group("CID_RMQ_SYS_TRANS")
            .unwrap_err()
            .to_string()
            .contains("system")
    );
    validate_topic("TBW1021").expect("only the very name is reserved");
    validate_topic("%DLQ%rmq_sys_").expect("a prefix stands at the start");
}

proptest! {
    #[test]
    fn what_passes_fits_the_rules_of_the_server(name in "[a-z%|_.\\-ä \u{0}]{0,130}") {
        let alphabet = |also: &str| {
            name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c) || also.contains(c))
        };
        let passes = |max: usize, also: &str| {
            !name.is_empty() && name.len() <= max && alphabet(also)
        };
        let system = name.starts_with("rmq_sys_");
        prop_assert_eq!(validate_topic(&name).is_ok(), passes(127, "%|") && !system);
        prop_assert_eq!(validate_group(&name).is_ok(), passes(120, "%|"));
        prop_assert_eq!(validate_lite_topic(&name).is_ok(), passes(64, ""));
    }
}
