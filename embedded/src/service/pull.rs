//! The four methods of pulling, which only the protocol knows: a real proxy serves none.

use std::sync::Arc;
use std::time::Duration;

use rocketmq_proto::v2 as pb;
use rocketmq_proto::v2::pull_message_response::Content;
use tokio::time::Instant;
use tonic::{Request, Response};

use super::{Items, Port, Reply, name};
use crate::clock::{proto_millis, timestamp, timestamp_millis};
use crate::delivery::play;
use crate::names;
use crate::node::Node;
use crate::rpc::{self, Checked, ok, refuse, status};
use crate::settings::MAX_BATCH;
use crate::store::filter::Filter;
use crate::store::log::{Entry, Log};

/// A queue that exists.
pub(super) struct Place {
    broker: Arc<Node>,
    topic: String,
    queue: usize,
    queues: usize,
}

impl Place {
    fn look<T>(&self, see: impl FnOnce(&Log) -> T) -> Option<T> {
        let mut state = self.broker.state();
        let topic = state.store.topic(&self.topic, self.queues);
        topic.queues.get(self.queue).map(see)
    }
}

impl Port {
    fn place(&self, queue: Option<&pb::MessageQueue>) -> Checked<Place> {
        let topic = names::topic(name(queue.and_then(|queue| queue.topic.as_ref())))?;
        let Some(config) = self.cluster.topic(topic) else {
            return refuse(
                pb::Code::TopicNotFound,
                format!("No topic route info in name server for the topic: {topic}"),
            );
        };
        let id = queue.map_or(-1, |queue| queue.id);
        let found = usize::try_from(id).ok().filter(|id| *id < config.queues);
        let Some(found) = found.filter(|_| config.readable()) else {
            return refuse(pb::Code::Forbidden, "no readable queue");
        };
        let broker = queue.and_then(|queue| queue.broker.as_ref());
        let broker = broker.and_then(|broker| self.cluster.node_of_broker(&broker.name));
        Ok(Place {
            broker: Arc::clone(broker.unwrap_or(&self.node)),
            topic: topic.to_owned(),
            queue: found,
            queues: config.queues,
        })
    }

    pub(super) async fn pull(
        &self,
        request: Request<pb::PullMessageRequest>,
    ) -> Reply<Items<pb::PullMessageResponse>> {
        let ticket = self.arrive(&request);
        ticket.delay().await;
        let mut contents = Vec::new();
        if ticket.works() {
            contents = match self.admit(&ticket) {
                Ok(()) => self.read(request.into_inner()).await,
                Err(refusal) => Err(refusal),
            }
            .unwrap_or_else(|refusal| vec![Content::Status(refusal)]);
        }
        ticket.delay_reply().await;
        if ticket.items().is_none() && ticket.planned().is_some() {
            let refusal = ticket.instead_of_stream().await?;
            contents = refusal.into_iter().map(Content::Status).collect();
        }
        let status = match contents.first() {
            Some(Content::Status(status)) => Some(status.clone()),
            _ => None,
        };
        ticket.answered(status.as_ref());
        let ticket = Arc::new(ticket);
        let mutating = Arc::clone(&ticket);
        let items = contents.into_iter().map(move |content| {
            let mut item = pb::PullMessageResponse {
                content: Some(content),
            };
            mutating.mutate(rpc::Reply::PullMessage(&mut item));
            Ok(item)
        });
        Ok(Response::new(play(ticket, futures::stream::iter(items))))
    }

    async fn read(&self, request: pb::PullMessageRequest) -> Checked<Vec<Content>> {
        names::group(name(request.group.as_ref()))?;
        let place = self.place(request.message_queue.as_ref())?;
        let filter = Filter::parse(request.filter_expression.as_ref())?;
        let batch = usize::try_from(request.batch_size.clamp(1, MAX_BATCH)).unwrap_or(1);
        let wait = request
            .long_polling_timeout
            .as_ref()
            .map_or(0, proto_millis);
        let until = Instant::now() + Duration::from_millis(wait.try_into().unwrap_or_default());
        let arrivals = {
            let mut state = place.broker.state();
            Arc::clone(&state.store.topic(&place.topic, place.queues).arrivals)
        };
        let mut next = request.offset;
        loop {
            let mut arrival = std::pin::pin!(arrivals.notified());
            arrival.as_mut().enable();
            let read = place.look(|log| slice(log, &filter, next, batch, place.queue));
            let (messages, after) = read.unwrap_or_else(|| Ok((Vec::new(), next)))?;
            next = after;
            if !messages.is_empty() || Instant::now() >= until {
                let code = if messages.is_empty() {
                    status(pb::Code::MessageNotFound, "no new message")
                } else {
                    ok()
                };
                let mut contents = vec![Content::Status(code)];
                contents.extend(messages.into_iter().map(Content::Message));
                contents.push(Content::NextOffset(next));
                return Ok(contents);
            }
            tokio::select! {
                () = arrival => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    pub(super) fn update_offset_of(
        &self,
        request: &pb::UpdateOffsetRequest,
    ) -> Checked<pb::UpdateOffsetResponse> {
        let group = names::group(name(request.group.as_ref()))?;
        let place = self.place(request.message_queue.as_ref())?;
        place
            .look(|log| within(log, request.offset))
            .unwrap_or(Ok(()))?;
        let mut state = place.broker.state();
        let topic = state.store.topic(&place.topic, place.queues);
        let offsets = &mut topic.group(group).pull_offsets;
        offsets.insert(place.queue, request.offset);
        Ok(pb::UpdateOffsetResponse { status: Some(ok()) })
    }

    pub(super) fn offset_of(
        &self,
        request: &pb::GetOffsetRequest,
    ) -> Checked<pb::GetOffsetResponse> {
        let group = names::group(name(request.group.as_ref()))?;
        let place = self.place(request.message_queue.as_ref())?;
        let mut state = place.broker.state();
        let topic = state.store.topic(&place.topic, place.queues);
        match topic.group(group).pull_offsets.get(&place.queue) {
            Some(offset) => Ok(pb::GetOffsetResponse {
                status: Some(ok()),
                offset: *offset,
            }),
            None => refuse(pb::Code::OffsetNotFound, "offset not found"),
        }
    }

    pub(super) fn query_offset_of(
        &self,
        request: &pb::QueryOffsetRequest,
    ) -> Checked<pb::QueryOffsetResponse> {
        let place = self.place(request.message_queue.as_ref())?;
        let at = request.timestamp.as_ref().map_or(0, timestamp_millis);
        let policy = request.query_offset_policy();
        let offset = place.look(|log| match policy {
            pb::QueryOffsetPolicy::Beginning => log.first(),
            pb::QueryOffsetPolicy::End => log.end(),
            pb::QueryOffsetPolicy::Timestamp => log
                .iter()
                .find(|(_, entry)| entry.stored.stored_at >= at)
                .map_or(log.end(), |(offset, _)| offset),
        });
        Ok(pb::QueryOffsetResponse {
            status: Some(ok()),
            offset: offset.unwrap_or_default(),
        })
    }
}

fn within(log: &Log, offset: i64) -> Checked<()> {
    if (log.first()..=log.end()).contains(&offset) {
        return Ok(());
    }
    refuse(
        pb::Code::IllegalOffset,
        format!("offset {offset} is not in [{}, {}]", log.first(), log.end()),
    )
}

/// A batch of matching messages from `offset` on, and where to go on.
fn slice(
    log: &Log,
    filter: &Filter,
    offset: i64,
    batch: usize,
    queue: usize,
) -> Checked<(Vec<pb::Message>, i64)> {
    within(log, offset)?;
    let mut messages = Vec::new();
    let mut next = offset;
    while let Some(entry) = log.get(next).filter(|_| messages.len() < batch) {
        if filter.matches(&entry.stored) {
            messages.push(message(entry, queue, next));
        }
        next += 1;
    }
    Ok((messages, next))
}

fn message(entry: &Entry, queue: usize, offset: i64) -> pb::Message {
    let mut message = entry.stored.message.clone();
    if let Some(properties) = &mut message.system_properties {
        properties.queue_id = i32::try_from(queue).unwrap_or(i32::MAX);
        properties.queue_offset = Some(offset);
        properties.store_timestamp = Some(timestamp(entry.stored.stored_at));
    }
    message
}
