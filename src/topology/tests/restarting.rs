//! When a child is restarted, what survives, and when its supervisor gives up.

use std::time::Duration;

use actix::{ActorContext, ActorFutureExt, AsyncContext, fut::wrap_future};
use tokio::{sync::watch, time::Instant};

use super::probe::{Probe, Script, act, handled, nothing, on_arbiter, panics, policy};
use crate::topology::{
    ChildState, EventKind, Exit, Restart, Stop,
    control::{ChildControl, Status},
    event::Events,
    supervisor::ChildPolicy,
    tasks::Generation,
};

fn boom() -> Exit {
    Exit::Panicked("boom".into())
}

async fn next_delay(status: &mut watch::Receiver<Status>) -> Duration {
    loop {
        status.changed().await.unwrap();
        if let ChildState::Restarting { delay, .. } = status.borrow_and_update().state {
            return delay;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn address_and_queued_messages_survive_a_panic_and_state_does_not() {
    on_arbiter(async {
        let script = Script::default();
        let child = script.start_here(policy(5));
        assert_eq!(handled(&child.addr).await, 1);
        let panicking = child.addr.send(panics());
        let queued = [(); 3].map(|()| child.addr.send(nothing()));
        assert!(panicking.await.is_err());
        let mut counts = Vec::new();
        for reply in queued {
            counts.push(reply.await.unwrap());
        }
        assert_eq!(counts, [1, 2, 3], "a fresh state handled them, in order");
        assert_eq!(child.control.generation(), Generation(2));
        assert_eq!(child.control.restarts(), 1);
        assert!(child.addr.connected());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_message_that_panicked_is_consumed_not_redelivered() {
    on_arbiter(async {
        let script = Script::default();
        let child = script.start_here(policy(5));
        child.addr.do_send(act(|probe, _| {
            probe.script.write("poison");
            panic!("boom");
        }));
        assert_eq!(handled(&child.addr).await, 1);
        assert_eq!(script.count("poison"), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_requests_wait_out_the_backoff_in_order() {
    on_arbiter(async {
        let child = Script::default().start_here(policy(5));
        handled(&child.addr).await;
        let start = Instant::now();
        child.addr.do_send(panics());
        let replies: Vec<_> = (0..100).map(|_| child.addr.send(nothing())).collect();
        let replies = futures::future::join_all(replies).await;
        let counts: Vec<_> = replies.into_iter().map(Result::unwrap).collect();
        assert_eq!(counts, (1..=100).collect::<Vec<_>>());
        // The clock of the runtime ticks in milliseconds.
        let waited = start.elapsed().as_millis();
        assert!((100..=101).contains(&waited), "{waited} ms");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_anywhere_in_the_actor_is_a_restart() {
    on_arbiter(async {
        let places = [
            panics(),
            act(|_, ctx| {
                ctx.run_later(Duration::from_secs(1), |_, _| panic!("boom"));
            }),
            act(|_, ctx| {
                let later = wrap_future::<_, Probe>(async {});
                ctx.spawn(later.map(|(), _, _| panic!("boom")));
            }),
            act(|_, ctx| {
                let later = wrap_future::<_, Probe>(async {});
                ctx.wait(later.map(|(), _, _| panic!("boom")));
            }),
        ];
        for (restarts, place) in (1..).zip(places) {
            let script = Script::default();
            let child = script.start_here(policy(5));
            child.addr.do_send(place);
            let mut status = child.control.watch();
            status
                .wait_for(|status| status.restarts == 1)
                .await
                .unwrap();
            assert_eq!(handled(&child.addr).await, 1, "place {restarts}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_restart_after_the_last_allowed_one_gives_up_and_frees_everyone_waiting() {
    on_arbiter(async {
        let script = Script::default();
        let child = script.start_here(policy(2));
        for _ in 0..3 {
            child.addr.do_send(panics());
        }
        let queued = child.addr.send(nothing());
        let waiters: Vec<_> = (0..10).map(|_| child.control.stopped()).collect();
        assert_eq!(futures::future::join_all(waiters).await, vec![boom(); 10]);
        assert_eq!(child.control.state(), ChildState::GaveUp(boom()));
        assert_eq!(child.control.restarts(), 2);
        assert!(queued.await.is_err());
        assert!(!child.addr.connected());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn delays_grow_and_start_again_after_a_good_run() {
    on_arbiter(async {
        let child = Script::default().start_here(policy(5));
        let mut status = child.control.watch();
        let mut delays = Vec::new();
        for rest in [0, 0, 20] {
            handled(&child.addr).await;
            tokio::time::sleep(Duration::from_secs(rest)).await;
            child.addr.do_send(panics());
            delays.push(next_delay(&mut status).await.as_millis());
        }
        assert_eq!(delays, [100, 200, 100]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_policy_meets_every_end_as_its_table_says() {
    on_arbiter(async {
        for restart in [Restart::Permanent, Restart::Transient, Restart::Temporary] {
            for exit in [
                Exit::Normal,
                Exit::Shutdown,
                Exit::Failed("f".into()),
                boom(),
                Exit::Unresponsive,
            ] {
                let policy = ChildPolicy {
                    restart,
                    ..policy(5)
                };
                let child = Script::default().start_here(policy);
                handled(&child.addr).await;
                match exit {
                    Exit::Normal => child.addr.do_send(act(|_, ctx| ctx.stop())),
                    Exit::Shutdown => child.control.request_stop(Stop::default()),
                    Exit::Failed(_) => {
                        child
                            .addr
                            .do_send(act(|probe, ctx| probe.scope.fail(ctx, "f")));
                    }
                    Exit::Panicked(_) => child.addr.do_send(panics()),
                    Exit::Unresponsive => child.control.end_generation(Exit::Unresponsive),
                }
                if restart.restarts_after(&exit) {
                    assert_eq!(handled(&child.addr).await, 1, "{restart:?} after {exit}");
                } else {
                    assert_eq!(child.control.stopped().await, exit, "{restart:?}");
                }
            }
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_reported_failure_stops_the_mailbox_at_once_and_is_the_cause() {
    on_arbiter(async {
        let script = Script::default();
        let events = Events::new();
        let mut heard = events.subscribe();
        let child = script.start_here(ChildPolicy {
            events,
            ..policy(1)
        });
        handled(&child.addr).await;
        child.addr.do_send(act(|probe, ctx| {
            probe.script.write("fails");
            probe.scope.fail(ctx, "no route");
        }));
        child
            .addr
            .do_send(act(|probe, _| probe.script.write("next")));
        assert_eq!(handled(&child.addr).await, 2);
        let diary = [
            "build",
            "started",
            "fails",
            "stopping",
            "stopped",
            "restarting",
            "started",
            "next",
        ];
        assert_eq!(script.diary(), diary);
        let mut kinds = Vec::new();
        while let Ok(event) = heard.try_recv() {
            assert_eq!(&*event.path, "probe");
            kinds.push(event.kind);
        }
        let restarting = EventKind::Restarting {
            cause: Exit::Failed("no route".into()),
            attempt: 1,
            delay: Duration::from_millis(100),
        };
        let started = |generation| EventKind::Started { generation };
        assert_eq!(kinds, [started(1), restarting, started(2)]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_ordered_restart_costs_no_budget_and_keeps_the_mailbox() {
    on_arbiter(async {
        let script = Script::default();
        let child = script.start_here(policy(0));
        handled(&child.addr).await;
        for generation in 2..10 {
            child.control.restart();
            assert_eq!(handled(&child.addr).await, 1);
            assert_eq!(child.control.generation(), Generation(generation));
        }
        assert_eq!(script.count("stopped"), 8, "each ran its stop hooks");
    })
    .await;
}

#[cfg(feature = "test-hooks")]
#[tokio::test(start_paused = true)]
async fn an_injected_panic_is_a_crash_like_any_other() {
    on_arbiter(async {
        let child = Script::default().start_here(policy(1));
        handled(&child.addr).await;
        child.control.inject_panic();
        assert_eq!(handled(&child.addr).await, 1);
        child.control.inject_panic();
        let exit = child.control.stopped().await;
        assert_eq!(exit, Exit::Panicked("injected panic".into()));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_reported_too_late_does_not_end_the_next_generation() {
    struct Late(ChildControl);
    impl Drop for Late {
        fn drop(&mut self) {
            self.0.end_generation(Exit::Failed("too late".into()));
        }
    }
    on_arbiter(async {
        let child = Script::default().start_here(policy(0));
        let spawn = act(|probe, _| {
            let late = Late(probe.scope.control.clone());
            probe.tasks.spawn(async move {
                std::future::pending::<()>().await;
                drop(late);
            });
        });
        child.addr.send(spawn).await.unwrap();
        tokio::task::yield_now().await;
        child.control.restart();
        assert_eq!(handled(&child.addr).await, 1);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(child.control.state(), ChildState::Running);
    })
    .await;
}
