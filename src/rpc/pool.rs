//! The channels of one client, one slot an endpoint, shared by its producers and consumers.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
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
    dial: Arc<Dial>,
    born: Instant,
    used_after: AtomicU64,
}

impl Slot {
    fn new(transport: &Transport, endpoints: &Endpoints, addresses: Vec<Address>) -> Result<Self> {
        let note = Arc::new(PeerNote::default());
        let closed = CancellationToken::new();
        let dial = Arc::new(Dial::new(addresses, closed.clone()));
        Ok(Self {
            control: transport.channel(endpoints, Purpose::Control, &dial, &note)?,
            poll: transport.channel(endpoints, Purpose::Poll, &dial, &note)?,
            note,
            closed,
            dial,
            born: Instant::now(),
            used_after: AtomicU64::new(0),
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
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let addresses = match slots.get(endpoints) {
            Some(slot) if !slot.closed.is_cancelled() => return Ok(slot.clone()),
            Some(closed) => closed.dial.for_successor(),
            None => self.transport.addresses(endpoints),
        };
        let slot = Arc::new(Slot::new(&self.transport, endpoints, addresses)?);
        slots.insert(endpoints.clone(), slot.clone());
        Ok(slot)
    }

    /// Forgets channels unused for longer than `idle_after`; calls in flight on them may finish.
    pub(crate) fn clear_idle(&self, idle_after: Duration) -> Vec<Endpoints> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots
            .extract_if(|_, slot| slot.idle_for() > idle_after)
            .map(|(endpoints, slot)| {
                slot.closed.cancel();
                endpoints
            })
            .collect()
    }

    /// Forgets the channels of `endpoints`, so that the next call makes new connections.
    pub(crate) fn discard(&self, endpoints: &Endpoints) {
        let removed = self
            .slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(endpoints);
        if let Some(slot) = removed {
            slot.closed.cancel();
        }
    }

    /// How many endpoints have channels.
    pub(crate) fn len(&self) -> usize {
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }
}
