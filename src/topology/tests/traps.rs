//! One test per trap of actix that the supervising future has to step around.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use actix::{Actor, ActorContext, Arbiter, AsyncContext, Context, System, fut::wrap_future};

use super::probe::{Probe, Script, act, block, handled, nothing, on_arbiter, panics, policy};
use crate::topology::{Backoff, Exit, Place, Stop, live::LiveCounts, supervisor::ChildPolicy};

#[tokio::test(start_paused = true)]
async fn giving_up_runs_neither_started_again_nor_the_stop_hooks_of_the_crashed() {
    on_arbiter(async {
        let script = Script::default();
        let child = script.start_here(policy(0));
        child.addr.do_send(panics());
        child.control.stopped().await;
        assert_eq!(script.diary(), ["build", "started", "dropped"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn giving_up_after_a_panic_in_restarting_does_not_run_started() {
    on_arbiter(async {
        let script = Script::default().on("restarting", |_, _| panic!("again"));
        let child = script.start_here(policy(1));
        child.addr.do_send(panics());
        assert_eq!(
            child.control.stopped().await,
            Exit::Panicked("again".into())
        );
        assert_eq!(
            script.diary(),
            ["build", "started", "restarting", "dropped"]
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_restarting_counts_as_a_failed_start() {
    on_arbiter(async {
        let script = Script::default().on("restarting", |probe, _| {
            assert!(probe.script.count("restarting") > 2, "not yet");
        });
        let child = script.start_here(policy(3));
        child.addr.do_send(panics());
        assert_eq!(handled(&child.addr).await, 1);
        assert_eq!(child.control.restarts(), 3, "two of them failed");
        assert_eq!(script.count("started"), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_started_counts_as_a_failed_start() {
    on_arbiter(async {
        let script = Script::default().on("started", |probe, _| {
            assert!(probe.script.count("started") > 2, "not yet");
        });
        let child = script.start_here(policy(2));
        assert_eq!(handled(&child.addr).await, 1);
        assert_eq!(child.control.restarts(), 2);

        let hopeless = Script::default().on("started", |_, _| panic!("never"));
        let child = hopeless.start_here(policy(2));
        let exit = child.control.stopped().await;
        assert_eq!(exit, Exit::Panicked("never".into()));
        assert_eq!(hopeless.count("started"), 3);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_building_is_final_and_frees_everyone_waiting() {
    on_arbiter(async {
        let script = Script::default().on("build", |probe, _| {
            probe.tasks.spawn(std::future::pending());
            panic!("no spec");
        });
        let live = LiveCounts::default();
        let child = script.start_here(ChildPolicy {
            live: live.clone(),
            ..policy(5)
        });
        let waiting = child.addr.send(nothing());
        let exit = child.control.stopped().await;
        assert_eq!(exit, Exit::Panicked("no spec".into()));
        assert_eq!((live.actors(), live.tasks()), (0, 0));
        assert!(waiting.await.is_err());
    })
    .await;
}

/// What makes timers of our own necessary: should this fail, actix has mended it.
#[tokio::test(start_paused = true)]
async fn actix_cancels_a_timer_of_the_next_generation() {
    on_arbiter(async {
        let timer = Arc::new(Mutex::new(None));
        let arm = Arc::clone(&timer);
        let script = Script::default().on("started", move |_, ctx| {
            let tick = |probe: &mut Probe, _: &mut Context<_>| probe.script.write("tick");
            *arm.lock().unwrap() = Some(ctx.run_later(Duration::from_secs(1), tick));
        });
        let child = script.start_here(policy(5));
        child.addr.do_send(act(move |_, ctx| {
            ctx.cancel_future(timer.lock().unwrap().unwrap());
            std::panic::panic_any("boom");
        }));
        handled(&child.addr).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(script.count("tick"), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_timer_cancelled_before_a_panic_takes_none_of_the_next_generation() {
    on_arbiter(async {
        let script = Script::default().on("started", |probe, _| {
            let script = probe.script.clone();
            let tick = async move { script.write("tick") };
            probe.tasks.after(Duration::from_secs(1), tick);
        });
        let child = script.start_here(policy(5));
        child.addr.do_send(act(|probe, _| {
            probe.tasks = probe.scope.tasks();
            panic!("boom");
        }));
        handled(&child.addr).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(script.count("tick"), 1, "of the second generation only");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_stops_in_started_does_not_block_its_arbiter() {
    on_arbiter(async {
        let script = Script::default().on("started", |_, ctx| ctx.stop());
        let mut restless = policy(u32::MAX);
        restless.backoff = Backoff::new(Duration::ZERO, Duration::ZERO);
        let child = script.start_here(restless);
        // Others on this thread still run, in between its restarts.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let restarts = script.count("restarting");
        assert!((5..=100).contains(&restarts), "{restarts} restarts");
        assert_eq!(child.control.stop(Stop::Now).await, Some(Exit::Shutdown));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_stops_in_started_runs_out_of_budget() {
    on_arbiter(async {
        let script = Script::default().on("started", |_, ctx| ctx.stop());
        let child = script.start_here(policy(5));
        assert_eq!(child.control.stopped().await, Exit::Normal);
        assert_eq!(script.count("started"), 6);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_an_actor_is_dropped_is_caught() {
    on_arbiter(async {
        let script = Script::default().on("drop", |_, _| {});
        let live = LiveCounts::default();
        let child = script.start_here(ChildPolicy {
            live: live.clone(),
            ..policy(0)
        });
        child.addr.do_send(panics());
        assert_eq!(child.control.stopped().await, Exit::Panicked("boom".into()));
        assert_eq!(live.actors(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn stop_hooks_never_run_while_the_thread_is_panicking() {
    on_arbiter(async {
        let watch = |probe: &mut Probe, _: &mut Context<_>| {
            assert!(!std::thread::panicking());
            probe.script.write("calm");
        };
        let script = Script::default().on("stopping", watch).on("stopped", watch);
        let child = script.start_here(policy(1));
        child.addr.do_send(panics());
        handled(&child.addr).await;
        child.control.stop(Stop::default()).await;
        assert_eq!(
            script.count("calm"),
            2,
            "only those of the second generation"
        );
    })
    .await;
}

#[test]
fn an_actor_of_another_arbiter_is_restarted_and_stopped_out_of_band() {
    System::new().block_on(async {
        let arbiter = Arbiter::new();
        let script = Script::default();
        let child = script.start(&Place::Arbiter(arbiter.handle()), policy(0));
        // Asleep in a handler's wait: no message gets through to it.
        let sleeps = act(|_, ctx| ctx.wait(actix::fut::wrap_future(std::future::pending())));
        child.addr.send(sleeps).await.unwrap();
        let queued = child.addr.send(nothing());
        child.control.restart();
        assert_eq!(queued.await.unwrap(), 1);
        let exit = child.control.stop(Stop::default()).await;
        assert_eq!(exit, Some(Exit::Shutdown));
        arbiter.stop();
        arbiter.join().unwrap();
    });
}

#[test]
fn actors_of_an_arbiter_that_ends_or_has_ended_resolve() {
    System::new().block_on(async {
        let arbiter = Arbiter::new();
        let place = Place::Arbiter(arbiter.handle());
        let script = Script::default();
        let living = script.start(&place, policy(5));
        handled(&living.addr).await;
        arbiter.stop();
        let gone = Exit::Failed("the thread it ran on has ended".into());
        assert_eq!(living.control.stopped().await, gone);
        arbiter.join().unwrap();
        let late = script.start(&place, policy(5));
        assert_eq!(late.control.stopped().await, gone);
        assert!(late.addr.send(nothing()).await.is_err());
    });
}

#[test]
fn a_blocked_thread_does_not_block_who_stops_it() {
    System::new().block_on(async {
        let arbiter = Arbiter::new();
        let child = Script::default().start(&Place::Arbiter(arbiter.handle()), policy(0));
        let release = block(&child.addr).await;
        tokio::time::pause();
        assert_eq!(child.control.stop(Stop::Now).await, None);
        tokio::time::resume();
        drop(release);
        assert_eq!(child.control.stopped().await, Exit::Shutdown);
        arbiter.stop();
        arbiter.join().unwrap();
    });
}

#[test]
fn a_context_that_is_terminated_is_dropped_without_a_hook() {
    struct Loud(mpsc::Sender<&'static str>);
    impl Actor for Loud {
        type Context = Context<Self>;
        fn started(&mut self, _: &mut Self::Context) {
            self.0.send("started").unwrap();
        }
        fn stopped(&mut self, _: &mut Self::Context) {
            self.0.send("stopped").unwrap();
        }
    }
    let (diary, read) = mpsc::channel();
    let mut fut = Context::new().into_future(Loud(diary.clone()));
    fut.ctx().terminate();
    drop(fut);
    assert_eq!(read.try_iter().count(), 0);
    // Without that, actix polls it once more: should this fail, it has changed.
    drop(Context::new().into_future(Loud(diary)));
    assert_eq!(read.try_iter().collect::<Vec<_>>(), ["started", "stopped"]);
}

#[tokio::test(start_paused = true)]
async fn n98_while_an_actor_waits_for_a_future_no_other_message_passes() {
    on_arbiter(async {
        let child = Script::default().start_here(policy(0));
        let second = Duration::from_secs(1);
        let pause = act(move |_, ctx| ctx.wait(wrap_future(tokio::time::sleep(second))));
        let begun = tokio::time::Instant::now();
        child.addr.do_send(pause);
        child.addr.send(nothing()).await.unwrap();
        assert_eq!(begun.elapsed(), second);
    })
    .await;
}
