//! Times and spans of the protocol, which may hold anything.

use std::time::{Duration, SystemTime};

/// The longest span that a user may set; beyond it arithmetic on instants could overflow.
pub(crate) const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

const NANOS: i128 = 1_000_000_000;
/// 0001-01-01 and 9999-12-31T23:59:59, the bounds of a protobuf timestamp, in Unix seconds.
const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;
/// About 10 000 years, the bound of a protobuf duration.
const LONGEST: u64 = 315_576_000_000;

fn total_nanos(seconds: i64, nanos: i32) -> i128 {
    i128::from(seconds) * NANOS + i128::from(nanos)
}

fn from_nanos(nanos: u128) -> Option<Duration> {
    let seconds = u64::try_from(nanos / NANOS.unsigned_abs()).ok()?;
    Some(Duration::new(
        seconds,
        u32::try_from(nanos % NANOS.unsigned_abs()).ok()?,
    ))
}

/// A span within `0..=max`; what lies outside becomes the nearer bound.
pub(crate) fn duration(span: &prost_types::Duration, max: Duration) -> Duration {
    let nanos = total_nanos(span.seconds, span.nanos);
    u128::try_from(nanos).map_or(Duration::ZERO, |nanos| {
        from_nanos(nanos).unwrap_or(max).min(max)
    })
}

/// Spans over the protocol's 10 000 years become that.
pub(crate) fn to_proto_duration(span: Duration) -> prost_types::Duration {
    let span = span.min(Duration::from_secs(LONGEST));
    prost_types::Duration {
        seconds: i64::try_from(span.as_secs()).unwrap_or_default(),
        nanos: i32::try_from(span.subsec_nanos()).unwrap_or_default(),
    }
}

/// Nothing for what is no time of the years 1 to 9999, or beyond what this system can tell.
pub(crate) fn system_time(time: &prost_types::Timestamp) -> Option<SystemTime> {
    let legal = (FIRST_SECOND..=LAST_SECOND).contains(&time.seconds)
        && (0..1_000_000_000).contains(&time.nanos);
    legal.then_some(())?;
    let nanos = total_nanos(time.seconds, time.nanos);
    let distance = from_nanos(nanos.unsigned_abs())?;
    if nanos < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    }
}

/// Times before the year 1 or after 9999 become the nearer bound.
pub(crate) fn to_timestamp(time: SystemTime) -> prost_types::Timestamp {
    let nanos = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
    };
    let (first, last) = (
        total_nanos(FIRST_SECOND, 0),
        total_nanos(LAST_SECOND, 999_999_999),
    );
    let nanos = nanos.clamp(first, last);
    prost_types::Timestamp {
        seconds: i64::try_from(nanos.div_euclid(NANOS)).unwrap_or_default(),
        nanos: i32::try_from(nanos.rem_euclid(NANOS)).unwrap_or_default(),
    }
}

/// A time that cannot be told becomes the last one of the protocol: late, never early.
pub(crate) fn later(time: SystemTime, span: Duration) -> SystemTime {
    let last = Duration::from_secs(LAST_SECOND.unsigned_abs());
    time.checked_add(span)
        .unwrap_or(SystemTime::UNIX_EPOCH + last)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn spans_of_a_server_are_clamped() {
        for (seconds, nanos, expected) in [
            (1, 500_000_000, Duration::from_millis(1500)),
            (2, -500_000_000, Duration::from_millis(1500)),
            (0, 0, Duration::ZERO),
            (-1, 0, Duration::ZERO),
            (0, -1, Duration::ZERO),
            (0, i32::MAX, Duration::from_nanos(2_147_483_647)),
            (i64::MAX, i32::MAX, HOUR),
            (i64::MIN, i32::MIN, Duration::ZERO),
        ] {
            let span = prost_types::Duration { seconds, nanos };
            assert_eq!(duration(&span, HOUR), expected, "{span:?}");
        }
    }

    #[test]
    fn times_at_the_edges_of_the_calendar_are_kept_and_beyond_refused() {
        let at = |seconds, nanos| system_time(&prost_types::Timestamp { seconds, nanos });
        for seconds in [FIRST_SECOND, -1, 0, i64::from(i32::MAX) + 1, LAST_SECOND] {
            let time = at(seconds, 999_999_999).unwrap();
            assert_eq!(
                to_timestamp(time),
                prost_types::Timestamp {
                    seconds,
                    nanos: 999_999_999
                }
            );
        }
        assert_eq!(
            at(-1, 500_000_000),
            Some(SystemTime::UNIX_EPOCH - Duration::from_millis(500))
        );
        for (seconds, nanos) in [
            (FIRST_SECOND - 1, 0),
            (LAST_SECOND + 1, 0),
            (i64::MAX, 0),
            (i64::MIN, 0),
            (0, -1),
            (0, 1_000_000_000),
        ] {
            assert_eq!(at(seconds, nanos), None, "{seconds} {nanos}");
        }
    }

    #[test]
    fn the_longest_span_and_the_latest_time_are_cut_to_the_protocol() {
        assert_eq!(to_proto_duration(Duration::MAX).seconds, 315_576_000_000);
        let late = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 50);
        assert_eq!(to_timestamp(late).seconds, LAST_SECOND);
        let early = SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 50);
        assert_eq!(to_timestamp(early).seconds, FIRST_SECOND);
    }

    proptest! {
        #[test]
        fn spans_round_trip(millis in 0..=86_400_000_u64 * 365) {
            let span = Duration::from_millis(millis);
            prop_assert_eq!(duration(&to_proto_duration(span), Duration::MAX), span);
        }

        #[test]
        fn times_round_trip(seconds in FIRST_SECOND..=LAST_SECOND, nanos in 0..1_000_000_000) {
            let time = prost_types::Timestamp { seconds, nanos };
            prop_assert_eq!(to_timestamp(system_time(&time).unwrap()), time);
        }

        #[test]
        fn any_span_ends_within_its_bounds(seconds: i64, nanos: i32, max: u64) {
            let (span, max) = (prost_types::Duration { seconds, nanos }, Duration::from_millis(max));
            prop_assert!(duration(&span, max) <= max);
            let _ = system_time(&prost_types::Timestamp { seconds, nanos });
        }
    }
}
