//! What the actors of one push consumer share, and what outlives their restarts.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use actix::Addr;
use tokio::sync::{Semaphore, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    DeliveryHandler, ShutdownReport, budget::Budget, freshness::Freshness, lease::Leases,
    pauses::Pauses, queues::Queues, running::RunningHandlers, settings::ConsumerRole, stats::Stats,
};
use crate::{
    Result,
    actors::RouteActor,
    member::{Ending, Member},
    model::Endpoints,
    topology::ChildControl,
};

/// Numbers of a push consumer.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Handlers at once, over all queues.
    pub(crate) concurrency: usize,
    pub(crate) max_cached_messages: usize,
    pub(crate) max_cached_bytes: usize,
    /// Receives at once on one queue, where it is not consumed in order.
    pub(crate) receives_per_queue: usize,
    /// How long polls in flight are waited for at shutdown.
    pub(crate) poll_grace: Duration,
    /// How long without a receive that succeeds it still counts as ready.
    pub(crate) unready_after: Duration,
    /// How long a handler may run until it is reported.
    pub(crate) slow_handler_after: Duration,
}

/// One push consumer: what its actors share.
#[derive(Debug)]
pub(crate) struct Consumption {
    pub(crate) member: Arc<Member>,
    pub(crate) role: Arc<ConsumerRole>,
    pub(crate) options: Options,
    pub(crate) handler: DeliveryHandler,
    pub(crate) routes: Addr<RouteActor>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) leases: Arc<Leases>,
    /// Permits to run a handler.
    pub(crate) handlers: Arc<Semaphore>,
    pub(crate) running: RunningHandlers,
    pub(crate) stats: Stats,
    pub(crate) freshness: Freshness,
    pub(crate) pauses: Pauses,
    /// Cancelled when no more messages are wanted.
    pub(crate) draining: CancellationToken,
    /// Has a token of each receive loop.
    pub(crate) polls: TaskTracker,
    pub(super) ending: Ending<ShutdownReport>,
    /// During a shutdown, the report when all is over but for handlers that wait for it.
    pub(super) nearly_ended: watch::Sender<Option<ShutdownReport>>,
    /// Whether scans have begun, so that a restart goes on with them.
    pub(crate) begun: AtomicBool,
    queues: Mutex<Queues>,
}

impl Consumption {
    pub(crate) fn new(
        member: Arc<Member>,
        role: Arc<ConsumerRole>,
        options: Options,
        handler: DeliveryHandler,
        routes: Addr<RouteActor>,
    ) -> Arc<Self> {
        Arc::new(Self {
            member,
            role,
            budget: Budget::new(options.max_cached_messages, options.max_cached_bytes),
            leases: Arc::default(),
            handlers: Arc::new(Semaphore::new(options.concurrency)),
            running: RunningHandlers::default(),
            stats: Stats::default(),
            freshness: Freshness::new(options.unready_after),
            pauses: Pauses::default(),
            draining: CancellationToken::new(),
            polls: TaskTracker::new(),
            ending: Ending::default(),
            nearly_ended: watch::Sender::new(None),
            begun: AtomicBool::new(false),
            queues: Mutex::default(),
            options,
            handler,
            routes,
        })
    }

    /// Has endpoints pass the gate, if they have not yet.
    ///
    /// # Errors
    /// Their settings were not answered in time.
    pub(crate) async fn prepare(&self, endpoints: &Endpoints) -> Result<()> {
        self.member.prepare(&self.routes, endpoints).await
    }

    pub(crate) fn log_statistics(&self) {
        let (messages, bytes) = self.budget.used();
        tracing::debug!(
            group = %self.role.group,
            received = self.stats.received.get(),
            acked = self.stats.acked.get(),
            failed = self.stats.failed.get(),
            messages,
            bytes,
            queues = self.queues().len(),
            "consumer statistics"
        );
    }

    /// The process queues that run.
    pub(crate) fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The controls of all process queues, those that are ending included.
    pub(crate) fn queue_controls(&self) -> Vec<ChildControl> {
        let queues = self.queues();
        queues
            .all()
            .map(|(_, queue)| queue.control.clone())
            .collect()
    }
}
