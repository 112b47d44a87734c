//! Timers for what is polled outside of any runtime.

use std::{future::poll_fn, pin::Pin};

use tokio::runtime::Handle;

/// Runs a future that sets timers, on any executor: where no runtime is at hand they are those of
/// `runtime`.
pub(crate) async fn with_timers<F: Future>(runtime: &Handle, mut future: Pin<&mut F>) -> F::Output {
    poll_fn(|cx| {
        let bare = Handle::try_current().is_err();
        let _entered = bare.then(|| runtime.enter());
        future.as_mut().poll(cx)
    })
    .await
}
