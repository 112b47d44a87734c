//! The stream of a receive: status, messages, time.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{Stream, StreamExt};
use rocketmq_proto::v2 as pb;
use rocketmq_proto::v2::receive_message_response::Content;
use tonic::Status;

use crate::clock::timestamp;
use crate::node::Node;
use crate::receipt::Receipt;
use crate::rpc::Reply;
use crate::service::Ticket;
use crate::store::pop::Delivered;

/// A message whose receive was given up comes back after this long.
const RETURN_DELAY: Duration = Duration::from_secs(1);

type Item = Result<pb::ReceiveMessageResponse, Status>;

/// Where messages go back to that the caller did not take.
#[derive(Debug)]
pub(crate) struct Undelivered {
    pub(crate) broker: Arc<Node>,
    pub(crate) topic: String,
    pub(crate) group: String,
}

impl Undelivered {
    fn give_back(&self, receipt: &Receipt) {
        let mut state = self.broker.state();
        let store = &mut state.store;
        let (topic, group) = (self.topic.as_str(), self.group.as_str());
        if receipt.ordered() {
            store.return_ordered(topic, group, receipt, RETURN_DELAY);
        } else {
            store.shorten(topic, group, receipt.position, RETURN_DELAY, true);
        }
    }
}

/// The items of one receive that were not sent yet.
#[derive(Debug)]
pub(crate) struct Delivery {
    status: Option<pb::Status>,
    messages: VecDeque<Delivered>,
    time: Option<i64>,
    undelivered: Option<Undelivered>,
}

impl Delivery {
    pub(crate) fn of(
        status: pb::Status,
        messages: Vec<Delivered>,
        time: i64,
        undelivered: Undelivered,
    ) -> Self {
        Self {
            status: Some(status),
            messages: messages.into(),
            time: Some(time),
            undelivered: Some(undelivered),
        }
    }

    pub(crate) fn refused(status: pb::Status, time: i64) -> Self {
        Self {
            status: Some(status),
            messages: VecDeque::new(),
            time: Some(time),
            undelivered: None,
        }
    }

    /// Nothing at all.
    pub(crate) fn empty() -> Self {
        Self {
            status: None,
            messages: VecDeque::new(),
            time: None,
            undelivered: None,
        }
    }

    fn next(&mut self) -> Option<Content> {
        if let Some(status) = self.status.take() {
            return Some(Content::Status(status));
        }
        if let Some(delivered) = self.messages.pop_front() {
            return Some(Content::Message(delivered.message));
        }
        let time = self.time.take()?;
        Some(Content::DeliveryTimestamp(timestamp(time)))
    }

    /// Messages that are not sent stay invisible as if they were.
    pub(crate) fn lose_rest(&mut self) {
        self.undelivered = None;
    }

    pub(crate) fn stream(mut self, ticket: Ticket) -> Pin<Box<dyn Stream<Item = Item> + Send>> {
        ticket.answered(self.status.as_ref());
        if ticket.items().is_some() {
            self.lose_rest();
        }
        let ticket = Arc::new(ticket);
        let items = Items {
            delivery: self,
            ticket: Arc::clone(&ticket),
        };
        play(ticket, items)
    }
}

/// The items, as far as a fault lets them through.
pub(crate) fn play<T: Send + 'static>(
    ticket: Arc<Ticket>,
    items: impl Stream<Item = Result<T, Status>> + Send + 'static,
) -> Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>> {
    let Some(through) = ticket.items() else {
        return Box::pin(items);
    };
    let end = futures::stream::once(async move { ticket.ending().await.map(Err) });
    Box::pin(
        items
            .take(through)
            .chain(end.filter_map(std::future::ready)),
    )
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(undelivered) = &self.undelivered {
            for delivered in &self.messages {
                undelivered.give_back(&delivered.receipt);
            }
        }
    }
}

struct Items {
    delivery: Delivery,
    ticket: Arc<Ticket>,
}

impl Stream for Items {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Item>> {
        let Some(content) = self.delivery.next() else {
            return Poll::Ready(None);
        };
        let mut item = pb::ReceiveMessageResponse {
            content: Some(content),
        };
        self.ticket.mutate(Reply::ReceiveMessage(&mut item));
        Poll::Ready(Some(Ok(item)))
    }
}
