//! Start order, strategies, escalation, stop order.

use std::time::Duration;

use actix::{ActorContext, Context};
use tokio::time::{Instant, sleep};

use super::{
    cast::{Cast, Trio, spec},
    probe::{Probe, Script, act, handled, nothing, on_arbiter, panics},
};
use crate::topology::{
    ChildState, Exit, Place, Restart, Stop, Strategy,
    child_ref::{ChildRef, Label},
    group::Group,
    spec::ChildSpec,
    started::Started,
    supervisor::supervise,
};

const ALL: [&str; 3] = ["a", "b", "c"];
const SECOND: Duration = Duration::from_secs(1);

async fn up(cast: &Cast, strategy: Strategy, restarts: u32) -> Trio {
    let trio = cast.group(strategy, restarts, &ALL);
    trio.group.up().await.unwrap();
    trio.all_answer().await;
    assert_eq!(cast.read(), ["a started", "b started", "c started"]);
    trio
}

#[tokio::test(start_paused = true)]
async fn children_stop_in_reverse_and_nothing_is_left() {
    on_arbiter(async {
        let cast = Cast::default();
        let trio = up(&cast, Strategy::OneForOne, 5).await;
        assert_eq!(trio.group.stop(30 * SECOND).await, Some(Exit::Shutdown));
        assert_eq!(cast.read(), ["c stopping", "b stopping", "a stopping"]);
        assert_eq!(cast.live.actors(), 0);
        assert!(trio.group.tree().children.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_first_child_that_does_not_start_stops_those_before_it() {
    on_arbiter(async {
        let cast = Cast::default();
        let refs = ALL.map(ChildRef::new);
        let bad = Script::default().on("started", |_, _| panic!("no port"));
        let children = vec![
            cast.actor(&refs[0], Place::Here),
            cast.scripted(&refs[1], Place::Here, bad),
            cast.actor(&refs[2], Place::Here),
        ];
        let group = cast.start(Strategy::OneForOne, 5, children);
        let failure = Exit::Failed("b did not start: panicked: no port".into());
        assert_eq!(group.up().await, Err(failure.clone()));
        assert_eq!(group.exited().await, failure);
        assert_eq!(cast.read(), ["a started", "b started", "a stopping"]);
        assert_eq!(cast.live.actors(), 0);
        assert!(refs[2].addr().is_none());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_for_one_restarts_the_failed_child_alone() {
    on_arbiter(async {
        let cast = Cast::default();
        let trio = up(&cast, Strategy::OneForOne, 5).await;
        trio.crash(0);
        trio.crash(2);
        // `b` goes on counting, the others start anew.
        assert_eq!(trio.all_answer().await, [1, 2, 1]);
        let mut diary = cast.read();
        diary.sort();
        let restarted = ["a restarting", "a started", "c restarting", "c started"];
        assert_eq!(diary, restarted);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_for_one_children_do_not_wait_for_each_others_backoff() {
    on_arbiter(async {
        let cast = Cast::default();
        let trio = up(&cast, Strategy::OneForOne, 20).await;
        for _ in 0..5 {
            trio.crash(0);
            sleep(Duration::from_millis(1)).await;
        }
        sleep(SECOND).await;
        let start = Instant::now();
        trio.crash(1);
        handled(&trio.addr(1)).await;
        assert!(start.elapsed() < 2 * Duration::from_millis(100));
        assert!(matches!(
            trio.group.child("a").unwrap().state(),
            ChildState::Restarting { .. }
        ));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn rest_for_one_takes_along_those_started_later() {
    on_arbiter(async {
        let cast = Cast::default();
        let trio = up(&cast, Strategy::RestForOne, 5).await;
        trio.crash(1);
        assert_eq!(trio.all_answer().await, [2, 1, 1]);
        let diary = [
            "c stopping",
            "b restarting",
            "b started",
            "c restarting",
            "c started",
        ];
        assert_eq!(cast.read(), diary);
        trio.crash(2);
        assert_eq!(trio.all_answer().await, [3, 2, 1]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_for_all_restarts_everyone_in_order() {
    on_arbiter(async {
        let cast = Cast::default();
        let trio = up(&cast, Strategy::OneForAll, 5).await;
        let start = Instant::now();
        trio.crash(1);
        assert_eq!(handled(&trio.addr(1)).await, 1);
        assert_eq!(trio.all_answer().await, [1, 2, 1]);
        let diary = [
            "c stopping",
            "a stopping",
            "a restarting",
            "a started",
            "b restarting",
            "b started",
            "c restarting",
            "c started",
        ];
        assert_eq!(cast.read(), diary);
        assert_eq!(start.elapsed().as_millis() / 10, 10, "one back-off");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_takes_along_a_sibling_that_waits_for_its_own_restart() {
    on_arbiter(async {
        let cast = Cast::default();
        let trio = up(&cast, Strategy::RestForOne, 5).await;
        trio.crash(2);
        sleep(Duration::from_millis(50)).await;
        trio.crash(0);
        sleep(SECOND).await;
        assert_eq!(trio.all_answer().await, [1, 1, 1]);
        let diary = [
            "b stopping",
            "a restarting",
            "a started",
            "b restarting",
            "b started",
            "c restarting",
            "c started",
        ];
        assert_eq!(cast.read(), diary);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn siblings_that_wait_keep_their_mailbox() {
    on_arbiter(async {
        let cast = Cast::default();
        let trio = up(&cast, Strategy::OneForAll, 5).await;
        trio.crash(0);
        sleep(Duration::from_millis(50)).await;
        let state = trio.group.child("c").unwrap().state();
        assert_eq!(state, ChildState::Down(Exit::Shutdown));
        let replies = [(); 3].map(|()| trio.addr(2).send(nothing()));
        let replies = futures::future::join_all(replies).await;
        let counts: Vec<_> = replies.into_iter().map(Result::unwrap).collect();
        assert_eq!(counts, [1, 2, 3]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_sibling_that_is_taken_along_but_temporary_stays_down() {
    on_arbiter(async {
        let cast = Cast::default();
        let refs = ALL.map(ChildRef::new);
        let child = |i: usize| cast.actor(&refs[i], Place::Here);
        let children = vec![child(0), child(1).restart(Restart::Temporary), child(2)];
        let group = cast.start(Strategy::OneForAll, 5, children);
        group.up().await.unwrap();
        refs[0].addr().unwrap().do_send(panics());
        handled(&refs[2].addr().unwrap()).await;
        assert_eq!(handled(&refs[0].addr().unwrap()).await, 1);
        let temporary = group.child("b").unwrap();
        assert_eq!(temporary.stopped().await, Exit::Shutdown);
        assert!(group.control().state() == ChildState::Running);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_done_ends_without_its_group() {
    on_arbiter(async {
        let cast = Cast::default();
        let refs = ALL.map(ChildRef::new);
        let children = refs.iter().map(|reference| {
            let child = cast.actor(reference, Place::Here);
            child.restart(Restart::Transient)
        });
        let group = cast.start(Strategy::OneForAll, 0, children.collect());
        group.up().await.unwrap();
        let done = group.child("b").unwrap();
        refs[1].addr().unwrap().do_send(act(|_, ctx| ctx.stop()));
        assert_eq!(done.stopped().await, Exit::Normal);
        sleep(SECOND).await;
        assert_eq!(handled(&refs[0].addr().unwrap()).await, 1);
        assert_eq!(group.control().state(), ChildState::Running);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_budget_is_the_groups_and_when_it_is_spent_the_group_ends() {
    on_arbiter(async {
        let cast = Cast::default();
        let trio = up(&cast, Strategy::OneForOne, 2).await;
        for child in 0..3 {
            trio.crash(child);
            sleep(SECOND).await;
        }
        let failure = Exit::Failed("app/c gave up: panicked: boom".into());
        assert_eq!(trio.group.exited().await, failure);
        let mut diary = cast.read();
        assert_eq!(diary.split_off(4), ["b stopping", "a stopping"]);
        assert_eq!(cast.live.actors(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_group_inside_a_group_escalates_and_is_started_anew() {
    on_arbiter(async {
        let cast = Cast::default();
        let [leaf, other] = ["leaf", "other"].map(ChildRef::new);
        let inner = vec![cast.actor(&leaf, Place::Here)];
        let inner = Group::spec("inner", spec(Strategy::OneForOne, 0, inner));
        let children = vec![inner, cast.actor(&other, Place::Here)];
        let group = cast.start(Strategy::RestForOne, 1, children);
        group.up().await.unwrap();
        let first = leaf.addr().unwrap();
        first.do_send(panics());
        sleep(SECOND).await;
        assert!(!first.connected());
        assert_eq!(handled(&leaf.addr().unwrap()).await, 1);
        let tree = group.tree();
        assert_eq!(&*tree.path, "app");
        let [inner, other] = &tree.children[..] else {
            panic!("{tree:?}")
        };
        assert_eq!((&*inner.path, inner.restarts), ("app/inner", 1));
        assert_eq!((&*other.path, other.restarts), ("app/other", 1));
        assert_eq!(&*inner.children[0].path, "app/inner/leaf");
        assert_eq!(inner.children[0].state, ChildState::Running);

        leaf.addr().unwrap().do_send(panics());
        let failure = "app/inner gave up: failed: app/inner/leaf gave up: panicked: boom";
        assert_eq!(group.exited().await, Exit::Failed(failure.into()));
        assert_eq!(cast.live.actors(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_reaches_a_group_while_it_starts_and_while_it_restarts() {
    on_arbiter(async {
        let cast = Cast::default();
        let stuck = ChildSpec::new("stuck", |_, path, policy| {
            let script = Script::default().lingers();
            let build = |_: &mut Context<_>, scope| Probe::new(script, scope);
            let child = supervise(&Place::Here, path, policy, build);
            Started::actor(child.control, Label::actor("child"))
        })
        .stop(Stop::Within(3 * SECOND));
        let group = cast.start(Strategy::OneForAll, 5, vec![stuck]);
        let start = Instant::now();
        group.stop(10 * SECOND).await.unwrap();
        assert!(start.elapsed() <= 4 * SECOND);
        assert_eq!(cast.live.actors(), 0);

        let trio = up(&cast, Strategy::OneForAll, 5).await;
        trio.crash(1);
        sleep(Duration::from_millis(50)).await;
        let start = Instant::now();
        trio.group.stop(10 * SECOND).await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(cast.live.actors(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_groups_limit_is_above_those_of_its_children() {
    on_arbiter(async {
        let cast = Cast::default();
        let refs = ALL.map(ChildRef::new);
        let children = refs.iter().map(|reference| {
            let lingers = Script::default().lingers();
            cast.scripted(reference, Place::Here, lingers)
        });
        let group = cast.start(Strategy::OneForOne, 5, children.collect());
        group.up().await.unwrap();
        let start = Instant::now();
        group.stop(7 * SECOND).await.unwrap();
        assert_eq!(
            start.elapsed().as_secs(),
            7,
            "5 s for the first, 2 s for the second"
        );
        sleep(SECOND).await;
        assert_eq!(cast.live.actors(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_child_left_over_from_a_group_that_is_started_anew_is_gone_first() {
    on_arbiter(async {
        let cast = Cast::default();
        let leaf = ChildRef::new("leaf");
        let live = cast.live.clone();
        let alone = Script::default().lingers().on("started", move |_, _| {
            assert_eq!(live.actors(), 1, "never two of one");
        });
        let inner = vec![cast.scripted(&leaf, Place::Here, alone)];
        let inner = Group::spec("inner", spec(Strategy::OneForOne, 0, inner));
        let children = vec![inner.stop(Stop::Within(SECOND))];
        let group = cast.start(Strategy::OneForOne, 0, children);
        group.up().await.unwrap();
        let first = leaf.addr().unwrap();
        group.child("inner").unwrap().restart();
        sleep(2 * SECOND).await;
        assert!(!first.connected(), "its second to stop is over");
        assert_eq!(handled(&leaf.addr().unwrap()).await, 1);
        assert_eq!(cast.read().last().unwrap(), "leaf started");
    })
    .await;
}
