//! The channels of one client, one slot an endpoint, shared by its producers and consumers.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::{
    connect::{PeerNote, Transport},
    dial::{Dial, Purpose},
};
use crate::{
    Result,
    model::{Address, Endpoints},
};

/// The connections of one endpoint are made anew at most once in this time.
const COOL_DOWN: Duration = Duration::from_secs(30);

/// The connections to one endpoint.
///
/// *Control* carries telemetry, heartbeats, sends and acks; *poll* carries receives, whose long
/// polls would else use up the peer's limit of concurrent streams.
pub(crate) struct Slot {
    pub(crate) control: Channel,
    pub(crate) poll: Channel,
    pub(crate) note: Arc<PeerNote>,
    /// Cancelled when the slot leaves the pool, or another address answers for the endpoint:
    /// whoever holds a stream of it lets go, and the settings have to be sent anew.
    pub(crate) closed: CancellationToken,
    /// Cancelled when the peer is taken for gone: nothing is to be waited for any more.
    pub(crate) dead: CancellationToken,
    dial: Arc<Dial>,
    born: Instant,
    used_after: AtomicU64,
    /// When this endpoint was rebuilt last, before this slot.
    rebuilt: OnceLock<Instant>,
}

impl Slot {
    fn new(
        transport: &Transport,
        endpoints: &Endpoints,
        addresses: Vec<Address>,
        rebuilt: OnceLock<Instant>,
    ) -> Result<Self> {
        let note = Arc::new(PeerNote::default());
        let closed = CancellationToken::new();
        let dial = Arc::new(Dial::new(addresses, closed.clone()));
        Ok(Self {
            control: transport.channel(endpoints, Purpose::Control, &dial, &note)?,
            poll: transport.channel(endpoints, Purpose::Poll, &dial, &note)?,
            note,
            closed,
            dead: CancellationToken::new(),
            dial,
            born: Instant::now(),
            used_after: AtomicU64::new(0),
            rebuilt,
        })
    }

    /// Notes a unary call or a receive. Opening a telemetry stream is not a use.
    pub(crate) fn touch(&self) {
        let elapsed = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.used_after.store(elapsed, Ordering::Relaxed);
    }

    fn idle_for(&self) -> Duration {
        self.born.elapsed().saturating_sub(Duration::from_millis(
            self.used_after.load(Ordering::Relaxed),
        ))
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Slot")
            .field("closed", &self.closed.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// The channel table of a client. Its lock is held for table operations only, never for I/O.
#[derive(Debug)]
pub(crate) struct ChannelPool {
    transport: Transport,
    slots: Mutex<HashMap<Endpoints, Arc<Slot>>>,
}

impl ChannelPool {
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            slots: Mutex::default(),
        }
    }

    /// The slot of these endpoints, made at first use and when the last one closed. Makes no connection yet.
    pub(crate) fn slot(&self, endpoints: &Endpoints) -> Result<Arc<Slot>> {
        let mut slots = self.lock();
        let (addresses, rebuilt) = match slots.get(endpoints) {
            Some(slot) if !slot.closed.is_cancelled() => return Ok(slot.clone()),
            Some(closed) => (closed.dial.for_successor(), closed.rebuilt.clone()),
            None => (self.transport.addresses(endpoints), OnceLock::new()),
        };
        let slot = Slot::new(&self.transport, endpoints, addresses, rebuilt)?;
        let slot = Arc::new(slot);
        slots.insert(endpoints.clone(), slot.clone());
        Ok(slot)
    }

    /// Forgets channels unused for longer than `idle_after`; calls in flight on them may finish.
    pub(crate) fn clear_idle(&self, idle_after: Duration) -> Vec<Endpoints> {
        let mut slots = self.lock();
        slots
            .extract_if(|_, slot| slot.idle_for() > idle_after)
            .map(|(endpoints, slot)| {
                slot.closed.cancel();
                endpoints
            })
            .collect()
    }

    /// Closes the channels of `endpoints`, so that the next call makes new connections. Says
    /// whether it did: not where they were made anew a moment ago, maybe for another member.
    /// Receives under way may finish, unless the peer is `gone`.
    pub(crate) fn rebuild(&self, endpoints: &Endpoints, gone: bool) -> bool {
        let mut slots = self.lock();
        let Some(slot) = slots.get(endpoints) else {
            return false;
        };
        let now = Instant::now();
        let cool = |at: &Instant| now.duration_since(*at) < COOL_DOWN;
        if slot.closed.is_cancelled() || slot.rebuilt.get().is_some_and(cool) {
            return false;
        }
        slot.dial.move_on();
        slot.closed.cancel();
        if gone {
            slot.dead.cancel();
        }
        let addresses = slot.dial.for_successor();
        match Slot::new(&self.transport, endpoints, addresses, now.into()) {
            Ok(successor) => drop(slots.insert(endpoints.clone(), Arc::new(successor))),
            // It was made once; if it cannot be made now, the next call says why.
            Err(_) => drop(slots.remove(endpoints)),
        }
        true
    }

    /// How many endpoints have channels.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Endpoints, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
