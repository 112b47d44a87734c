//! The metadata of a call.

use std::time::Duration;

use tonic::metadata::MetadataMap;

/// The metadata that clients send, each empty when missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Headers {
    /// `x-mq-client-id`
    pub client_id: String,
    /// `x-mq-language`
    pub language: String,
    /// `x-mq-client-version`
    pub version: String,
    /// `x-mq-protocol`
    pub protocol: String,
    /// `x-mq-request-id`
    pub request_id: String,
    /// `x-mq-date-time`
    pub date_time: String,
    /// `x-mq-namespace`
    pub namespace: String,
    /// `x-mq-session-token`
    pub session_token: String,
    /// `authorization`
    pub authorization: String,
    /// `grpc-timeout`: how long the caller waits, counted from its sending.
    pub timeout: Option<Duration>,
}

impl Headers {
    pub(crate) fn of(metadata: &MetadataMap) -> Self {
        let text = |key: &str| {
            metadata
                .get(key)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        Self {
            client_id: text("x-mq-client-id"),
            language: text("x-mq-language"),
            version: text("x-mq-client-version"),
            protocol: text("x-mq-protocol"),
            request_id: text("x-mq-request-id"),
            date_time: text("x-mq-date-time"),
            namespace: text("x-mq-namespace"),
            session_token: text("x-mq-session-token"),
            authorization: text("authorization"),
            timeout: grpc_timeout(&text("grpc-timeout")),
        }
    }
}

/// At most eight digits and a unit.
fn grpc_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 3600)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_of_every_unit_are_read_and_nonsense_is_none() {
        let cases = [
            ("2H", Some(Duration::from_secs(7200))),
            ("3M", Some(Duration::from_secs(180))),
            ("4S", Some(Duration::from_secs(4))),
            ("23000000u", Some(Duration::from_secs(23))),
            ("5m", Some(Duration::from_millis(5))),
            ("9n", Some(Duration::from_nanos(9))),
            ("", None),
            ("S", None),
            ("123456789S", None),
            ("5x", None),
            ("5é", None),
        ];
        for (text, expected) in cases {
            assert_eq!(grpc_timeout(text), expected, "{text:?}");
        }
    }
}
