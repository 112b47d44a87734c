//! Messages as bytes of the wire, made once for all attempts.

use bytes::{BufMut, Bytes, BytesMut};
use prost::{EncodeError, Message as _, encode_length_delimiter, length_delimiter_len};
use rocketmq_proto::v2 as pb;

/// Keys of length-delimited fields: the messages of a request, a message's system properties.
const MESSAGES: u8 = 1 << 3 | 2;
const SYSTEM_PROPERTIES: u8 = 3 << 3 | 2;

/// A message but for its queue, which each attempt chooses anew. Cheap to clone.
///
/// Made where the message is, so that whoever writes it to a connection reads one piece of memory.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    bytes: Bytes,
    /// Where the content of the system properties begins, which come last.
    system_at: usize,
}

impl Encoded {
    /// Fails never: the buffer grows.
    pub(crate) fn of(mut message: pb::Message) -> Result<Self, EncodeError> {
        let mut system = message.system_properties.take().unwrap_or_default();
        system.queue_id = 0;
        let system_at = message.encoded_len();
        let mut bytes = BytesMut::with_capacity(system_at + system.encoded_len());
        message.encode(&mut bytes)?;
        system.encode(&mut bytes)?;
        Ok(Self {
            bytes: bytes.freeze(),
            system_at,
        })
    }

    /// Bytes without those of its queue.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// A request to store messages in one queue.
#[derive(Debug)]
pub(crate) struct SendRequest {
    messages: Vec<Encoded>,
    /// The field of the system properties that names the queue.
    queue: Vec<u8>,
}

impl SendRequest {
    pub(crate) fn new(messages: Vec<Encoded>, queue_id: i32) -> Self {
        let queue = pb::SystemProperties {
            queue_id,
            ..pb::SystemProperties::default()
        };
        Self {
            messages,
            queue: queue.encode_to_vec(),
        }
    }

    /// The bytes of a message's system properties, and of all of it.
    fn lengths(&self, message: &Encoded) -> (usize, usize) {
        let system = message.len() - message.system_at + self.queue.len();
        let all = message.system_at + 1 + length_delimiter_len(system) + system;
        (system, all)
    }

    pub(crate) fn encoded_len(&self) -> usize {
        let len = |message| {
            let (_, all) = self.lengths(message);
            1 + length_delimiter_len(all) + all
        };
        self.messages.iter().map(len).sum()
    }

    pub(crate) fn encode(&self, into: &mut impl BufMut) -> Result<(), EncodeError> {
        for message in &self.messages {
            let (system, all) = self.lengths(message);
            let (others, properties) = message.bytes.split_at(message.system_at);
            into.put_u8(MESSAGES);
            encode_length_delimiter(all, into)?;
            into.put_slice(others);
            into.put_u8(SYSTEM_PROPERTIES);
            encode_length_delimiter(system, into)?;
            into.put_slice(properties);
            into.put_slice(&self.queue);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    fn message(body: Vec<u8>, tag: Option<String>, key: String, queue_id: i32) -> pb::Message {
        pb::Message {
            topic: Some(pb::Resource {
                resource_namespace: String::new(),
                name: "t".to_owned(),
            }),
            user_properties: [(key.clone(), "v".to_owned())].into(),
            system_properties: Some(pb::SystemProperties {
                tag,
                keys: vec![key],
                message_id: "id".to_owned(),
                queue_id,
                priority: Some(7),
                ..pb::SystemProperties::default()
            }),
            body: body.into(),
        }
    }

    proptest! {
        #[test]
        fn a_request_of_encoded_messages_is_that_of_the_messages(
            parts in prop::collection::vec(
                (prop::collection::vec(any::<u8>(), 0..300), any::<Option<String>>(), ".{0,200}"),
                0..5,
            ),
            queue_id in any::<i32>(),
        ) {
            let messages: Vec<_> = parts
                .into_iter()
                .map(|(body, tag, key)| message(body, tag, key, queue_id))
                .collect();
            let encoded = messages.iter().cloned().map(Encoded::of);
            let request = SendRequest::new(encoded.map(Result::unwrap).collect(), queue_id);
            let mut bytes = Vec::new();
            request.encode(&mut bytes).unwrap();
            prop_assert_eq!(bytes.len(), request.encoded_len());
            let sent = pb::SendMessageRequest::decode(bytes.as_slice()).unwrap();
            prop_assert_eq!(sent.messages, messages);
        }
    }
}
