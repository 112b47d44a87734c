//! What a handler makes of a delivery.

use std::{fmt::Display, time::Duration};

use actix::{
    Actor, Message,
    dev::{MessageResponse, OneshotSender},
};

/// What shall become of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is done: acknowledge it.
    Ack,
    /// It failed: deliver it again after the delay of the group's retry policy. When its attempts
    /// are used up, the server moves it to the dead letter topic instead.
    Retry,
    /// It failed: deliver it again after this time, 12 h at most.
    RetryAfter(Duration),
    /// It can never succeed: move it to the dead letter topic of the group now.
    DeadLetter {
        /// Why, for the log.
        reason: String,
    },
}

impl Outcome {
    /// A dead letter for this reason.
    pub fn dead_letter(reason: impl Into<String>) -> Self {
        Self::DeadLetter {
            reason: reason.into(),
        }
    }
}

/// What a handler may return.
///
/// `()` and `Ok(())` acknowledge, `Err` is a failed delivery, an [`Outcome`] says all.
pub trait IntoOutcome {
    /// The outcome it stands for.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Ack
    }
}

impl<T: IntoOutcome, E: Display> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(value) => value.into_outcome(),
            Err(error) => {
                tracing::info!(%error, "handler failed");
                Outcome::Retry
            }
        }
    }
}

impl<A, M> MessageResponse<A, M> for Outcome
where
    A: Actor,
    M: Message<Result = Outcome>,
{
    fn handle(self, _: &mut A::Context, asker: Option<OneshotSender<Outcome>>) {
        if let Some(asker) = asker {
            // Nobody waits where the consumer is gone: the delivery comes again.
            let _ = asker.send(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_handlers_return_stands_for_an_outcome() {
        assert_eq!(().into_outcome(), Outcome::Ack);
        assert_eq!(Ok::<(), String>(()).into_outcome(), Outcome::Ack);
        assert_eq!(Err::<(), _>("no").into_outcome(), Outcome::Retry);
        let letter = Outcome::dead_letter("bad");
        assert_eq!(Ok::<_, String>(letter.clone()).into_outcome(), letter);
        assert_eq!(Err::<Outcome, _>("no").into_outcome(), Outcome::Retry);
    }
}
