//! Actors that live but do not answer.

use std::time::Duration;

use actix::{AsyncContext, fut::wrap_future};
use tokio::time::{Instant, sleep};

use super::probe::{Script, act, handled, on_arbiter, policy};
use crate::topology::{ChildState, Exit, Place, liveness::Liveness};

const SECOND: Duration = Duration::from_secs(1);

const LIVENESS: Liveness = Liveness {
    every: SECOND,
    within: Duration::from_secs(2),
};

#[tokio::test(start_paused = true)]
async fn an_actor_that_waits_for_ever_is_restarted_in_time() {
    on_arbiter(async {
        let child = Script::default().start_here(policy(1));
        LIVENESS.watch_over(
            &Place::Here,
            child.addr.clone(),
            child.control.clone(),
            &policy(1),
        );
        handled(&child.addr).await;
        let freeze = || act(|_, ctx| ctx.wait(wrap_future(std::future::pending())));
        let start = Instant::now();
        child.addr.do_send(freeze());
        assert_eq!(handled(&child.addr).await, 1);
        assert!(start.elapsed() < 4 * SECOND);
        child.addr.do_send(freeze());
        assert_eq!(child.control.stopped().await, Exit::Unresponsive);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_answers_or_is_slow_within_reason_is_left_alone() {
    on_arbiter(async {
        let child = Script::default().start_here(policy(0));
        LIVENESS.watch_over(
            &Place::Here,
            child.addr.clone(),
            child.control.clone(),
            &policy(1),
        );
        for _ in 0..20 {
            let slow = Duration::from_millis(1_500);
            let pause = act(move |_, ctx| ctx.wait(wrap_future(sleep(slow))));
            child.addr.send(pause).await.unwrap();
            sleep(2 * SECOND).await;
        }
        assert_eq!(child.control.state(), ChildState::Running);
        assert_eq!(child.control.restarts(), 0);
    })
    .await;
}
