//! Receipt handles: nine fields of text.

use std::fmt;

use rocketmq_proto::v2 as pb;

use crate::rpc::{Checked, refuse};
use crate::store::Position;

/// Where the handles of ordered queues differ from others.
pub(crate) const ORDERED: u32 = 999;

/// What a handle says: which message, when it was taken and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) start_offset: i64,
    pub(crate) popped_at: i64,
    pub(crate) invisible: i64,
    pub(crate) revive_queue: u32,
    pub(crate) broker: String,
    pub(crate) position: Position,
    pub(crate) commit_log: Option<i64>,
}

impl Receipt {
    pub(crate) fn parse(handle: &str) -> Checked<Self> {
        let fields: Vec<&str> = handle.split(' ').collect();
        Self::from_fields(&fields).ok_or_else(|| {
            crate::rpc::status(
                pb::Code::InternalServerError,
                format!(
                    "Parse failed, dataList size {}, handle: {handle}",
                    fields.len()
                ),
            )
        })
    }

    fn from_fields(fields: &[&str]) -> Option<Self> {
        let [
            start,
            popped,
            invisible,
            revive,
            kind,
            broker,
            queue,
            offset,
            rest @ ..,
        ] = fields
        else {
            return None;
        };
        Some(Self {
            start_offset: start.parse().ok()?,
            popped_at: popped.parse().ok()?,
            invisible: invisible.parse().ok()?,
            revive_queue: revive.parse().ok()?,
            broker: (*broker).to_owned(),
            position: Position {
                retry: matches!(*kind, "1" | "2"),
                queue: queue.parse().ok()?,
                offset: offset.parse().ok()?,
            },
            commit_log: match rest.first() {
                Some(field) => Some(field.parse().ok()?),
                None => None,
            },
        })
    }

    pub(crate) fn ordered(&self) -> bool {
        self.revive_queue == ORDERED
    }

    pub(crate) fn unexpired(self, now: i64) -> Checked<Self> {
        if self.popped_at.saturating_add(self.invisible) <= now {
            return refuse(pb::Code::InvalidReceiptHandle, "receipt handle is expired");
        }
        Ok(self)
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {} {} {} {} {} {}",
            self.start_offset,
            self.popped_at,
            self.invisible,
            self.revive_queue,
            u8::from(self.position.retry),
            self.broker,
            self.position.queue,
            self.position.offset,
            self.commit_log.unwrap_or_default(),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_handle_survives_being_written_and_read() {
        let text = "0 1796129743363 30000 0 0 broker-a 1 0 4242691";
        assert_eq!(Receipt::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn malformed_handles_say_how_many_fields_they_had() {
        for (handle, size) in [("", 1), ("a b", 2), ("x 1 1 0 0 b 1 0 4", 9)] {
            let refused = Receipt::parse(handle).unwrap_err();
            assert_eq!(refused.code(), pb::Code::InternalServerError);
            assert!(
                refused
                    .message
                    .starts_with(&format!("Parse failed, dataList size {size}"))
            );
        }
    }
}
