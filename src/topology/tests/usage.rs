//! How the actors of this crate use supervision: spec and state are two structs.

use std::{cell::Cell, rc::Rc, sync::Arc, time::Duration};

use actix::{Actor, Context, Handler, Message, Supervised};

use super::{cast::spec_of, probe::on_arbiter};
use crate::topology::{
    Exit, Place, Strategy,
    child_ref::ChildRef,
    group::{Group, GroupSpec},
    scope::Scope,
    supervisor::ChildPolicy,
    tasks::Tasks,
};

struct Spec {
    period: Duration,
}

struct State {
    _tasks: Tasks,
    beats: Rc<Cell<u32>>,
}

impl State {
    fn new(spec: &Spec, scope: &Scope) -> Self {
        let (tasks, beats) = (scope.tasks(), Rc::new(Cell::new(0)));
        let counted = Rc::clone(&beats);
        tasks.every(spec.period, spec.period, move || {
            counted.set(counted.get() + 1);
            async {}
        });
        Self {
            _tasks: tasks,
            beats,
        }
    }
}

struct Session {
    spec: Arc<Spec>,
    scope: Scope,
    state: State,
}

impl Session {
    fn new(spec: Arc<Spec>, scope: Scope) -> Self {
        let state = State::new(&spec, &scope);
        Self { spec, scope, state }
    }
}

impl Actor for Session {
    type Context = Context<Self>;
}

impl Supervised for Session {
    fn restarting(&mut self, _: &mut Context<Self>) {
        self.state = State::new(&self.spec, &self.scope);
    }
}

#[derive(Message)]
#[rtype(result = "u32")]
struct Beats;

impl Handler<Beats> for Session {
    type Result = u32;

    fn handle(&mut self, _: Beats, ctx: &mut Context<Self>) -> u32 {
        let beats = self.state.beats.get();
        if beats == 3 {
            self.scope.fail(ctx, "three are enough");
        }
        beats
    }
}

#[tokio::test(start_paused = true)]
async fn an_actor_with_spec_state_and_timer_lives_in_a_group() {
    on_arbiter(async {
        let second = Duration::from_secs(1);
        let spec = Arc::new(Spec { period: second });
        let session = ChildRef::new("session");
        let build = move |scope| Session::new(Arc::clone(&spec), scope);
        let children = vec![spec_of(&session, Place::Here, build)];
        let group = GroupSpec {
            strategy: Strategy::RestForOne,
            children,
            ..GroupSpec::default()
        };
        let policy = ChildPolicy::default();
        let live = policy.live.clone();
        let group = Group::root(&Place::Here, "member", policy, group);
        group.up().await.unwrap();
        let addr = session.addr().unwrap();
        tokio::time::sleep(second * 7 / 2).await;
        assert_eq!(addr.send(Beats).await, Ok(3));
        assert_eq!(addr.send(Beats).await, Ok(0), "the next generation");
        assert_eq!(live.tasks(), 1);
        assert_eq!(group.stop(second).await, Some(Exit::Shutdown));
        assert_eq!((live.actors(), live.tasks()), (0, 0));
    })
    .await;
}
