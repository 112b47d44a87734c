//! Several actors that write into one diary.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use actix::{Actor, Addr, Context, Supervised};

use super::probe::{Probe, Script, handled, panics};
use crate::topology::{
    Backoff, Intensity, Place, Scope, Strategy,
    child_ref::{ChildRef, Label},
    group::{Group, GroupSpec},
    live::LiveCounts,
    spec::ChildSpec,
    started::Started,
    supervisor::{ChildPolicy, supervise},
};

#[derive(Clone, Default)]
pub(super) struct Cast {
    diary: Arc<Mutex<Vec<String>>>,
    pub(super) live: LiveCounts,
}

impl Cast {
    /// An actor that notes its hooks.
    pub(super) fn actor(&self, reference: &ChildRef<Probe>, place: Place) -> ChildSpec {
        self.scripted(reference, place, Script::default())
    }

    pub(super) fn scripted(
        &self,
        reference: &ChildRef<Probe>,
        place: Place,
        script: Script,
    ) -> ChildSpec {
        let mut script = script;
        for hook in ["started", "stopping", "restarting"] {
            let (cast, name) = (self.clone(), reference.name().to_owned());
            let inner = script.hook(hook);
            script = script.on(hook, move |probe, ctx| {
                cast.write(&format!("{name} {hook}"));
                if let Some(inner) = &inner {
                    inner(probe, ctx);
                }
            });
        }
        spec_of(reference, place, move |scope| {
            Probe::new(script.clone(), scope)
        })
        .backoff(Backoff::default().jitter(0.0))
    }

    pub(super) fn write(&self, entry: &str) {
        self.diary.lock().unwrap().push(entry.to_owned());
    }

    /// What was written since the last look.
    pub(super) fn read(&self) -> Vec<String> {
        std::mem::take(&mut self.diary.lock().unwrap())
    }

    pub(super) fn policy(&self) -> ChildPolicy {
        ChildPolicy {
            live: self.live.clone(),
            ..ChildPolicy::default()
        }
    }

    /// A group of `a`, `b`, `c`, … here, all like the first.
    pub(super) fn group(&self, strategy: Strategy, restarts: u32, names: &[&'static str]) -> Trio {
        let refs: Vec<_> = names.iter().map(|name| ChildRef::new(*name)).collect();
        let children = refs.iter().map(|r| self.actor(r, Place::Here)).collect();
        let group = self.start(strategy, restarts, children);
        Trio { group, refs }
    }

    pub(super) fn start(
        &self,
        strategy: Strategy,
        restarts: u32,
        children: Vec<ChildSpec>,
    ) -> Group {
        Group::root(
            &Place::Here,
            "app",
            self.policy(),
            spec(strategy, restarts, children),
        )
    }
}

/// A child that restarts as actix has it, named and found by its reference.
pub(super) fn spec_of<A, F>(reference: &ChildRef<A>, place: Place, build: F) -> ChildSpec
where
    A: Actor<Context = Context<A>> + Supervised,
    F: Fn(Scope) -> A + Send + Sync + Clone + 'static,
{
    let found = reference.clone();
    ChildSpec::new(reference.name(), move |place, path, policy| {
        let build = build.clone();
        let child = supervise(place, path, policy, move |_, scope| build(scope));
        found.resolve(child.addr);
        Started::actor(child.control, Label::actor("child"))
    })
    .place(place)
}

pub(super) fn spec(strategy: Strategy, restarts: u32, children: Vec<ChildSpec>) -> GroupSpec {
    GroupSpec {
        strategy,
        intensity: Intensity {
            restarts,
            within: Duration::from_secs(60),
        },
        children,
        ..GroupSpec::default()
    }
}

pub(super) struct Trio {
    pub(super) group: Group,
    pub(super) refs: Vec<ChildRef<Probe>>,
}

impl Trio {
    pub(super) fn addr(&self, child: usize) -> Addr<Probe> {
        self.refs[child].addr().unwrap()
    }

    pub(super) fn crash(&self, child: usize) {
        self.addr(child).do_send(panics());
    }

    pub(super) async fn all_answer(&self) -> Vec<usize> {
        let mut counts = Vec::new();
        for child in 0..self.refs.len() {
            counts.push(handled(&self.addr(child)).await);
        }
        counts
    }
}
