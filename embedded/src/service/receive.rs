//! ReceiveMessage: long polling.

use std::sync::Arc;
use std::time::Duration;

use rocketmq_proto::v2 as pb;
use tokio::sync::Notify;
use tokio::time::Instant;
use tonic::{Request, Response};

use super::limits::{invisible_time, polling_time};
use super::ticket::{Caller, Ticket};
use super::{Items, Port, Reply, name};
use crate::cluster::RETURN_DELAY;
use crate::config::{TopicConfig, TopicType};
use crate::delivery::{Delivery, Undelivered};
use crate::history;
use crate::names;
use crate::node::Node;
use crate::rpc::{Checked, ok, refuse, status};
use crate::settings::MAX_BATCH;
use crate::store::filter::Filter;
use crate::store::pop::{Pop, Popped};

/// The poll is answered this much before its time is over.
const POLL_MARGIN: Duration = Duration::from_millis(50);

/// A receive that passed the checks.
struct Poll {
    broker: Arc<Node>,
    topic: String,
    config: TopicConfig,
    group: String,
    filter: Filter,
    batch: usize,
    invisible: Duration,
    auto_renew: bool,
    attempt_id: Option<String>,
    fifo: bool,
    max_attempts: u32,
    until: Instant,
}

impl Port {
    pub(super) async fn receive(
        &self,
        request: Request<pb::ReceiveMessageRequest>,
    ) -> Reply<Items<pb::ReceiveMessageResponse>> {
        let ticket = self.arrive(&request);
        ticket.delay().await;
        let mut delivery = if ticket.works() {
            let admitted = self.admit(&ticket);
            let checked =
                admitted.and_then(|()| self.check_receive(&ticket.caller, request.into_inner()));
            match checked {
                Ok(poll) => self.wait(&poll, &ticket).await,
                Err(refusal) => Delivery::refused(refusal, self.cluster.clock.millis()),
            }
        } else {
            Delivery::empty()
        };
        ticket.delay_reply().await;
        if ticket.items().is_none() && ticket.planned().is_some() {
            delivery.lose_rest();
            delivery = match ticket.instead_of_stream().await? {
                Some(refusal) => Delivery::refused(refusal, self.cluster.clock.millis()),
                None => Delivery::empty(),
            };
        }
        Ok(Response::new(delivery.stream(ticket)))
    }

    fn check_receive(&self, caller: &Caller, request: pb::ReceiveMessageRequest) -> Checked<Poll> {
        let Some(client) = self.node.client(caller.id()) else {
            return refuse(
                pb::Code::InternalServerError,
                "java.lang.NullPointerException: Cannot invoke \
                 \"apache.rocketmq.v2.Settings.getSubscription()\" because \"settings\" is null",
            );
        };
        let wait = polling_time(&client, caller, &request)?;
        let queue = request.message_queue.unwrap_or_default();
        let topic = names::topic(name(queue.topic.as_ref()))?;
        let group = names::group(name(request.group.as_ref()))?;
        let invisible = invisible_time(request.auto_renew, request.invisible_duration.as_ref())?;
        let filter = Filter::parse(request.filter_expression.as_ref())?;
        let Some(config) = self.cluster.topic(topic) else {
            return Err(no_route(topic));
        };
        if !config.readable() {
            return refuse(pb::Code::Forbidden, "no readable queue");
        }
        let broker = queue.broker.map(|broker| broker.name).unwrap_or_default();
        let broker = self.cluster.node_of_broker(&broker).unwrap_or(&self.node);
        let group_config = self.cluster.group_or_new(group);
        let fifo = client.subscription().and_then(|own| own.fifo);
        Ok(Poll {
            broker: Arc::clone(broker),
            topic: topic.to_owned(),
            config,
            group: group.to_owned(),
            filter,
            batch: usize::try_from(request.batch_size.clamp(0, MAX_BATCH)).unwrap_or_default(),
            invisible,
            auto_renew: request.auto_renew,
            attempt_id: request.attempt_id,
            fifo: fifo.unwrap_or(group_config.fifo),
            max_attempts: client.max_attempts().unwrap_or(u32::MAX),
            until: caller.at + wait.saturating_sub(POLL_MARGIN),
        })
    }

    /// Waits for messages. Dropped while it waits, it has taken none.
    async fn wait(&self, poll: &Poll, ticket: &Ticket) -> Delivery {
        let arrivals = self.arrivals(poll);
        let mut parked = None;
        loop {
            let mut arrival = std::pin::pin!(arrivals.notified());
            // From here on an arrival is not missed, whoever else takes what is there now.
            arrival.as_mut().enable();
            match self.look(poll, ticket) {
                Ok(Some(delivery)) => return delivery,
                Ok(None) => {}
                Err(refusal) => return Delivery::refused(refusal, self.cluster.clock.millis()),
            }
            if parked.is_none() {
                parked = Some(self.node.open(|node| &node.parked));
                self.cluster.recorder.touch();
            }
            tokio::select! {
                () = arrival => {}
                () = tokio::time::sleep_until(poll.until) => {}
            }
        }
    }

    /// What there is to answer now; nothing while it is worth waiting.
    fn look(&self, poll: &Poll, ticket: &Ticket) -> Checked<Option<Delivery>> {
        let nothing = |text: &str| refuse(pb::Code::MessageNotFound, text);
        if self.cluster.topic(&poll.topic).is_none() {
            return Err(no_route(&poll.topic));
        }
        let popped = self.pop(poll, ticket);
        if poll.auto_renew && self.node.client(ticket.caller.id()).is_none() {
            // It left while it waited: nobody would renew for it.
            let holder = self.node.holder(ticket.caller.id());
            self.cluster.release(&holder, RETURN_DELAY);
            return nothing(&format!(
                "The client [{}] is disconnected.",
                ticket.caller.id()
            ));
        }
        if !popped.messages.is_empty() {
            return Ok(Some(self.deliver(poll, popped, ticket)));
        }
        if popped.only_dropped() {
            return nothing("no match message");
        }
        if Instant::now() >= poll.until {
            return nothing("no new message");
        }
        Ok(None)
    }

    fn arrivals(&self, poll: &Poll) -> Arc<Notify> {
        let mut state = poll.broker.state();
        let topic = state.store.topic(&poll.topic, poll.config.queues);
        Arc::clone(&topic.group(&poll.group).notify)
    }

    fn pop(&self, poll: &Poll, ticket: &Ticket) -> Popped {
        let pop = Pop {
            topic: &poll.topic,
            queues: poll.config.queues,
            group: &poll.group,
            filter: &poll.filter,
            batch: poll.batch,
            invisible: poll.invisible,
            renew: poll
                .auto_renew
                .then(|| self.node.holder(ticket.caller.id())),
            attempt_id: poll.attempt_id.as_deref(),
            max_attempts: poll.max_attempts,
            highest_queue_first: poll.config.kind == TopicType::Priority,
            now: self.cluster.clock.millis(),
        };
        let popped = {
            let mut state = poll.broker.state();
            if poll.fifo {
                state.store.pop_ordered(&pop)
            } else {
                state.store.pop(&pop)
            }
        };
        self.cluster
            .bury(&poll.broker, &poll.group, &popped.exhausted);
        popped
    }

    fn deliver(&self, poll: &Poll, popped: Popped, ticket: &Ticket) -> Delivery {
        if self.cluster.history.enabled() {
            let at = Instant::now();
            let all = popped.messages.iter().map(|delivered| history::Delivery {
                message_id: delivered.id().to_owned(),
                topic: poll.topic.clone(),
                group: poll.group.clone(),
                client_id: ticket.caller.id().to_owned(),
                node: poll.broker.index,
                attempt: delivered.attempt,
                at,
                receipt_handle: delivered.receipt.to_string(),
            });
            self.cluster.history.delivered(all);
            self.cluster.recorder.touch();
        }
        let undelivered = Undelivered {
            broker: Arc::clone(&poll.broker),
            topic: poll.topic.clone(),
            group: poll.group.clone(),
        };
        Delivery::of(
            ok(),
            popped.messages,
            self.cluster.clock.millis(),
            undelivered,
        )
    }
}

fn no_route(topic: &str) -> pb::Status {
    status(
        pb::Code::TopicNotFound,
        format!("No topic route info in name server for the topic: {topic}"),
    )
}
