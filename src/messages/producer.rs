//! Messages to a [`ProducerActor`](crate::actors::ProducerActor), which also hears
//! [`RouteUpdated`](super::route::RouteUpdated).

use actix::Message as ActixMessage;

use crate::{Message, Result, SendReceipt};

/// From any actor of the application: send this. Answered with the receipt, or the error, of the
/// send; see [`Producer::send`](crate::Producer::send).
///
/// Get the recipient from [`Producer::recipient`](crate::Producer::recipient). Whoever uses
/// `do_send` never learns of a failed send.
#[derive(Debug, Clone, ActixMessage)]
#[rtype(result = "Result<SendReceipt>")]
pub struct SendMessage {
    /// What to send.
    pub message: Message,
}
