//! Which names the proxy accepts.

use rocketmq_proto::v2 as pb;

use crate::rpc::{Checked, refuse};

const SYSTEM_TOPICS: [&str; 11] = [
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
    "DefaultCluster",
];

fn legal(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'%' | b'|' | b'-' | b'_'))
}

pub(crate) fn topic(name: &str) -> Checked<&str> {
    let illegal = |text: &str| refuse(pb::Code::IllegalTopic, text);
    if name.trim().is_empty() {
        illegal("The specified topic is blank")
    } else if !legal(name) {
        illegal("The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")
    } else if name.len() > 127 {
        illegal("The specified topic is longer than topic max length 127.")
    } else if SYSTEM_TOPICS.contains(&name)
        || name.starts_with("rmq_sys_")
        || name.starts_with("RMQ_SYS_ROCKSDB_")
    {
        illegal("cannot access system topic")
    } else {
        Ok(name)
    }
}

pub(crate) fn group(name: &str) -> Checked<&str> {
    let illegal = |text: &str| refuse(pb::Code::IllegalConsumerGroup, text);
    if name.trim().is_empty() {
        illegal("the specified group is blank")
    } else if name.len() > 120 {
        illegal("the specified group is longer than group max length 120.")
    } else if !legal(name) {
        illegal("the specified group contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")
    } else if name.starts_with("CID_RMQ_SYS_") {
        illegal("cannot use system consumer group")
    } else {
        Ok(name)
    }
}

fn controls(text: &str) -> bool {
    text.chars().any(char::is_control)
}

pub(crate) fn tag(tag: &str) -> Checked<()> {
    if !tag.is_empty() && (tag.trim().is_empty() || tag.contains('|') || controls(tag)) {
        return refuse(
            pb::Code::IllegalMessageTag,
            "tag cannot be blank or contain | or a control character",
        );
    }
    Ok(())
}

pub(crate) fn key(key: &str) -> Checked<()> {
    if key.trim().is_empty() || controls(key) {
        return refuse(
            pb::Code::IllegalMessageKey,
            "key cannot be blank or contain a control character",
        );
    }
    Ok(())
}

pub(crate) fn message_group(group: &str) -> Checked<()> {
    if group.trim().is_empty() || group.len() >= 64 || controls(group) {
        return refuse(
            pb::Code::IllegalMessageGroup,
            "message group cannot be blank, exceed the max 64 or contain a control character",
        );
    }
    Ok(())
}

/// User properties may not be called like the broker's own.
const RESERVED: &str = " KEYS TAGS WAIT DELAY RETRY_TOPIC ORIGIN_GROUP REAL_TOPIC REAL_QID \
TRAN_MSG PGROUP MIN_OFFSET MAX_OFFSET BUYER_ID ORIGIN_MESSAGE_ID TRANSFER_FLAG CORRECTION_FLAG \
MQ2_FLAG RECONSUME_TIME MSG_REGION TRACE_ON UNIQ_KEY EXTEND_UNIQ_INFO MAX_RECONSUME_TIMES \
CONSUME_START_TIME POP_CK POP_CK_OFFSET 1ST_POP_TIME TRAN_PREPARED_QUEUE_OFFSET DUP_INFO \
INSTANCE_ID CORRELATION_ID REPLY_TO_CLIENT TTL ARRIVE_TIME PUSH_REPLY_TIME CLUSTER MSG_TYPE \
INNER_MULTI_QUEUE_OFFSET TIMER_DELAY_MS TIMER_DELAY_SEC TIMER_DELIVER_MS TIMER_ENQUEUE_MS \
TIMER_DEQUEUE_MS TIMER_ROLL_TIMES TIMER_OUT_MS TIMER_DEL_UNIQKEY TIMER_DELAY_LEVEL __BORNHOST \
BORN_TIMESTAMP DLQ_ORIGIN_TOPIC DLQ_ORIGIN_MESSAGE_ID __CRC32# _SYS_MSG_PRIORITY_ __LITE_TOPIC ";

pub(crate) fn property(key: &str, value: &str) -> Checked<()> {
    if RESERVED
        .split(' ')
        .any(|reserved| !reserved.is_empty() && reserved == key)
    {
        return refuse(
            pb::Code::IllegalMessagePropertyKey,
            format!("property is used by system: {key}"),
        );
    }
    if controls(key) || controls(value) {
        return refuse(
            pb::Code::IllegalMessagePropertyKey,
            format!("property {key} contains a control character"),
        );
    }
    Ok(())
}
