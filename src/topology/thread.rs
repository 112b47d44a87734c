//! A thread that runs actors and belongs to nobody else.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// Runs on a new thread, with an actix `System` of its own, the future that `make` builds there,
/// and ends the thread with it.
///
/// The thread belongs to no `System` of the application, so it works from any runtime, and one
/// that stops does not cut off what runs here.
pub(crate) fn spawn_thread<F, Fut>(name: &str, make: F) -> io::Result<()>
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    // Made here, for what actix makes by itself panics where files or threads have run out.
    let runtime = local_runtime()?;
    let run = move || {
        let system = actix_rt::System::with_tokio_rt(move || runtime);
        system.block_on(async move { make().await });
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map(drop)
}

/// A runtime for one thread of actors.
pub(crate) fn local_runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
