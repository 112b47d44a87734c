//! Children that end at any moment: the rules hold for every order of events.

use std::{collections::BTreeSet, time::Duration};

use proptest::{prelude::*, strategy::Strategy as Generator};
use tokio::time::{Instant, sleep};

use super::{cast::Cast, probe::on_arbiter};
use crate::topology::{
    Backoff, Exit, Intensity, Restart, Strategy,
    order::Turn,
    plan::{Plan, Step},
};

const CHILDREN: usize = 4;

fn strategies() -> impl Generator<Value = Strategy> {
    prop::sample::select(vec![
        Strategy::OneForOne,
        Strategy::OneForAll,
        Strategy::RestForOne,
    ])
}

/// What the children of a plan do, as the plan would hear it.
#[derive(Default)]
struct World {
    alone: bool,
    up: BTreeSet<usize>,
    suspending: BTreeSet<usize>,
    resuming: BTreeSet<usize>,
}

impl World {
    fn obey(&mut self, step: Option<Step>) {
        let Some(Step { child, turn }) = step else {
            return;
        };
        match turn {
            Turn::Suspend => {
                assert!(self.suspending.is_empty(), "one by one");
                let later = |other: &usize| *other > child;
                assert!(!self.resuming.iter().any(later), "in reverse order");
                assert!(self.suspending.insert(child));
            }
            Turn::Resume { .. } => {
                assert!(self.suspending.is_empty(), "all down before one comes up");
                assert!(!self.up.contains(&child), "never two of one");
                assert!(self.alone || self.resuming.is_empty(), "one by one");
                assert!(self.resuming.insert(child));
            }
            other => panic!("{other:?} from permanent children with a boundless budget"),
        }
    }

    fn goes_down(&mut self, child: usize) {
        self.up.remove(&child);
        self.suspending.remove(&child);
        self.resuming.remove(&child);
    }
}

#[test]
fn a_child_that_is_done_does_not_hurry_those_in_line() {
    let (now, mut rng) = (Instant::now(), fastrand::Rng::with_seed(1));
    let mut plan = Plan::new(Strategy::RestForOne, Intensity::default());
    for restart in [Restart::Transient, Restart::Permanent, Restart::Permanent] {
        plan.started(restart, Backoff::default(), now);
    }
    let told = |step: Option<Step>| step.map(|step| (step.child, step.turn));
    let crash = Exit::Unresponsive;
    let step = plan.down(1, &crash, now, &mut rng);
    assert_eq!(told(step), Some((2, Turn::Suspend)));
    let step = plan.down(2, &Exit::Shutdown, now, &mut rng);
    assert!(matches!(
        told(step),
        Some((1, Turn::Resume { attempt: 1, .. }))
    ));
    let step = plan.down(0, &Exit::Normal, now, &mut rng);
    assert_eq!(told(step), Some((0, Turn::End)));
    assert!(plan.ended(0, &Exit::Normal));
    assert_eq!(told(plan.next_in_line()), None, "1 is not up yet");
    assert!(matches!(
        told(plan.up(1, now)),
        Some((2, Turn::Resume { attempt: 0, .. }))
    ));
}

proptest! {
    #[test]
    fn a_plan_always_brings_everyone_back_one_by_one(
        strategy in strategies(), events in prop::collection::vec((0..CHILDREN, any::<bool>()), 0..60),
    ) {
        let (now, mut rng) = (Instant::now(), fastrand::Rng::with_seed(1));
        let intensity = Intensity { restarts: u32::MAX, within: Duration::from_secs(1) };
        let mut plan = Plan::new(strategy, intensity);
        let alone = strategy == Strategy::OneForOne;
        let mut world = World { alone, ..World::default() };
        for child in 0..CHILDREN {
            plan.started(Restart::Permanent, Backoff::default(), now);
            world.up.insert(child);
        }
        let crash = Exit::Panicked("p".into());
        for (child, crashes) in events {
            if crashes && (world.up.contains(&child) || world.resuming.contains(&child)) {
                world.goes_down(child);
                let step = plan.down(child, &crash, now, &mut rng);
                world.obey(step);
            } else if world.resuming.remove(&child) {
                world.up.insert(child);
                let step = plan.up(child, now);
                world.obey(step);
            } else if world.suspending.contains(&child) {
                world.goes_down(child);
                let step = plan.down(child, &Exit::Shutdown, now, &mut rng);
                world.obey(step);
            }
        }
        // Nothing fails any more: everyone comes up.
        for _ in 0..4 * CHILDREN {
            if let Some(child) = world.suspending.pop_first() {
                world.goes_down(child);
                let step = plan.down(child, &Exit::Shutdown, now, &mut rng);
                world.obey(step);
            } else if let Some(child) = world.resuming.pop_first() {
                world.up.insert(child);
                let step = plan.up(child, now);
                world.obey(step);
            }
        }
        prop_assert_eq!(world.up.len(), CHILDREN);
    }

    #[test]
    fn whatever_crashes_and_whenever_it_stops_nothing_is_left(
        strategy in strategies(), restarts in 0_u32..8, stop_at in 0_u64..3_000,
        crashes in prop::collection::vec((0_usize..3, 0_u64..300), 0..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(on_arbiter(async {
            let cast = Cast::default();
            let trio = cast.group(strategy, restarts, &["a", "b", "c"]);
            let crashing = async {
                for (child, pause) in crashes {
                    sleep(Duration::from_millis(pause)).await;
                    if let Some(addr) = trio.refs[child].addr() {
                        addr.do_send(super::probe::panics());
                    }
                    let tree = trio.group.tree();
                    let total: u64 = tree.children.iter().map(|child| child.restarts).sum();
                    assert!(total <= 3 * u64::from(restarts), "{tree:?}");
                }
                std::future::pending::<()>().await;
            };
            let _ = tokio::time::timeout(Duration::from_millis(stop_at), crashing).await;
            assert!(trio.group.stop(Duration::from_secs(30)).await.is_some());
            assert_eq!((cast.live.actors(), cast.live.tasks()), (0, 0));
            for started in trio.refs.iter().filter_map(|reference| reference.addr()) {
                assert!(!started.connected());
            }
        }));
    }
}
