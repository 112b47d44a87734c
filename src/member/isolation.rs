//! Endpoints that failed a send and are avoided until they prove to be well.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::model::Endpoints;

/// Without any sign of life an endpoint is tried again after this time.
const LONGEST: Duration = Duration::from_secs(60);

/// The isolated endpoints of one producer: healthy ones are preferred to them.
#[derive(Debug, Default)]
pub(crate) struct Isolation(Mutex<BTreeMap<Endpoints, Instant>>);

impl Isolation {
    /// A send to it failed.
    pub(crate) fn isolate(&self, endpoints: &Endpoints) {
        let until = Instant::now() + LONGEST;
        if self.lock().insert(endpoints.clone(), until).is_none() {
            tracing::info!(endpoint = %endpoints, "endpoint isolated");
        }
    }

    /// It answered a heartbeat or a send.
    pub(crate) fn rejoin(&self, endpoints: &Endpoints) {
        let mut isolated = self.lock();
        if !isolated.is_empty() && isolated.remove(endpoints).is_some() {
            tracing::info!(endpoint = %endpoints, "endpoint rejoined");
        }
    }

    pub(crate) fn is_isolated(&self, endpoints: &Endpoints) -> bool {
        self.lock()
            .get(endpoints)
            .is_some_and(|until| *until > Instant::now())
    }

    /// Forgets endpoints for which `keep` says no: those that left the routes.
    pub(crate) fn retain(&self, keep: impl Fn(&Endpoints) -> bool) {
        self.lock().retain(|endpoints, _| keep(endpoints));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Endpoints, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_stays_isolated_until_it_answers_or_a_minute_passed() {
        let isolation = Isolation::default();
        let (a, b) = (
            Endpoints::parse("a:1").unwrap(),
            Endpoints::parse("b:1").unwrap(),
        );
        isolation.isolate(&a);
        isolation.isolate(&b);
        isolation.rejoin(&a);
        assert!(!isolation.is_isolated(&a) && isolation.is_isolated(&b));
        tokio::time::advance(LONGEST).await;
        assert!(!isolation.is_isolated(&b));
        isolation.isolate(&a);
        isolation.retain(|endpoints| endpoints != &a);
        assert!(
            !isolation.is_isolated(&a),
            "an endpoint that left the routes is forgotten"
        );
    }
}
