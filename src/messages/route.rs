//! Messages to a [`RouteActor`](crate::actors::RouteActor), and what it publishes.

use std::{collections::BTreeSet, sync::Arc};

use actix::Message;
use rocketmq_proto::v2 as pb;

use crate::{
    Result,
    actors::SettingsApplied,
    model::{Endpoints, route::Route},
};

/// From producers and consumers that need a topic: its committed route, fetched first if there is
/// none. Callers of one topic share one fetch.
#[derive(Debug, Message)]
#[rtype(result = "Result<Arc<Route>>")]
pub(crate) struct GetRoute {
    pub(crate) topic: Arc<str>,
}

/// From the route actor's timer: fetch every committed topic anew.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct RefreshRoutes;

/// From the route actor's fetch task: what the access point answered.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct RouteFetched {
    pub(crate) topic: Arc<str>,
    pub(crate) fetch: u64,
    pub(crate) answer: Result<Vec<pb::MessageQueue>>,
}

/// From a session, or from the task that asked it: its settings are applied, or failed.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct SessionAnswered {
    pub(crate) endpoints: Endpoints,
    pub(crate) answer: Result<SettingsApplied>,
}

/// From the consumer actor, for endpoints that only an assignment names: pass the gate.
#[derive(Debug, Message)]
#[rtype(result = "Result<SettingsApplied>")]
pub(crate) struct PrepareEndpoints {
    pub(crate) endpoints: Endpoints,
}

/// From the consumer actor, when its assignments changed: the endpoints they name, which keep
/// their sessions although no route may name them.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct AssignedEndpoints {
    pub(crate) endpoints: BTreeSet<Endpoints>,
}

/// Published by the route actor to producer and consumer actors, after the commit.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub(crate) struct RouteUpdated {
    pub(crate) route: Arc<Route>,
}
