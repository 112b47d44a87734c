//! Which of an endpoint's addresses the channels of one slot talk to.

use std::{io, sync::OnceLock, time::Duration};

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    environment::{Connector, Io},
    model::Address,
};

/// Which channel of a slot is connected.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// Chooses the address.
    Control,
    /// Follows control: settings are kept per proxy, so polls must not reach another.
    Poll,
}

/// The addresses of one slot, and the one that all its connections go to.
///
/// A slot keeps to one address. When control can only reach another, the slot closes, so that the
/// settings are sent to the other before anything else is.
#[derive(Debug)]
pub(super) struct Dial {
    addresses: Vec<Address>,
    chosen: OnceLock<usize>,
    /// Where the successor of this slot tries first.
    moved: OnceLock<usize>,
    closed: CancellationToken,
}

impl Dial {
    pub(super) fn new(addresses: Vec<Address>, closed: CancellationToken) -> Self {
        Self {
            addresses,
            chosen: OnceLock::new(),
            moved: OnceLock::new(),
            closed,
        }
    }

    /// The addresses for the slot after this one: those that worked last first.
    pub(super) fn for_successor(&self) -> Vec<Address> {
        let mut addresses = self.addresses.clone();
        let first = self.moved.get().or(self.chosen.get()).copied();
        addresses.rotate_left(first.unwrap_or(0));
        addresses
    }

    /// The address in use is not to be trusted: the successor of this slot tries it last.
    pub(super) fn move_on(&self) {
        if let Some(used) = self.chosen.get() {
            let _ = self.moved.set((used + 1) % self.addresses.len().max(1));
        }
    }

    /// A connection for this purpose, within `limit`.
    pub(super) async fn connect(
        &self,
        purpose: Purpose,
        connector: &Connector,
        limit: Duration,
    ) -> io::Result<Box<dyn Io>> {
        if self.closed.is_cancelled() {
            return Err(io::Error::other("the channel was closed"));
        }
        match purpose {
            Purpose::Control => self.control(connector, limit).await,
            Purpose::Poll => self.poll(connector).await,
        }
    }

    async fn control(&self, connector: &Connector, limit: Duration) -> io::Result<Box<dyn Io>> {
        let first = self.chosen.get().copied().unwrap_or(0);
        let (index, stream) = self.first_that_connects(first, connector, limit).await?;
        if *self.chosen.get_or_init(|| index) == index {
            return Ok(stream);
        }
        let _ = self.moved.set(index);
        self.closed.cancel();
        Err(io::Error::other("another address of the endpoint answers"))
    }

    async fn poll(&self, connector: &Connector) -> io::Result<Box<dyn Io>> {
        let address = match self.addresses.as_slice() {
            [only] => Some(only),
            several => self.chosen.get().and_then(|index| several.get(*index)),
        };
        let unknown = || io::Error::other("no address of the endpoint has the settings yet");
        let address = address.ok_or_else(unknown)?;
        connector.connect(address.host(), address.port()).await
    }

    /// Tries all addresses from number `first` on; each may take an equal share of what is left,
    /// so that one that swallows everything does not keep the next from being tried.
    async fn first_that_connects(
        &self,
        first: usize,
        connector: &Connector,
        limit: Duration,
    ) -> io::Result<(usize, Box<dyn Io>)> {
        let started = Instant::now();
        let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "no address");
        let (before, from) = self.addresses.split_at(first.min(self.addresses.len()));
        let numbered = (first..).zip(from).chain((0..).zip(before));
        for (left, (index, address)) in (1..=self.addresses.len()).rev().zip(numbered) {
            let left = u32::try_from(left).unwrap_or(u32::MAX);
            let share = limit.saturating_sub(started.elapsed()) / left;
            match timeout(share, connector.connect(address.host(), address.port())).await {
                Ok(Ok(stream)) => return Ok((index, stream)),
                Ok(Err(error)) => last = error,
                Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "no answer"),
            }
        }
        Err(last)
    }
}

#[cfg(test)]
mod tests;
