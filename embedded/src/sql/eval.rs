//! What an expression comes to for a message, with unknown as a third truth value.

use rocketmq_proto::v2 as pb;

use super::{Compare, Expression, TextTest, Value};

impl Expression {
    /// True, false, or unknown.
    pub(super) fn truth(&self, message: &pb::Message) -> Option<bool> {
        match self {
            Self::Not(inner) => inner.truth(message).map(|truth| !truth),
            Self::And(left, right) => match (left.truth(message), right.truth(message)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Self::Or(left, right) => match (left.truth(message), right.truth(message)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Self::Compare(how, left, right) => {
                compare(*how, &left.value(message), &right.value(message))
            }
            Self::Between(inner, low, high) => match inner.value(message) {
                Value::Null => None,
                value => Some(number(&value).is_some_and(|n| *low <= n && n <= *high)),
            },
            Self::In(inner, list) => text(inner.value(message)).map(|text| list.contains(&text)),
            Self::IsNull(inner) => Some(inner.value(message) == Value::Null),
            Self::Text(test, inner, part) => text(inner.value(message)).map(|text| match test {
                TextTest::Contains => text.contains(part),
                TextTest::StartsWith => text.starts_with(part),
                TextTest::EndsWith => text.ends_with(part),
            }),
            Self::Literal(_) | Self::Property(_) | Self::Negative(_) => match self.value(message) {
                Value::Bool(truth) => Some(truth),
                Value::Text(text) => Some(text.eq_ignore_ascii_case("true")),
                Value::Null | Value::Number(_) => None,
            },
        }
    }

    fn value(&self, message: &pb::Message) -> Value {
        match self {
            Self::Literal(value) => value.clone(),
            Self::Property(name) => property(message, name).map_or(Value::Null, Value::Text),
            Self::Negative(inner) => match number(&inner.value(message)) {
                Some(number) => Value::Number(-number),
                None => Value::Null,
            },
            _ => self.truth(message).map_or(Value::Null, Value::Bool),
        }
    }
}

fn property(message: &pb::Message, name: &str) -> Option<String> {
    let system = message.system_properties.as_ref();
    match name {
        "TAGS" => system?.tag.clone(),
        "KEYS" => {
            let keys = &system?.keys;
            (!keys.is_empty()).then(|| keys.join(" "))
        }
        _ => message.user_properties.get(name).cloned(),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Text(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) => None,
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// Properties are texts: beside a number they count as one, beside a truth value as one.
fn compare(how: Compare, left: &Value, right: &Value) -> Option<bool> {
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::Text(left), Value::Text(right)) => equality(how, left == right),
        (Value::Bool(left), Value::Bool(right)) => equality(how, left == right),
        (Value::Text(text), Value::Bool(truth)) | (Value::Bool(truth), Value::Text(text)) => {
            equality(how, text.eq_ignore_ascii_case("true") == *truth)
        }
        _ => {
            let (Some(left), Some(right)) = (number(left), number(right)) else {
                return Some(false);
            };
            Some(match how {
                Compare::Equal => left == right,
                Compare::Differ => left != right,
                Compare::Less => left < right,
                Compare::AtMost => left <= right,
                Compare::More => left > right,
                Compare::AtLeast => left >= right,
            })
        }
    }
}

/// What is no number has no order.
fn equality(how: Compare, equal: bool) -> Option<bool> {
    match how {
        Compare::Equal => Some(equal),
        Compare::Differ => Some(!equal),
        _ => None,
    }
}
