//! Names a server accepts, checked before anything is sent.

#[cfg(test)]
mod tests;

use super::excerpt::Excerpt;
use crate::{Error, Result};

const MAX_TOPIC: usize = 127;
const MAX_GROUP: usize = 120;
/// In bytes; the server wants less than 64 where it wants at most 64 of a lite topic.
const MAX_MESSAGE_GROUP: usize = 63;
const MAX_LITE_TOPIC: usize = 64;

const SYSTEM_TOPICS: [&str; 10] = [
    "TBW102",
    "SCHEDULE_TOPIC_XXXX",
    "BenchmarkTest",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "RMQ_SYS_TRACE_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
    "CHECKPOINT_TOPIC",
];
const SYSTEM_TOPIC_PREFIXES: [&str; 2] = ["rmq_sys_", "RMQ_SYS_ROCKSDB_"];
const SYSTEM_GROUP_PREFIX: &str = "CID_RMQ_SYS_";

/// 1 to 127 of `a-z A-Z 0-9 _ - % |`, and no topic of the system.
pub(crate) fn validate_topic(topic: &str) -> Result<()> {
    check_name("topic", topic, MAX_TOPIC, "%|")?;
    let system = SYSTEM_TOPICS.contains(&topic)
        || SYSTEM_TOPIC_PREFIXES
            .iter()
            .any(|prefix| topic.starts_with(prefix));
    refuse_if(system, "topic", topic, "belongs to the system")
}

/// 1 to 120 of `a-z A-Z 0-9 _ - % |`, and no group of the system.
pub(crate) fn validate_group(group: &str) -> Result<()> {
    check_name("group", group, MAX_GROUP, "%|")?;
    let system = group.starts_with(SYSTEM_GROUP_PREFIX);
    refuse_if(system, "group", group, "belongs to the system")
}

/// 1 to 64 of `a-z A-Z 0-9 _ -`.
pub(crate) fn validate_lite_topic(lite_topic: &str) -> Result<()> {
    check_name("lite topic", lite_topic, MAX_LITE_TOPIC, "")
}

/// Not blank, no `|`, no control character.
pub(crate) fn validate_tag(tag: &str) -> Result<()> {
    check_text("tag", tag)?;
    refuse_if(
        tag.contains('|'),
        "tag",
        tag,
        "has a | in it, which separates tags in filters",
    )
}

/// Not blank, no control character.
pub(crate) fn validate_key(key: &str) -> Result<()> {
    check_text("key", key)
}

/// Not blank, no control character, 63 bytes at most.
pub(crate) fn validate_message_group(group: &str) -> Result<()> {
    check_text("message group", group)?;
    check_length("message group", group, MAX_MESSAGE_GROUP)
}

fn check_name(field: &str, name: &str, max: usize, also: &str) -> Result<()> {
    refuse_blank(field, name)?;
    check_length(field, name, max)?;
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c) || also.contains(c);
    match name.chars().find(|&c| !legal(c)) {
        None => Ok(()),
        Some(stray) => {
            let why = format!("has {stray:?} in it, allowed are a-z, A-Z, 0-9, _, -");
            let also = also.chars().map(|c| format!(", {c}")).collect::<String>();
            Err(refusal(field, name, &(why + &also)))
        }
    }
}

pub(crate) fn check_text(field: &str, text: &str) -> Result<()> {
    refuse_blank(field, text)?;
    refuse_if(
        text.chars().any(char::is_control),
        field,
        text,
        "has a control character in it",
    )
}

fn refuse_blank(field: &str, text: &str) -> Result<()> {
    refuse_if(text.trim().is_empty(), field, text, "is blank")
}

fn check_length(field: &str, text: &str, max: usize) -> Result<()> {
    if text.len() <= max {
        return Ok(());
    }
    Err(refusal(
        field,
        text,
        &format!("has {} bytes, {max} at most", text.len()),
    ))
}

fn refuse_if(wrong: bool, field: &str, text: &str, why: &str) -> Result<()> {
    if wrong {
        Err(refusal(field, text, why))
    } else {
        Ok(())
    }
}

pub(crate) fn refusal(field: &str, text: &str, why: &str) -> Error {
    Error::invalid(format!("{field} {} {why}", Excerpt(text)))
}
