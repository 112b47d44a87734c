//! The deliveries of one queue that are handled in any order, many at the same time.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::sync::{Notify, OwnedSemaphorePermit};

use super::{Acks, consumption::Consumption, dispatch::handle, receive::Leased};

/// Runs all handlers in one task: one for each would cost more than most handlers do. Clones
/// share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unordered(Rc<Starting>);

#[derive(Debug, Default)]
struct Starting {
    deliveries: RefCell<Vec<(Leased, OwnedSemaphorePermit)>>,
    some: Notify,
}

impl Unordered {
    /// Has a delivery handled, beside all others.
    pub(crate) fn start(&self, leased: Leased, permit: OwnedSemaphorePermit) {
        self.0.deliveries.borrow_mut().push((leased, permit));
        self.0.some.notify_one();
    }

    /// Handles what is started, for ever.
    pub(crate) async fn run(self, consumption: Arc<Consumption>, acks: Acks) {
        let mut running = FuturesUnordered::new();
        loop {
            for (leased, permit) in self.0.deliveries.take() {
                running.push(handle(&consumption, &acks, leased, permit));
            }
            tokio::select! {
                biased;
                () = self.0.some.notified() => {}
                Some(()) = running.next() => {}
            }
        }
    }
}
