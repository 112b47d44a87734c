//! The properties a user may give a message.

use super::{
    excerpt::Excerpt,
    name::{check_text, refusal},
};
use crate::Result;

pub(crate) const MAX_PROPERTIES: usize = 128;
/// Bytes of all property keys and values, the tag and the keys together.
pub(crate) const MAX_PROPERTY_BYTES: usize = 16_384;

/// Keys the server keeps for itself, in ascending order.
const RESERVED: [&str; 54] = [
    "1ST_POP_TIME",
    "ARRIVE_TIME",
    "BORN_TIMESTAMP",
    "BUYER_ID",
    "CLUSTER",
    "CONSUME_START_TIME",
    "CORRECTION_FLAG",
    "CORRELATION_ID",
    "DELAY",
    "DLQ_ORIGIN_MESSAGE_ID",
    "DLQ_ORIGIN_TOPIC",
    "DUP_INFO",
    "EXTEND_UNIQ_INFO",
    "INNER_MULTI_QUEUE_OFFSET",
    "INSTANCE_ID",
    "KEYS",
    "MAX_OFFSET",
    "MAX_RECONSUME_TIMES",
    "MIN_OFFSET",
    "MQ2_FLAG",
    "MSG_REGION",
    "MSG_TYPE",
    "ORIGIN_GROUP",
    "ORIGIN_MESSAGE_ID",
    "PGROUP",
    "POP_CK",
    "POP_CK_OFFSET",
    "PUSH_REPLY_TIME",
    "REAL_QID",
    "REAL_TOPIC",
    "RECONSUME_TIME",
    "REPLY_TO_CLIENT",
    "RETRY_TOPIC",
    "TAGS",
    "TIMER_DELAY_LEVEL",
    "TIMER_DELAY_MS",
    "TIMER_DELAY_SEC",
    "TIMER_DELIVER_MS",
    "TIMER_DEL_UNIQKEY",
    "TIMER_DEQUEUE_MS",
    "TIMER_ENQUEUE_MS",
    "TIMER_OUT_MS",
    "TIMER_ROLL_TIMES",
    "TRACE_ON",
    "TRANSFER_FLAG",
    "TRAN_MSG",
    "TRAN_PREPARED_QUEUE_OFFSET",
    "TTL",
    "UNIQ_KEY",
    "WAIT",
    "_SYS_MSG_PRIORITY_",
    "__BORNHOST",
    "__CRC32#",
    "__LITE_TOPIC",
];
/// Not refused by the server, but it turns a message into a FIFO one behind the user's back.
const SHARDING_KEY: &str = "__SHARDINGKEY";

/// Neither of them blank or with a control character, the key not one of the system's.
pub(crate) fn validate(key: &str, value: &str) -> Result<()> {
    check_text("property key", key)?;
    check_text("property value", value).map_err(|error| error.context(Excerpt(key)))?;
    if RESERVED.binary_search(&key).is_ok() {
        return Err(refusal("property key", key, "belongs to the system"));
    }
    if key == SHARDING_KEY {
        return Err(refusal(
            "property key",
            key,
            "is what the message group sets",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_of_the_system_are_refused_by_their_exact_name() {
        assert!(RESERVED.is_sorted(), "they are searched by bisection");
        for key in RESERVED.into_iter().chain([SHARDING_KEY]) {
            assert!(validate(key, "v").is_err(), "{key}");
            assert!(validate(&format!("{key}x"), "v").is_ok(), "{key}");
        }
    }

    #[test]
    fn blank_and_control_characters_are_refused_in_key_and_value() {
        for bad in ["", " ", "a\nb", "\u{1}"] {
            assert!(
                validate(bad, "v").is_err() && validate("k", bad).is_err(),
                "{bad:?}"
            );
        }
        assert!(validate("trace parent", "00-ä").is_ok());
    }

    proptest! {
        #[test]
        fn errors_stay_short_whatever_is_given(key in "(?s:.){0,99}", value in "(?s:.){0,99}") {
            if let Err(error) = validate(&key, &value) {
                prop_assert!(error.to_string().chars().count() < 1200);
            }
        }
    }
}
