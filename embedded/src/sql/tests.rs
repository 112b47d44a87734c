#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use rocketmq_proto::v2 as pb;

use super::parse;

fn message() -> pb::Message {
    let properties = [("a", "5"), ("b", "text"), ("yes", "TRUE"), ("neg", "-1.5")];
    pb::Message {
        user_properties: properties
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        system_properties: Some(pb::SystemProperties {
            tag: Some("T".into()),
            keys: vec!["k1".into(), "k2".into()],
            ..pb::SystemProperties::default()
        }),
        ..pb::Message::default()
    }
}

#[test]
fn expressions_match_what_they_say() {
    let matching = [
        "a = 5",
        "a=5L",
        "a > 4.9 AND a <= 5e0",
        "5 >= a",
        "a <> 6",
        "neg = -1.5",
        "neg < - 1",
        "b = 'text'",
        "b <> 'other'",
        "'it''s' = 'it''s'",
        "a BETWEEN 5 AND 6",
        "a NOT BETWEEN -3 AND 4",
        "b IN ('x', 'text')",
        "b not in ('x')",
        "b CONTAINS 'ex'",
        "b StartsWith 'te'",
        "b ENDSWITH 'xt'",
        "b NOT CONTAINS 'zz'",
        "missing IS NULL",
        "a IS NOT NULL",
        "yes",
        "yes = TRUE",
        "NOT (a = 6)",
        "a = 6 OR b = 'text'",
        "a = 6 or missing = 1 or a = 5",
        "TAGS = 'T'",
        "KEYS = 'k1 k2'",
        "TRUE",
        "a = 5 -- the rest is a comment",
        "a /* and */ = 5",
        "NOT NOT yes",
        "(a = 5) = TRUE",
    ];
    for expression in matching {
        let parsed = parse(expression).unwrap_or_else(|| panic!("{expression} is not read"));
        assert!(parsed.matches(&message()), "{expression}");
    }
}

#[test]
fn what_is_false_or_unknown_or_no_truth_does_not_match() {
    let others = [
        "a = 6",
        "b = 5",
        "b > 5",
        "b > 'a'",
        "missing = 1",
        "missing <> 1",
        "NOT (missing = 1)",
        "missing = 1 AND a = 5",
        "missing IN ('x')",
        "missing NOT IN ('x')",
        "b",
        "a",
        "5",
        "missing",
        "FALSE",
        "missing CONTAINS 'x'",
        "b BETWEEN 1 AND 2",
        "-b = 1",
    ];
    for expression in others {
        let parsed = parse(expression).unwrap_or_else(|| panic!("{expression} is not read"));
        assert!(!parsed.matches(&message()), "{expression}");
    }
}

#[test]
fn what_is_no_expression_is_not_read() {
    let nonsense = [
        "",
        " ",
        "a =",
        "= 5",
        "a == 5",
        "(a = 5",
        "a = 5)",
        "a BETWEEN 6 AND 5",
        "a IN ()",
        "a IN (5)",
        "a IN 'x'",
        "a LIKE 'x%'",
        "a CONTAINS 5",
        "a NOT 5",
        "'open",
        "/* open",
        "a ! 5",
        "AND",
        "a AND",
        "5x = 1",
        "a IS 5",
        "a BETWEEN b AND 5",
        "1.2.3 = a",
    ];
    for expression in nonsense {
        assert_eq!(parse(expression), None, "{expression}");
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = |n: usize| format!("{}a = 5{}", "(".repeat(n), ")".repeat(n));
    assert!(parse(&deep(60)).is_some());
    assert_eq!(parse(&deep(100_000)), None);
    assert!(parse(&format!("yes{}", " OR yes".repeat(1000))).is_some());
    assert_eq!(parse(&format!("yes{}", " OR yes".repeat(100_000))), None);
    assert_eq!(parse(&format!("{} yes", "NOT ".repeat(100_000))), None);
    assert_eq!(parse(&format!("{}a = 5", "- ".repeat(100_000))), None);
}
