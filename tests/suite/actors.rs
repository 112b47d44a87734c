//! An application's own actors in a topology, without any broker.

use std::{
    sync::{Arc, Mutex},
    task::Poll,
    thread::{self, ThreadId},
    time::Duration,
};

use actix::{
    Actor, ActorContext, Addr, AsyncContext, Context, Handler, Message, Running, fut::wrap_future,
};
use futures::StreamExt;
use rocketmq_actors::{
    Backoff, ChildRef, ChildSpec, ChildState, ErrorKind, EventKind, Exit, Intensity, Liveness,
    Ping, Place, Restart, Scope, Stop, Strategy, Topology, TopologyHandle,
};

use super::harness::*;

/// Writes what happens to it into a diary that all share.
struct Worker {
    name: String,
    diary: Diary,
    scope: Scope,
    handled: usize,
}

#[derive(Debug, Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn write(&self, entry: String) {
        self.0.lock().unwrap().push(entry);
    }

    fn read(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn child(&self, reference: &ChildRef<Worker>) -> ChildSpec {
        let (diary, name) = (self.clone(), reference.name().to_owned());
        ChildSpec::scoped_actor(reference, move |scope| Worker {
            name: name.clone(),
            diary: diary.clone(),
            scope,
            handled: 0,
        })
        .backoff(Backoff::default().jitter(0.0))
    }
}

impl Actor for Worker {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let generation = self.scope.generation();
        self.diary
            .write(format!("{} {generation} starts", self.name));
        ctx.run_later(secs(60), move |worker, _| {
            worker.diary.write(format!("timer of {generation}"));
        });
    }

    fn stopping(&mut self, _: &mut Self::Context) -> Running {
        self.diary.write(format!("{} stops", self.name));
        if self.name == "stubborn" {
            Running::Continue
        } else {
            Running::Stop
        }
    }
}

type Act = Box<dyn FnOnce(&mut Worker, &mut Context<Worker>) + Send>;

/// Does something in the actor; the reply is how many messages its generation has handled.
#[derive(Message)]
#[rtype(result = "usize")]
struct Do(Act);

fn act(act: impl FnOnce(&mut Worker, &mut Context<Worker>) + Send + 'static) -> Do {
    Do(Box::new(act))
}

impl Handler<Do> for Worker {
    type Result = usize;

    fn handle(&mut self, Do(act): Do, ctx: &mut Self::Context) -> usize {
        self.handled += 1;
        act(self, ctx);
        self.handled
    }
}

impl Handler<Ping> for Worker {
    type Result = ();

    fn handle(&mut self, _: Ping, _: &mut Self::Context) {}
}

fn panics() -> Do {
    act(|_, _| panic!("boom"))
}

async fn handled(addr: &Addr<Worker>) -> usize {
    addr.send(act(|_, _| {})).await.unwrap()
}

fn app() -> Topology {
    Topology::named("app").place(Place::Here)
}

async fn alone(diary: &Diary, worker: &ChildRef<Worker>) -> TopologyHandle {
    app().child(diary.child(worker)).start().await.unwrap()
}

#[test]
fn a_restart_makes_the_actor_anew_behind_its_address_and_mailbox() {
    virtually(async {
        let (diary, worker) = (Diary::default(), ChildRef::new("w"));
        let app = alone(&diary, &worker).await;
        let addr = worker.addr().unwrap();
        assert_eq!(handled(&addr).await, 1);
        addr.do_send(panics());
        let queued = (handled(&addr), handled(&addr));
        assert_eq!(futures::join!(queued.0, queued.1), (1, 2), "fresh state");
        let (own, told) = std::sync::mpsc::channel();
        addr.do_send(act(move |_, ctx| own.send(ctx.address()).unwrap()));
        assert_eq!(handled(&addr).await, 4);
        assert_eq!(
            told.recv().unwrap(),
            addr,
            "it knows itself by the same address"
        );
        assert_eq!(worker.addr().unwrap(), addr);
        tokio::time::sleep(secs(120)).await;
        let expected = ["w 1 starts", "w 2 starts", "timer of 2"];
        assert_eq!(diary.read(), expected, "no timer of a dead generation");
        assert_eq!(app.tree().children[0].restarts, 1);
    });
}

#[test]
fn a_flood_of_messages_gives_others_on_the_thread_their_turn() {
    virtually(async {
        let (diary, worker) = (Diary::default(), ChildRef::new("w"));
        let _app = alone(&diary, &worker).await;
        let addr = worker.addr().unwrap();
        let (turn, mut turns) = tokio::sync::mpsc::unbounded_channel();
        for n in 0..1_000 {
            let turn = turn.clone();
            addr.do_send(act(move |_, _| {
                let _ = turn.send(n);
            }));
        }
        let beside = tokio::task::spawn_local(async move {
            assert_eq!(turns.recv().await, Some(0));
            turns.len()
        });
        let meanwhile = beside.await.unwrap();
        assert!(meanwhile < 500, "{meanwhile} were handled at once");
        assert_eq!(handled(&addr).await, 1_001);
    });
}

#[test]
fn children_stop_in_reverse_order_those_added_first() {
    virtually(async {
        let diary = Diary::default();
        let refs = ["a", "b", "c", "d", "late"].map(ChildRef::new);
        let inner = Topology::named("inner")
            .child(diary.child(&refs[1]))
            .child(diary.child(&refs[2]));
        let app = app()
            .child(diary.child(&refs[0]))
            .child(ChildSpec::topology(inner))
            .child(diary.child(&refs[3]));
        let app = app.start().await.unwrap();
        app.add(diary.child(&refs[4])).await.unwrap();
        let starts = ["a", "b", "c", "d", "late"].map(|name| format!("{name} 1 starts"));
        assert_eq!(diary.read(), starts);
        let tree = app.tree();
        let paths = |node: &rocketmq_actors::TreeNode| -> Vec<String> {
            node.children
                .iter()
                .map(|child| child.path.to_string())
                .collect()
        };
        assert_eq!(paths(&tree), ["app/a", "app/inner", "app/d", "app/late"]);
        assert_eq!(paths(&tree.children[1]), ["app/inner/b", "app/inner/c"]);
        assert!(app.stop(secs(5)).await.in_time);
        let stops = ["late", "d", "c", "b", "a"].map(|name| format!("{name} stops"));
        assert_eq!(diary.read(), stops);
    });
}

#[test]
fn a_child_that_does_not_stop_in_its_time_is_dropped_and_named() {
    virtually(async {
        let diary = Diary::default();
        let refs = ["a", "stubborn"].map(ChildRef::new);
        let stop = Stop::Within(secs(3));
        let app = app()
            .child(diary.child(&refs[0]))
            .child(diary.child(&refs[1]).stop(stop));
        let app = app.start().await.unwrap();
        let begun = tokio::time::Instant::now();
        let report = app.stop(secs(5)).await;
        assert_eq!(begun.elapsed().as_secs(), 3);
        let cut_off: Vec<_> = report.cut_off.iter().map(|path| &**path).collect();
        assert_eq!((report.in_time, cut_off), (false, vec!["app/stubborn"]));
        assert!(diary.read().contains(&"a stops".to_owned()));
        assert!(!refs[1].addr().unwrap().connected());
        assert_eq!(app.stop(secs(5)).await, report, "the same again");
    });
}

#[test]
fn children_come_and_go_at_run_time() {
    virtually(async {
        let (diary, fixed, worker) = (Diary::default(), ChildRef::new("f"), ChildRef::new("w"));
        let app = alone(&diary, &fixed).await;
        app.add(diary.child(&worker)).await.unwrap();
        let taken = app.add(diary.child(&worker)).await.unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::InvalidArgument, "{taken}");
        assert_eq!(handled(&worker.addr().unwrap()).await, 1);
        assert!(app.restart("w"));
        assert_eq!(handled(&worker.addr().unwrap()).await, 1, "made anew");
        assert_eq!(app.remove("w").await.unwrap(), Exit::Shutdown);
        let kind = |removed: rocketmq_actors::Result<Exit>| removed.unwrap_err().kind();
        tokio::time::sleep(millis(1)).await;
        assert_eq!(kind(app.remove("w").await), ErrorKind::NotFound);
        assert_eq!(kind(app.remove("f").await), ErrorKind::InvalidArgument);
        let bad = ChildSpec::actor(&ChildRef::<Worker>::new("bad"), || panic!("no"));
        let error = app.add(bad).await.unwrap_err();
        assert!(
            error.to_string().contains("app/bad did not start"),
            "{error}"
        );
        tokio::time::sleep(secs(60)).await;
        assert_eq!(app.tree().children.len(), 1, "it is not tried again");
        app.stop(secs(1)).await;
        let closed = app.add(diary.child(&worker)).await.unwrap_err();
        assert_eq!(closed.kind(), ErrorKind::Closed, "{closed}");
    });
}

#[test]
fn too_many_failures_take_the_tree_down_and_the_handle_says_which() {
    virtually(async {
        let (diary, beside, deep) = (
            Diary::default(),
            ChildRef::new("beside"),
            ChildRef::new("deep"),
        );
        let once = Intensity {
            restarts: 1,
            within: secs(60),
        };
        let never = Intensity {
            restarts: 0,
            within: secs(60),
        };
        let inner = Topology::named("inner")
            .intensity(once)
            .child(diary.child(&deep));
        let app = app()
            .intensity(never)
            .child(diary.child(&beside))
            .child(ChildSpec::topology(inner));
        let app = app.start().await.unwrap();
        let events = app.events();
        deep.addr().unwrap().do_send(panics());
        assert_eq!(handled(&deep.addr().unwrap()).await, 1, "once is allowed");
        deep.addr().unwrap().do_send(panics());
        let error = app.failed().await;
        assert_eq!(error.kind(), ErrorKind::GaveUp);
        assert!(
            error
                .to_string()
                .contains("app/inner/deep gave up: panicked: boom"),
            "{error}"
        );
        assert!(!beside.addr().unwrap().connected(), "all are stopped");
        assert!(matches!(
            app.tree().state,
            ChildState::Stopped(Exit::Failed(_))
        ));
        let gave_up = events.filter_map(|event| async move {
            matches!(event.kind, EventKind::GaveUp { .. }).then(|| event.path.to_string())
        });
        let paths: Vec<_> = gave_up.take(2).collect().await;
        assert_eq!(paths, ["app/inner/deep", "app/inner"]);
    });
}

#[test]
fn what_an_actor_reports_and_a_stop_of_its_own_meet_the_restart_policy() {
    virtually(async {
        let diary = Diary::default();
        let [done, failed] = ["done", "failed"].map(ChildRef::new);
        let app = app()
            .child(diary.child(&done).restart(Restart::Transient))
            .child(diary.child(&failed).restart(Restart::Transient));
        let app = app.start().await.unwrap();
        done.addr().unwrap().do_send(act(|_, ctx| ctx.stop()));
        let fail = |worker: &mut Worker, ctx: &mut Context<Worker>| {
            assert_eq!(&**worker.scope.path(), "app/failed");
            worker.scope.fail(ctx, "no disk");
        };
        failed.addr().unwrap().do_send(act(fail));
        assert_eq!(handled(&failed.addr().unwrap()).await, 1, "restarted");
        let states: Vec<_> = app
            .tree()
            .children
            .into_iter()
            .map(|child| child.state)
            .collect();
        assert_eq!(
            states,
            [ChildState::Stopped(Exit::Normal), ChildState::Running]
        );
    });
}

#[test]
fn siblings_are_restarted_as_the_strategy_says() {
    virtually(async {
        let diary = Diary::default();
        let refs = ["a", "b", "c"].map(ChildRef::new);
        let mut app = app().strategy(Strategy::RestForOne);
        for reference in &refs {
            app = app.child(diary.child(reference));
        }
        let app = app.start().await.unwrap();
        refs[1].addr().unwrap().do_send(panics());
        assert_eq!(handled(&refs[1].addr().unwrap()).await, 1);
        assert_eq!(handled(&refs[2].addr().unwrap()).await, 1);
        let restarts: Vec<_> = app
            .tree()
            .children
            .iter()
            .map(|child| child.restarts)
            .collect();
        assert_eq!(restarts, [0, 1, 1]);
        app.stop(secs(1)).await;
    });
}

#[test]
fn an_actor_that_does_not_answer_is_restarted() {
    virtually(async {
        let (diary, worker) = (Diary::default(), ChildRef::new("w"));
        let liveness = Liveness {
            every: secs(1),
            within: secs(2),
        };
        let child = diary.child(&worker).liveness(&worker, liveness);
        let app = app().child(child).start().await.unwrap();
        let mut events = app.events();
        let addr = worker.addr().unwrap();
        addr.do_send(act(|_, ctx| ctx.wait(wrap_future(std::future::pending()))));
        assert_eq!(handled(&addr).await, 1);
        let silent = events.next().await.unwrap();
        assert_eq!(silent.kind, EventKind::Unresponsive { within: secs(2) });
        let event = events.next().await.unwrap();
        let EventKind::Restarting { cause, .. } = event.kind else {
            panic!("{event:?}");
        };
        assert_eq!(cause, Exit::Unresponsive);
    });
}

#[test]
fn a_dropped_start_is_undone() {
    virtually(async {
        let (diary, worker) = (Diary::default(), ChildRef::new("w"));
        {
            let mut start = std::pin::pin!(app().child(diary.child(&worker)).start());
            let begun = std::future::poll_fn(|cx| Poll::Ready(start.as_mut().poll(cx))).await;
            assert!(begun.is_pending());
        }
        tokio::time::sleep(secs(10)).await;
        assert!(worker.addr().is_none_or(|addr| !addr.connected()));
    });
}

#[test]
fn an_own_place_is_another_thread_and_ends_with_the_actor() {
    actix::System::new().block_on(async {
        let diary = Diary::default();
        let [here, there] = ["here", "there"].map(ChildRef::new);
        let app = Topology::named("app")
            .child(diary.child(&here))
            .child(diary.child(&there).place(Place::Own));
        let app = app.start().await.unwrap();
        assert_eq!(thread_of(&here).await, thread::current().id());
        let other = thread_of(&there).await;
        assert_ne!(other, thread::current().id());
        there.addr().unwrap().do_send(panics());
        assert_eq!(thread_of(&there).await, other, "a restart stays there");
        assert!(app.stop(Duration::from_secs(5)).await.in_time);
        assert!(!there.addr().unwrap().connected());
    });
}

async fn thread_of(worker: &ChildRef<Worker>) -> ThreadId {
    let (tell, told) = tokio::sync::oneshot::channel();
    let addr = worker.addr().unwrap();
    addr.do_send(act(move |_, _| tell.send(thread::current().id()).unwrap()));
    told.await.unwrap()
}
