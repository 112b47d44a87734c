//! The kinds of messages a topic can take.

use std::fmt;

use rocketmq_proto::v2 as pb;

/// What a message is to the server; a topic takes one kind, or several.
///
/// It follows from what is set on a message.
///
/// ```
/// use rocketmq_actors::MessageType;
///
/// assert_eq!(MessageType::Fifo.to_string(), "FIFO");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MessageType {
    /// Nothing special.
    Normal,
    /// In order within its message group.
    Fifo,
    /// Delivered at a given time.
    Delay,
    /// Delivered once its transaction is committed.
    Transaction,
    /// For a lite topic within its topic. Servers from 5.5 on.
    Lite,
    /// Delivered by priority. Servers from 5.4 on.
    Priority,
}

impl MessageType {
    /// Nothing for an unset value and for what a newer server may send.
    pub(crate) fn from_proto(value: i32) -> Option<Self> {
        match pb::MessageType::try_from(value).ok()? {
            pb::MessageType::Unspecified => None,
            pb::MessageType::Normal => Some(Self::Normal),
            pb::MessageType::Fifo => Some(Self::Fifo),
            pb::MessageType::Delay => Some(Self::Delay),
            pb::MessageType::Transaction => Some(Self::Transaction),
            pb::MessageType::Lite => Some(Self::Lite),
            pb::MessageType::Priority => Some(Self::Priority),
        }
    }

    pub(crate) fn to_proto(self) -> pb::MessageType {
        match self {
            Self::Normal => pb::MessageType::Normal,
            Self::Fifo => pb::MessageType::Fifo,
            Self::Delay => pb::MessageType::Delay,
            Self::Transaction => pb::MessageType::Transaction,
            Self::Lite => pb::MessageType::Lite,
            Self::Priority => pb::MessageType::Priority,
        }
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.to_proto().as_str_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_round_trip_and_others_are_nothing() {
        for value in 1..=6 {
            let back = MessageType::from_proto(value).map(|kind| kind.to_proto() as i32);
            assert_eq!(back, Some(value));
        }
        for value in [0, 7, 99, -1] {
            assert_eq!(MessageType::from_proto(value), None, "{value}");
        }
    }
}
