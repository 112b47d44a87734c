//! Where an actor runs.

use actix::ArbiterHandle;

/// The thread that an actor runs on.
#[derive(Debug, Clone, Default)]
pub enum Place {
    /// The arbiter, or [`LocalSet`](tokio::task::LocalSet), on which it is started. The default.
    ///
    /// Outside of both there is no such place: starting an actor there panics, as
    /// [`spawn_local`](tokio::task::spawn_local) does.
    #[default]
    Here,
    /// This arbiter. When it is gone, or goes, its actors end as failed.
    Arbiter(ArbiterHandle),
}

impl Place {
    /// Runs the future that `make` builds on the place's own thread. When the place is gone,
    /// `make` or its future is dropped.
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
        }
    }
}
