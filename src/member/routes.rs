//! The routes a start needs.

use std::{sync::Arc, time::Duration};

use actix::Addr;
use futures::future::try_join_all;

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
    let limit = member.config.start_timeout;
    let all = try_join_all(topics.iter().map(|topic| fetch(member, routes, topic)));
    match tokio::time::timeout(limit, all).await {
        Ok(fetched) => fetched,
        Err(_) => Err(
            Error::new(ErrorKind::Timeout, format!("not started within {limit:?}"))
                .endpoint(&member.config.endpoints),
        ),
    }
}

async fn fetch(
    member: &Arc<Member>,
    routes: &Addr<RouteActor>,
    topic: &Arc<str>,
) -> Result<Arc<Route>> {
    let mut delays = Delays::doubling(Duration::from_millis(100), Duration::from_secs(1)).start();
    let mut rng = member.config.environment.rng();
    let mut tries = 0;
    loop {
        tries += 1;
        let error = match get_route(routes, topic).await {
            Ok(route) => return Ok(route),
            Err(error) => error,
        };
        if tries == TRIES || !error.is_retryable() {
            return Err(error);
        }
        tracing::info!(member = %member.path, %topic, %error, "start is tried again");
        tokio::time::sleep(delays.next(&mut rng)).await;
    }
}

/// The committed route of a topic, from the route actor.
pub(crate) async fn get_route(routes: &Addr<RouteActor>, topic: &Arc<str>) -> Result<Arc<Route>> {
    let lost = |_| Error::new(ErrorKind::Server, "the route actor restarted meanwhile");
    routes
        .send(GetRoute {
            topic: topic.clone(),
        })
        .await
        .map_err(lost)
        .flatten()
}
