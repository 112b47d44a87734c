//! Starting a supervised actor.

use std::sync::Arc;

use actix::{Actor, Addr, Context, Supervised};

use super::{
    Backoff, ChildState, Intensity, Place, Restart, Stop,
    control::{ChildControl, Shared},
    event::Events,
    lifecycle::Supervision,
    live::LiveCounts,
    report::Reporter,
    scope::Scope,
    vessel::{Vessel, mailbox},
};

/// Who decides what follows when a child has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Decides {
    /// The supervising future itself, by the child's own policy and budget. The default.
    #[default]
    Alone,
    /// A group: the child stays down until it is told.
    Group,
}

/// Everything a supervising future has to know beside place and path.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChildPolicy {
    pub(crate) restart: Restart,
    pub(crate) intensity: Intensity,
    pub(crate) backoff: Backoff,
    /// How a generation is stopped when another shall follow.
    pub(crate) stop: Stop,
    pub(crate) decides: Decides,
    /// For the jitter.
    pub(crate) rng: fastrand::Rng,
    pub(crate) live: LiveCounts,
    pub(crate) events: Events,
}

/// A supervised actor.
#[derive(Debug)]
pub(crate) struct Child<A: Actor> {
    /// Works at once and over restarts: messages wait until the actor is up.
    pub(crate) addr: Addr<A>,
    pub(crate) control: ChildControl,
}

/// Starts an actor and keeps it alive by `policy`, until it ends for good.
///
/// `build` runs once, on the place's thread; after that [`Supervised::restarting`] has to make
/// all state anew, from what the actor keeps as its spec. A panic in either, or in `started`,
/// counts as a failed start; one in `build` is final. A message whose handler panics is
/// consumed, those behind it stay queued. The actor lives on without any address.
pub(crate) fn supervise<A, F>(
    place: &Place,
    path: impl Into<Arc<str>>,
    policy: ChildPolicy,
    build: F,
) -> Child<A>
where
    A: Actor<Context = Context<A>> + Supervised,
    F: FnOnce(&mut Context<A>, Scope) -> A + Send + 'static,
{
    let path = path.into();
    let (addr, mailbox) = mailbox();
    let shared = Arc::new(Shared::new(Arc::clone(&path)));
    let first = shared.lifespan().generation;
    let report = Reporter::new(path, first, policy.events.clone());
    let control = ChildControl::new(Arc::clone(&shared), report.subscribe());
    let scope = Scope::new(control.clone(), policy.live.clone());
    place.spawn(move || async move {
        match Vessel::build(mailbox, scope, policy.live.actor(), build) {
            Ok(vessel) => {
                let supervision = Supervision::new(vessel, shared, policy, report);
                supervision.run().await;
            }
            Err(exit) => {
                shared.lifespan().end().await;
                report.end(ChildState::Stopped(exit));
            }
        }
    });
    Child { addr, control }
}
