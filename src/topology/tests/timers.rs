//! Tasks and timers live as long as their generation.

use std::{rc::Rc, time::Duration};

use tokio::time::Instant;

use super::probe::{Script, act, handled, on_arbiter, panics, policy};
use crate::topology::{
    ChildState,
    control::{ChildControl, Status},
    live::LiveCounts,
    supervisor::ChildPolicy,
    tasks::{Generation, Lifespan, Tasks},
};

const SECOND: Duration = Duration::from_secs(1);

fn tasks() -> (Tasks, LiveCounts) {
    let live = LiveCounts::default();
    let lifespan = Lifespan::default().next();
    (Tasks::new("test".into(), lifespan, live.clone()), live)
}

async fn reaches(control: &ChildControl, wanted: impl Fn(&ChildState) -> bool) {
    let reached = |status: &Status| wanted(&status.state);
    control.watch().wait_for(reached).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_period_counts_from_the_end_of_a_run() {
    on_arbiter(async {
        let (tasks, _) = tasks();
        let start = Instant::now();
        let runs = Rc::new(std::cell::RefCell::new(Vec::new()));
        let record = Rc::clone(&runs);
        tasks.every(5 * SECOND, 10 * SECOND, move || {
            record.borrow_mut().push(start.elapsed().as_secs());
            tokio::time::sleep(3 * SECOND)
        });
        tokio::time::sleep(45 * SECOND).await;
        assert_eq!(*runs.borrow(), [5, 18, 31, 44]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_panics_does_not_end_its_timer() {
    on_arbiter(async {
        let (tasks, live) = tasks();
        let runs = Rc::new(std::cell::Cell::new(0));
        let count = Rc::clone(&runs);
        tasks.every(SECOND, SECOND, move || {
            count.set(count.get() + 1);
            assert_ne!(count.get(), 1, "before the first await");
            let run = count.get();
            async move {
                tokio::task::yield_now().await;
                assert_ne!(run, 2, "after it");
            }
        });
        tokio::time::sleep(Duration::from_millis(4_500)).await;
        assert_eq!(runs.get(), 4);
        assert_eq!(live.tasks(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn finished_and_panicked_tasks_leave_nothing_behind() {
    on_arbiter(async {
        let (tasks, live) = tasks();
        for i in 0..1_000 {
            tasks.spawn(async move { assert!(i % 2 == 0, "every other one panics") });
        }
        assert_eq!(live.tasks(), 1_000);
        tokio::time::sleep(SECOND).await;
        assert_eq!(live.tasks(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_set_cancels_its_tasks() {
    on_arbiter(async {
        let (tasks, live) = tasks();
        let held = Rc::new(());
        let in_task = Rc::clone(&held);
        tasks.spawn(async move {
            std::future::pending::<()>().await;
            drop(in_task);
        });
        tasks.after(SECOND, async { panic!("it was cancelled") });
        let elsewhere = tasks.cancelled();
        tokio::task::yield_now().await;
        drop(tasks);
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!(live.tasks(), 0);
        assert_eq!(Rc::strong_count(&held), 1);
        assert!(elsewhere.is_cancelled());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn tasks_end_with_the_crash_not_with_the_restart() {
    on_arbiter(async {
        let live = LiveCounts::default();
        let child = Script::default().start_here(ChildPolicy {
            live: live.clone(),
            ..policy(5)
        });
        child.addr.do_send(act(|probe, _| {
            probe.tasks.spawn(std::future::pending());
            panic!("boom");
        }));
        let restarting = |state: &ChildState| matches!(state, ChildState::Restarting { .. });
        reaches(&child.control, restarting).await;
        assert_eq!((live.actors(), live.tasks()), (1, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_task_knows_its_generation() {
    on_arbiter(async {
        let script = Script::default().on("started", |probe, _| {
            let expected = 1 + probe.script.count("restarting") as u64;
            assert_eq!(probe.tasks.lifespan.generation, Generation(expected));
            assert_eq!(probe.scope.generation(), expected);
            assert_eq!(&**probe.scope.path(), "probe");
        });
        let child = script.start_here(policy(3));
        for _ in 0..3 {
            handled(&child.addr).await;
            child.addr.do_send(panics());
        }
        handled(&child.addr).await;
        assert_eq!(child.control.generation(), Generation(4));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn started_and_cancelled_in_the_same_tick_a_task_never_runs() {
    on_arbiter(async {
        let (tasks, live) = tasks();
        tasks.spawn(async { panic!("it was cancelled") });
        drop(tasks);
        tokio::time::sleep(SECOND).await;
        assert_eq!(live.tasks(), 0);
    })
    .await;
}
