//! A producer: the routes it sends by, sends for other actors, statistics.

use std::{sync::Arc, time::Duration};

use actix::{Actor, Context, Handler, ResponseFuture, Supervised};

use crate::{
    Result, SendReceipt,
    messages::{producer::SendMessage, route::RouteUpdated},
    produce::Publication,
    topology::{Scope, Tasks},
};

/// Keeps what sends run on up to date. The sends themselves do not pass through here, and go on
/// while it is restarted.
#[derive(Debug)]
pub(crate) struct ProducerActor {
    publication: Arc<Publication>,
    scope: Scope,
    tasks: Tasks,
}

impl ProducerActor {
    pub(crate) fn new(publication: Arc<Publication>, scope: Scope) -> Self {
        let tasks = scope.tasks();
        Self {
            publication,
            scope,
            tasks,
        }
    }
}

impl Actor for ProducerActor {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        // After a restart: a commit may have been published to the generation that crashed.
        self.publication.adopt_all();
        let publication = self.publication.clone();
        let statistics = publication.member.config.intervals.statistics;
        self.tasks
            .every(Duration::from_secs(1), statistics, move || {
                let publication = publication.clone();
                async move { publication.log_statistics() }
            });
    }
}

impl Supervised for ProducerActor {
    fn restarting(&mut self, _: &mut Self::Context) {
        self.tasks = self.scope.tasks();
    }
}

impl Handler<RouteUpdated> for ProducerActor {
    type Result = ();

    fn handle(&mut self, message: RouteUpdated, _: &mut Self::Context) {
        self.publication.adopt(&message.route.topic);
    }
}

impl Handler<SendMessage> for ProducerActor {
    type Result = ResponseFuture<Result<SendReceipt>>;

    fn handle(&mut self, message: SendMessage, _: &mut Self::Context) -> Self::Result {
        // Not a task of this actor: a send under way survives its restart.
        let publication = self.publication.clone();
        Box::pin(async move { publication.send(message.message).await })
    }
}
