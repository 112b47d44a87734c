//! The signature a server checks. It covers the time of the request only: what protects the
//! request itself is TLS. Made anew for each attempt.

use std::time::SystemTime;

use data_encoding::HEXUPPER;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use crate::{Error, Result};

const ALGORITHM: &str = "MQv2-HMAC-SHA1";
const SECONDS_PER_DAY: u64 = 86_400;

/// Seconds since 1970; before, it stays 1970.
pub(crate) fn unix_seconds(now: SystemTime) -> u64 {
    now.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// The value of `x-mq-date-time`: UTC as `20210309T195445Z`.
pub(crate) fn date_time(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / SECONDS_PER_DAY);
    let time = seconds % SECONDS_PER_DAY;
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The date of a day counted from 1970-01-01, in the Gregorian calendar.
///
/// Years are counted from March here, so that the leap day is the last of its year; 400 of them
/// always have 146 097 days.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let day = day - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// The value of `authorization` for a request that carries `date_time`.
pub(crate) fn authorization(access_key: &str, secret: &str, date_time: &str) -> Result<String> {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes())
        .map_err(|error| Error::invalid("the secret cannot be a key").caused_by(error))?;
    mac.update(date_time.as_bytes());
    let signature = HEXUPPER.encode(&mac.finalize().into_bytes());
    Ok(format!(
        "{ALGORITHM} Credential={access_key}, SignedHeaders=x-mq-date-time, Signature={signature}"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_are_utc_and_know_leap_years() {
        for (seconds, expected) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (1_583_020_799, "20200229T235959Z"),
            (1_609_459_200, "20210101T000000Z"),
            (1_615_319_685, "20210309T195445Z"),
            (2_147_483_648, "20380119T031408Z"),
            (4_107_542_399, "21000228T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
            (253_402_300_799, "99991231T235959Z"),
        ] {
            assert_eq!(date_time(seconds), expected);
        }
        assert_eq!(
            unix_seconds(SystemTime::UNIX_EPOCH - Duration::from_secs(1)),
            0
        );
    }

    #[test]
    fn the_signature_is_that_of_the_reference() {
        assert_eq!(
            authorization("yourAccessKey", "yourSecretKey", "20210309T195445Z").unwrap(),
            "MQv2-HMAC-SHA1 Credential=yourAccessKey, SignedHeaders=x-mq-date-time, \
             Signature=A9BD9710555C7707E020A3A0DC528158F4937B16"
        );
    }

    #[test]
    fn a_secret_of_any_length_signs() {
        for length in [0, 1, 63, 64, 65, 1024] {
            let signed = authorization("ak", &"s".repeat(length), "20210309T195445Z").unwrap();
            assert_eq!(signed.rsplit('=').next().map(str::len), Some(40));
        }
    }

    proptest! {
        #[test]
        fn a_day_later_is_another_and_greater_date(seconds in 0..253_402_214_400_u64) {
            prop_assert!(date_time(seconds) < date_time(seconds + 1));
            prop_assert!(date_time(seconds) < date_time(seconds + SECONDS_PER_DAY));
        }
    }
}
