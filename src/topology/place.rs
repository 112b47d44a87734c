//! Where an actor runs.

use actix::{Arbiter, ArbiterHandle, System};

use super::thread::spawn_thread;

/// The thread that an actor runs on.
#[derive(Debug, Clone, Default)]
pub enum Place {
    /// The arbiter, or [`LocalSet`](tokio::task::LocalSet), on which it is started; for a child of
    /// a topology, the thread of the topology. The default.
    ///
    /// Outside of both there is no such place: starting an actor there panics, as
    /// [`spawn_local`](tokio::task::spawn_local) does.
    #[default]
    Here,
    /// This arbiter. When it is gone, or goes, its actors end as failed.
    Arbiter(ArbiterHandle),
    /// A new thread, which ends with the actor: an arbiter of the `System` that runs here, or,
    /// where there is none, a `System` of its own. For what would hold up others.
    Own,
}

impl Place {
    /// Where a root is best: the arbiter that this runs on, or else a thread of its own.
    pub(super) fn current() -> Self {
        Arbiter::try_current().map_or(Self::Own, Self::Arbiter)
    }

    /// Runs the future that `make` builds on the place's own thread. When the place is gone, or
    /// there is no thread to be had, `make` or its future is dropped.
    pub(crate) fn spawn<F, Fut>(&self, make: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        match self {
            Self::Here => {
                tokio::task::spawn_local(make());
            }
            Self::Arbiter(arbiter) => {
                arbiter.spawn_fn(move || {
                    tokio::task::spawn_local(make());
                });
            }
            Self::Own => {
                if let Err(error) = spawn_alone(make) {
                    tracing::warn!(%error, "no thread for an actor");
                }
            }
        }
    }
}

fn spawn_alone<F, Fut>(make: F) -> std::io::Result<()>
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    if System::try_current().is_none() {
        return spawn_thread("actor", make);
    }
    let arbiter = Arbiter::try_new()?;
    arbiter.spawn_fn(move || {
        let run = async move {
            make().await;
            Arbiter::current().stop();
        };
        tokio::task::spawn_local(run);
    });
    Ok(())
}
