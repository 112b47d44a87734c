//! A thread that runs actors and belongs to nobody else.

use std::io;

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
    let run = move || actix_rt::System::new().block_on(async move { make().await });
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map(drop)
}
