//! A send that shares its request.

use std::sync::Arc;

use prost::Message as _;
use rocketmq_proto::v2 as pb;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{
    collect::Limits,
    depot::{Depot, Outcome, Parcel, Waiter},
    request::launch,
};
use crate::{
    Error, ErrorKind, Result,
    model::{Endpoints, message::encoded::Encoded, message_id::MessageId, queue::MessageQueue},
    produce::{
        Publication,
        attempts::{Journey, judge},
        lane::Lane,
        send::{Step, Stored},
    },
};

/// How a message may share a request: the limits of the request, and its own size.
#[derive(Debug, Clone, Copy)]
pub(in crate::produce) struct Company {
    limits: Limits,
    bytes: usize,
}

impl Publication {
    /// Whether a message may share a request, by the user's choice and its own kind.
    pub(in crate::produce) fn company(&self, message: &pb::Message) -> Option<Company> {
        let limits = self.options.batching.limits()?;
        let bytes = message.encoded_len();
        (mergeable(message) && bytes <= limits.bytes).then_some(Company { limits, bytes })
    }

    /// One attempt in company with others.
    pub(in crate::produce) async fn together(
        self: &Arc<Self>,
        lane: &Arc<Lane>,
        queue: MessageQueue,
        id: &MessageId,
        message: Encoded,
        company: Company,
        journey: &mut Journey,
    ) -> Result<Step> {
        if journey.share(Instant::now()).is_zero() {
            return Err(journey.last_error());
        }
        let (reply, outcome) = oneshot::channel();
        let endpoints = queue.endpoints.clone();
        let parcel = Parcel {
            message,
            queue,
            waiter: Waiter {
                id: id.clone(),
                deadline: journey.deadline(),
                attempts: journey.attempts_left(),
                reply,
            },
        };
        let (key, departing) = lane.depot.put(parcel, company.bytes, company.limits);
        let mut place = Place {
            depot: &lane.depot,
            endpoints,
            key,
            journey: &mut *journey,
            settled: false,
        };
        if let Some(batch) = departing {
            launch(self, lane, batch);
        }
        // The request has a deadline of its own, but one with a later deadline may be on it.
        let outcome = timeout_at(place.journey.deadline(), outcome).await;
        place.settled = matches!(outcome, Ok(Ok(_)));
        drop(place);
        match outcome {
            Ok(Ok(outcome)) => self.learn(lane, outcome, journey).await,
            Ok(Err(_)) => Err(Error::new(ErrorKind::Closed, "the request was cut off")),
            Err(_) => Err(journey.last_error()),
        }
    }

    async fn learn(&self, lane: &Lane, outcome: Outcome, journey: &mut Journey) -> Result<Step> {
        match outcome {
            Outcome::Unsent => return Ok(Step::Again),
            Outcome::Stored(queue, entry) => {
                journey.departs();
                return Ok(Step::Stored(Stored { queue, entry }));
            }
            Outcome::Refused(error) => {
                journey.departs();
                journey.refused(error);
                return Ok(Step::Alone);
            }
            Outcome::Failed(queue, error) => {
                journey.departs();
                let verdict = judge(&error, lane.has_accepted());
                self.pause(verdict, &queue, error, journey).await?;
            }
        }
        Ok(Step::Again)
    }
}

/// Only what every server keeps apart: order, delays, transactions and encodings are lost or
/// mixed up in a shared request.
fn mergeable(message: &pb::Message) -> bool {
    message
        .system_properties
        .as_ref()
        .is_some_and(|properties| {
            properties.message_type() == pb::MessageType::Normal
                && properties.body_encoding() == pb::Encoding::Identity
        })
}

/// The place of a message in its depot. Dropped unsettled, the message is taken out, or its send
/// remembers that it was under way.
struct Place<'a> {
    depot: &'a Depot,
    endpoints: Endpoints,
    key: u64,
    journey: &'a mut Journey,
    settled: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.settled && !self.depot.withdraw(&self.endpoints, self.key) {
            self.journey.departs();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: pb::MessageType, encoding: pb::Encoding) -> pb::Message {
        pb::Message {
            system_properties: Some(pb::SystemProperties {
                message_type: kind.into(),
                body_encoding: encoding.into(),
                ..pb::SystemProperties::default()
            }),
            ..pb::Message::default()
        }
    }

    #[test]
    fn n46_mixed_encodings_are_never_merged() {
        let normal = pb::MessageType::Normal;
        assert!(mergeable(&message(normal, pb::Encoding::Identity)));
        for encoding in [pb::Encoding::Gzip, pb::Encoding::Unspecified] {
            assert!(!mergeable(&message(normal, encoding)), "{encoding:?}");
        }
    }

    #[test]
    fn n48_only_normal_messages_are_merged() {
        for kind in [
            pb::MessageType::Fifo,
            pb::MessageType::Delay,
            pb::MessageType::Transaction,
            pb::MessageType::Priority,
            pb::MessageType::Lite,
            pb::MessageType::Unspecified,
        ] {
            assert!(
                !mergeable(&message(kind, pb::Encoding::Identity)),
                "{kind:?}"
            );
        }
        assert!(!mergeable(&pb::Message::default()));
    }
}
