//! A pool of threads for handlers that block, which survives their panics.
//!
//! A thread of a `SyncArbiter` that panics is gone for good, and a message in the queue of one
//! without threads is lost. So each thread here is a `SyncArbiter` of its own, with one delivery
//! at a time, and the next of it is made in place of one that died.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use actix::{Actor, Addr, Arbiter, ArbiterHandle, Handler, SyncArbiter, SyncContext};
use tokio::{
    sync::{OnceCell, Semaphore, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Deliver, Outcome, handling};
use crate::{
    model::delays::{Delays, DelaysState},
    topology::{EventKind, spawn_thread},
};

/// Waits before a thread that died is replaced; they start anew after a success.
const DELAYS: Delays = Delays::doubling(Duration::from_millis(100), Duration::from_secs(10));

/// Threads with an actor of type `A` each.
pub(super) struct SyncPool<A: Actor<Context = SyncContext<A>>> {
    make: Arc<dyn Fn() -> A + Send + Sync>,
    /// One permit a thread.
    free: Semaphore,
    state: Mutex<State<A>>,
    host: OnceCell<Host>,
}

struct State<A: Actor> {
    /// Threads without a delivery.
    idle: Vec<Addr<A>>,
    delays: DelaysState,
    rng: fastrand::Rng,
    /// No thread is made before this.
    not_before: Option<Instant>,
}

/// Where the queues of the threads live.
struct Host {
    arbiter: ArbiterHandle,
    _stop: DropGuard,
}

impl<A: Actor<Context = SyncContext<A>>> SyncPool<A> {
    pub(super) fn new(threads: usize, make: impl Fn() -> A + Send + Sync + 'static) -> Self {
        Self {
            make: Arc::new(make),
            free: Semaphore::new(threads.clamp(1, Semaphore::MAX_PERMITS)),
            state: Mutex::new(State {
                idle: Vec::new(),
                delays: DELAYS.start(),
                rng: fastrand::Rng::new(),
                not_before: None,
            }),
            host: OnceCell::new(),
        }
    }

    /// Has a thread handle a delivery; waits for one that is free, and for its replacement where
    /// it died. A panic is a failed delivery.
    pub(super) async fn handle<T: Send + 'static>(&self, deliver: Deliver<T>) -> Outcome
    where
        A: Handler<Deliver<T>>,
    {
        // Never closed.
        let _turn = self.free.acquire().await;
        let thread = Thread {
            addr: Some(self.thread().await),
            pool: self,
        };
        thread.handle(deliver).await
    }

    async fn thread(&self) -> Addr<A> {
        loop {
            let idle = self.state().idle.pop();
            if let Some(addr) = idle {
                return addr;
            }
            let not_before = self.state().not_before;
            if let Some(at) = not_before {
                sleep_until(at).await;
            }
            match self.make_thread().await {
                Some(addr) => return addr,
                None => self.failed(),
            }
        }
    }

    /// `None`: there is no thread to be had.
    async fn make_thread(&self) -> Option<Addr<A>> {
        let host = self.host.get_or_try_init(Host::start).await.ok()?;
        let (made, addr) = oneshot::channel();
        let make = self.make.clone();
        host.arbiter.spawn_fn(move || {
            // Nobody waits for it any more: it ends with its address.
            let _ = made.send(SyncArbiter::start(1, move || make()));
        });
        addr.await.ok()
    }

    fn failed(&self) {
        let mut state = self.state();
        let State { delays, rng, .. } = &mut *state;
        let wait = delays.next(rng);
        state.not_before = Some(Instant::now() + wait);
    }

    fn state(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread in use. It goes back to the pool, unless it died.
struct Thread<'a, A: Actor<Context = SyncContext<A>>> {
    addr: Option<Addr<A>>,
    pool: &'a SyncPool<A>,
}

impl<A: Actor<Context = SyncContext<A>>> Thread<'_, A> {
    async fn handle<T: Send + 'static>(mut self, deliver: Deliver<T>) -> Outcome
    where
        A: Handler<Deliver<T>>,
    {
        let Some(addr) = &self.addr else {
            return Outcome::Retry;
        };
        if let Ok(outcome) = addr.send(deliver).await {
            let mut state = self.pool.state();
            state.delays.reset();
            state.not_before = None;
            drop(state);
            return outcome;
        }
        tracing::warn!("a thread of the handler's pool panicked, another takes its place");
        handling::report(EventKind::HandlerThreadLost);
        self.addr = None;
        self.pool.failed();
        Outcome::Retry
    }
}

impl<A: Actor<Context = SyncContext<A>>> Drop for Thread<'_, A> {
    fn drop(&mut self) {
        if let Some(addr) = self.addr.take() {
            self.pool.state().idle.push(addr);
        }
    }
}

impl Host {
    async fn start() -> Result<Self, std::io::Error> {
        let stop = CancellationToken::new();
        let (ready, started) = oneshot::channel();
        let ended = stop.clone();
        spawn_thread("sync-pool", move || async move {
            if ready.send(Arbiter::current()).is_ok() {
                ended.cancelled().await;
            }
        })?;
        let arbiter = started.await.map_err(std::io::Error::other)?;
        Ok(Self {
            arbiter,
            _stop: stop.drop_guard(),
        })
    }
}
