//! Stop means stop, whenever it comes.

use std::time::Duration;

use actix::{ActorContext, AsyncContext, fut::wrap_future};
use tokio::time::Instant;

use super::probe::{Script, act, handled, nothing, on_arbiter, panics, policy};
use crate::topology::{ChildState, Exit, Stop, live::LiveCounts, supervisor::ChildPolicy};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_stop_runs_the_hooks_and_leaves_nothing_behind() {
    on_arbiter(async {
        let script = Script::default().on("started", |probe, _| {
            probe.tasks.spawn(std::future::pending());
            probe.tasks.every(SECOND, SECOND, || async {});
        });
        let live = LiveCounts::default();
        let child = script.start_here(ChildPolicy {
            live: live.clone(),
            ..policy(5)
        });
        handled(&child.addr).await;
        assert_eq!((live.actors(), live.tasks()), (1, 2));
        let start = Instant::now();
        assert_eq!(
            child.control.stop(Stop::default()).await,
            Some(Exit::Shutdown)
        );
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!((live.actors(), live.tasks()), (0, 0));
        let diary = ["build", "started", "stopping", "stopped", "dropped"];
        assert_eq!(script.diary(), diary);
        assert_eq!(child.control.state(), ChildState::Stopped(Exit::Shutdown));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_passes_a_flooded_mailbox() {
    on_arbiter(async {
        let child = Script::default().start_here(policy(5));
        handled(&child.addr).await;
        let flood = |i: u32| act(move |probe, _| assert_eq!(probe.handled, i as usize + 2));
        for i in 0..10_000 {
            child.addr.do_send(flood(i));
        }
        let unhandled = child.addr.send(nothing());
        assert_eq!(
            child.control.stop(Stop::default()).await,
            Some(Exit::Shutdown)
        );
        assert!(unhandled.await.is_err());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_reaches_an_actor_frozen_in_a_wait() {
    on_arbiter(async {
        let script = Script::default();
        let child = script.start_here(policy(5));
        let freeze = act(|_, ctx| ctx.wait(wrap_future(std::future::pending())));
        child.addr.send(freeze).await.unwrap();
        child.control.stop(Stop::default()).await.unwrap();
        assert_eq!(script.count("stopped"), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_drains_has_its_limit_and_no_longer() {
    on_arbiter(async {
        let script = Script::default().lingers();
        let child = script.start_here(policy(5));
        handled(&child.addr).await;
        let start = Instant::now();
        child.control.request_stop(Stop::Within(30 * SECOND));
        tokio::time::sleep(SECOND).await;
        assert_eq!(
            handled(&child.addr).await,
            2,
            "it still works while draining"
        );
        child.control.stopped().await;
        let took = start.elapsed();
        assert!(took >= 30 * SECOND && took < 31 * SECOND, "{took:?}");
        assert_eq!(script.count("stopped"), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_drains_ends_as_soon_as_it_is_done() {
    on_arbiter(async {
        let script = Script::default().on("stopping", |probe, ctx| {
            probe.script.linger = probe.script.count("stopping") == 1;
            let addr = ctx.address();
            let done = async move { addr.do_send(act(|_, ctx| ctx.stop())) };
            probe.tasks.after(2 * SECOND, done);
        });
        let child = script.start_here(policy(5));
        handled(&child.addr).await;
        let start = Instant::now();
        let exit = child.control.stop(Stop::Within(30 * SECOND)).await;
        assert_eq!(exit, Some(Exit::Shutdown));
        assert_eq!(start.elapsed().as_secs(), 2);
        assert_eq!(script.count("stopped"), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_second_shorter_stop_shortens_the_first() {
    on_arbiter(async {
        let child = Script::default().lingers().start_here(policy(5));
        handled(&child.addr).await;
        let start = Instant::now();
        child.control.request_stop(Stop::Within(30 * SECOND));
        tokio::time::sleep(SECOND).await;
        child.control.request_stop(Stop::Within(60 * SECOND));
        tokio::time::sleep(SECOND).await;
        child.control.stop(Stop::Now).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_second_longer_stop_gives_no_more_time() {
    on_arbiter(async {
        let child = Script::default().lingers().start_here(policy(5));
        handled(&child.addr).await;
        let start = Instant::now();
        child.control.request_stop(Stop::Within(3 * SECOND));
        tokio::time::sleep(SECOND).await;
        child.control.stop(Stop::Within(60 * SECOND)).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 3);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn stopped_at_once_an_actor_runs_no_hook() {
    on_arbiter(async {
        let script = Script::default();
        let child = script.start_here(policy(5));
        handled(&child.addr).await;
        child.control.stop(Stop::Now).await.unwrap();
        assert_eq!(script.diary(), ["build", "started", "dropped"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn stopped_before_it_came_up_an_actor_runs_no_hook() {
    on_arbiter(async {
        let script = Script::default();
        let child = script.start_here(policy(5));
        child.control.stop(Stop::default()).await.unwrap();
        assert_eq!(script.diary(), ["build", "dropped"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn stopped_before_it_came_up_again_an_actor_runs_no_hook() {
    on_arbiter(async {
        let script = Script::default().on("restarting", |probe, _| {
            probe.scope.control.request_stop(Stop::default());
        });
        let child = script.start_here(policy(5));
        child.addr.do_send(panics());
        assert_eq!(child.control.stopped().await, Exit::Shutdown);
        let diary = ["build", "started", "restarting", "dropped"];
        assert_eq!(script.diary(), diary);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_cuts_the_wait_for_a_restart_short() {
    on_arbiter(async {
        let script = Script::default();
        let child = script.start_here(policy(5));
        child.addr.do_send(panics());
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(matches!(
            child.control.state(),
            ChildState::Restarting { .. }
        ));
        let start = Instant::now();
        child.control.stop(Stop::default()).await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(script.diary(), ["build", "started", "dropped"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_an_ordered_restart_is_for_good() {
    on_arbiter(async {
        let script = Script::default().lingers();
        let child = script.start_here(policy(5));
        handled(&child.addr).await;
        child.control.restart();
        tokio::time::sleep(SECOND).await;
        let exit = child.control.stop(Stop::Within(SECOND)).await;
        assert_eq!(exit, Some(Exit::Shutdown));
        assert_eq!(script.count("restarting"), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_actor_without_addresses_and_controls_lives_on() {
    on_arbiter(async {
        let script = Script::default().on("started", |probe, _| {
            let script = probe.script.clone();
            let tick = async move { script.write("tick") };
            probe.tasks.after(SECOND, tick);
        });
        drop(script.start_here(policy(5)));
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!(script.diary(), ["build", "started", "tick"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_without_limit_ends_with_the_child() {
    on_arbiter(async {
        let child = Script::default().start_here(policy(5));
        handled(&child.addr).await;
        let stop = Stop::Within(Duration::MAX);
        assert_eq!(child.control.stop(stop).await, Some(Exit::Shutdown));
    })
    .await;
}
