//! Starting a supervised actor.

use std::sync::Arc;

use actix::{Actor, Addr, Context, Supervised};

use super::{
    Backoff, ChildState, Exit, Intensity, Place, Restart, Stop,
    control::{ChildControl, Shared},
    event::Events,
    life::Life,
    lifecycle::Supervision,
    live::LiveCounts,
    records::Records,
    remade::Remade,
    report::Reporter,
    scope::Scope,
    vessel::{Vessel, mailbox},
    vitals::Vitals,
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
    /// What is kept beyond exits.
    pub(crate) records: Records,
    pub(crate) vitals: Vitals,
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
    let (addr, mailbox) = mailbox();
    let live = policy.live.clone();
    let control = keep_alive(place, path.into(), policy, move |control| {
        let counted = live.actor();
        Vessel::build(mailbox, Scope::new(control, live), counted, build)
    });
    Child { addr, control }
}

/// The same with an actor that each restart replaces by what `make` returns, on the place's
/// thread. A panic in `make` counts as a failed start too.
pub(crate) fn supervise_remade<A, F>(
    place: &Place,
    path: Arc<str>,
    policy: ChildPolicy,
    make: F,
) -> Child<A>
where
    A: Actor<Context = Context<A>>,
    F: Fn(Scope) -> A + Send + 'static,
{
    let (addr, mailbox) = mailbox();
    let live = policy.live.clone();
    let control = keep_alive(place, path, policy, move |control| {
        let counted = live.actor();
        let scope = Scope::new(control, live);
        let make = Box::new(move || make(scope.clone()));
        Ok(Remade::new(mailbox, counted, make))
    });
    Child { addr, control }
}

/// Keeps what `build` makes, on the place's thread, alive by `policy`, until it ends for good.
pub(super) fn keep_alive<L, F>(
    place: &Place,
    path: Arc<str>,
    policy: ChildPolicy,
    build: F,
) -> ChildControl
where
    L: Life + 'static,
    F: FnOnce(ChildControl) -> Result<L, Exit> + Send + 'static,
{
    let shared = Arc::new(Shared::new(Arc::clone(&path)));
    let first = shared.lifespan().generation;
    let report = Reporter::new(path, first, &policy);
    let control = ChildControl::new(Arc::clone(&shared), report.subscribe());
    let known = control.clone();
    place.spawn(move || async move {
        shared.runs_here();
        match build(known) {
            Ok(life) => Supervision::new(life, shared, policy, report).run().await,
            Err(exit) => {
                shared.lifespan().end().await;
                report.end(ChildState::Stopped(exit));
            }
        }
    });
    control
}
