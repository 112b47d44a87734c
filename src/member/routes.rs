//! The routes a start needs.

use std::{sync::Arc, time::Duration};

use actix::Addr;
use futures::future::try_join_all;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Member;
use crate::{
    Error, ErrorKind, Result,
    actors::RouteActor,
    messages::route::GetRoute,
    model::{delays::Delays, route::Route},
};

/// Tries of one topic at a start, as the official client has it.
const TRIES: usize = 3;

/// Has the routes of all topics committed within the start time-out, retries included.
pub(crate) async fn fetch_routes(
    member: &Arc<Member>,
    routes: &Addr<RouteActor>,
    topics: &[Arc<str>],
) -> Result<Vec<Arc<Route>>> {
    let deadline = Instant::now() + member.config.start_timeout;
    let all = topics
        .iter()
        .map(|topic| fetch(member, routes, topic, deadline));
    try_join_all(all).await
}

async fn fetch(
    member: &Arc<Member>,
    routes: &Addr<RouteActor>,
    topic: &Arc<str>,
    deadline: Instant,
) -> Result<Arc<Route>> {
    let mut delays = Delays::doubling(Duration::from_millis(100), Duration::from_secs(1)).start();
    let mut rng = member.config.environment.rng();
    let mut tries = 0;
    let mut last = None;
    loop {
        tries += 1;
        let error = match timeout_at(deadline, get_route(routes, topic)).await {
            Ok(Ok(route)) => return Ok(route),
            Ok(Err(error)) => error,
            Err(_) => return Err(overdue(member, topic, last)),
        };
        if tries == TRIES || !error.is_retryable() {
            return Err(error);
        }
        tracing::info!(member = %member.path, %topic, %error, "start is tried again");
        last = Some(error);
        let again = Instant::now() + delays.next(&mut rng);
        sleep_until(again.min(deadline)).await;
    }
}

/// The time is over; why the last try failed says more than that.
fn overdue(member: &Member, topic: &str, last: Option<Error>) -> Error {
    let limit = member.config.start_timeout;
    match last {
        Some(error) => error.context(format!("not started within {limit:?}")),
        None => Error::new(
            ErrorKind::Timeout,
            format!("no route of topic {topic} within {limit:?}"),
        )
        .endpoint(&member.config.endpoints),
    }
}

/// The committed route of a topic, from the route actor.
pub(crate) async fn get_route(routes: &Addr<RouteActor>, topic: &Arc<str>) -> Result<Arc<Route>> {
    routes
        .send(GetRoute {
            topic: topic.clone(),
        })
        .await
        .map_err(|_| RouteActor::lost())
        .flatten()
}
