//! Children that come and go.

use std::{collections::HashSet, time::Duration};

use actix::ActorContext;
use tokio::time::{Instant, sleep};

use super::{
    cast::Cast,
    probe::{Script, act, handled, on_arbiter, panics},
};
use crate::topology::{
    Backoff, ChildState, Exit, Place, Restart, Strategy,
    child_ref::ChildRef,
    group::{AddError, Group, RemoveError},
    spec::ChildSpec,
};

const SECOND: Duration = Duration::from_secs(1);

async fn group(cast: &Cast) -> Group {
    let group = cast.start(Strategy::OneForOne, 2, Vec::new());
    group.up().await.unwrap();
    group
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_child_comes_and_goes_and_leaves_nothing_behind() {
    on_arbiter(async {
        let cast = Cast::default();
        let group = group(&cast).await;
        for _ in 0..10 {
            let queue = ChildRef::new("queue");
            let child = cast.actor(&queue, Place::Here).restart(Restart::Temporary);
            group.add(child.clone()).await.unwrap();
            handled(&queue.addr().unwrap()).await;
            assert_eq!(group.add(child).await.unwrap_err(), AddError::NameTaken);
            assert_eq!(group.tree().children.len(), 1);
            assert_eq!(group.remove("queue").await, Ok(Exit::Shutdown));
        }
        sleep(SECOND).await;
        assert!(group.tree().children.is_empty());
        assert_eq!(group.remove("queue").await, Err(RemoveError::Unknown));
        assert_eq!(cast.live.actors(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_temporary_child_that_crashes_ends_alone() {
    on_arbiter(async {
        let cast = Cast::default();
        let group = group(&cast).await;
        let queue = ChildRef::new("queue");
        let child = cast.actor(&queue, Place::Here).restart(Restart::Temporary);
        let control = group.add(child).await.unwrap();
        queue.addr().unwrap().do_send(panics());
        assert_eq!(control.stopped().await, Exit::Panicked("boom".into()));
        sleep(SECOND).await;
        assert!(group.tree().children.is_empty());
        assert_eq!(group.control().state(), ChildState::Running);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_transient_child_restarts_for_itself_and_in_the_end_takes_the_group_down() {
    on_arbiter(async {
        let cast = Cast::default();
        let group = group(&cast).await;
        let session = ChildRef::new("session");
        let child = cast.actor(&session, Place::Here);
        group.add(child.restart(Restart::Transient)).await.unwrap();
        for _ in 0..2 {
            session.addr().unwrap().do_send(panics());
            assert_eq!(handled(&session.addr().unwrap()).await, 1);
        }
        session.addr().unwrap().do_send(panics());
        let failure = "app/session gave up: panicked: boom";
        assert_eq!(group.exited().await, Exit::Failed(failure.into()));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_does_not_start_is_an_error_and_no_more() {
    on_arbiter(async {
        let cast = Cast::default();
        let group = group(&cast).await;
        let bad = Script::default().on("started", |_, _| panic!("no"));
        let queue = ChildRef::new("queue");
        let child = cast.scripted(&queue, Place::Here, bad);
        let error = group
            .add(child.restart(Restart::Temporary))
            .await
            .unwrap_err();
        let panicked = AddError::NotStarted(Exit::Panicked("no".into()));
        assert_eq!(error, panicked);
        let error = group.add(ChildSpec::new("x", |_, _, _| panic!("no"))).await;
        assert_eq!(error.unwrap_err(), panicked);
        sleep(SECOND).await;
        assert!(group.tree().children.is_empty());
        assert_eq!(group.control().state(), ChildState::Running);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dynamic_children_stop_first_and_all_at_once() {
    on_arbiter(async {
        let cast = Cast::default();
        let fixed = ChildRef::new("fixed");
        let children = vec![cast.actor(&fixed, Place::Here)];
        let group = cast.start(Strategy::OneForOne, 2, children);
        group.up().await.unwrap();
        for name in ["x", "y", "z"] {
            let slow = Script::default().on("stopping", |probe, ctx| {
                probe.script.linger = probe.script.count("stopping") == 1;
                let addr = actix::AsyncContext::address(ctx);
                let done = async move { addr.do_send(act(|_, ctx| ctx.stop())) };
                probe.tasks.after(2 * SECOND, done);
            });
            let reference = ChildRef::new(name);
            let child = cast.scripted(&reference, Place::Here, slow);
            group.add(child).await.unwrap();
        }
        cast.read();
        let start = Instant::now();
        group.stop(30 * SECOND).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 2);
        assert_eq!(cast.read().last().unwrap(), "fixed stopping");
        let late = cast.actor(&ChildRef::new("late"), Place::Here);
        assert_eq!(group.add(late).await.unwrap_err(), AddError::Closed);
        assert_eq!(cast.live.actors(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn children_that_crash_together_do_not_come_back_together() {
    on_arbiter(async {
        let cast = Cast::default();
        let group = group(&cast).await;
        let refs = ["x", "y", "z"].map(ChildRef::new);
        let mut controls = Vec::new();
        for reference in &refs {
            let child = cast.actor(reference, Place::Here);
            let jitter = Backoff::new(SECOND, SECOND).jitter(0.5);
            controls.push(group.add(child.backoff(jitter)).await.unwrap());
        }
        for reference in &refs {
            reference.addr().unwrap().do_send(panics());
        }
        sleep(Duration::from_millis(100)).await;
        let delays: HashSet<_> = controls
            .iter()
            .map(|control| match control.state() {
                ChildState::Restarting { delay, .. } => delay,
                state => panic!("{state:?}"),
            })
            .collect();
        assert_eq!(delays.len(), 3);
    })
    .await;
}
