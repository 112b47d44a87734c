//! An actor that does what a test tells it, and keeps a diary.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use actix::{Actor, Addr, Context, Handler, Message, Running, Supervised};
use tokio::{sync::watch, task::LocalSet};

use crate::topology::{
    Backoff, Intensity, Place,
    liveness::Ping,
    scope::Scope,
    supervisor::{Child, ChildPolicy, supervise},
    tasks::Tasks,
};

pub(super) type Act = Arc<dyn Fn(&mut Probe, &mut Context<Probe>) + Send + Sync>;

/// What survives restarts: the diary, and what to do in which hook.
#[derive(Clone, Default)]
pub(super) struct Script {
    diary: Arc<Mutex<Vec<&'static str>>>,
    hooks: HashMap<&'static str, Act>,
    pub(super) linger: bool,
}

impl Script {
    pub(super) fn on<F>(mut self, hook: &'static str, act: F) -> Self
    where
        F: Fn(&mut Probe, &mut Context<Probe>) + Send + Sync + 'static,
    {
        self.hooks.insert(hook, Arc::new(act));
        self
    }

    pub(super) fn hook(&self, hook: &str) -> Option<Act> {
        self.hooks.get(hook).cloned()
    }

    /// Refuses to stop when asked.
    pub(super) fn lingers(mut self) -> Self {
        self.linger = true;
        self
    }

    pub(super) fn diary(&self) -> Vec<&'static str> {
        self.diary.lock().unwrap().clone()
    }

    pub(super) fn count(&self, word: &str) -> usize {
        self.diary().iter().filter(|entry| **entry == word).count()
    }

    pub(super) fn write(&self, word: &'static str) {
        self.diary.lock().unwrap().push(word);
    }

    pub(super) fn start(&self, place: &Place, policy: ChildPolicy) -> Child<Probe> {
        let script = self.clone();
        supervise(place, "probe", policy, move |ctx, scope| {
            let mut probe = Probe::new(script, scope);
            probe.hook("build", ctx);
            probe
        })
    }

    pub(super) fn start_here(&self, policy: ChildPolicy) -> Child<Probe> {
        self.start(&Place::Here, policy)
    }
}

pub(super) struct Probe {
    pub(super) script: Script,
    pub(super) scope: Scope,
    pub(super) tasks: Tasks,
    pub(super) handled: usize,
    dropped: DropHook,
}

struct DropHook(Option<Act>);

impl Probe {
    pub(super) fn new(script: Script, scope: Scope) -> Self {
        let dropped = DropHook(script.hooks.get("drop").cloned());
        let tasks = scope.tasks();
        Self {
            script,
            scope,
            tasks,
            handled: 0,
            dropped,
        }
    }

    fn hook(&mut self, name: &'static str, ctx: &mut Context<Self>) {
        self.script.write(name);
        if let Some(act) = self.script.hooks.get(name).cloned() {
            act(self, ctx);
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.script.write("dropped");
        if self.dropped.0.is_some() {
            panic!("panic in drop");
        }
    }
}

impl Actor for Probe {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.hook("started", ctx);
    }

    fn stopping(&mut self, ctx: &mut Self::Context) -> Running {
        self.hook("stopping", ctx);
        if self.script.linger {
            Running::Continue
        } else {
            Running::Stop
        }
    }

    fn stopped(&mut self, ctx: &mut Self::Context) {
        self.hook("stopped", ctx);
    }
}

impl Supervised for Probe {
    fn restarting(&mut self, ctx: &mut Self::Context) {
        self.tasks = self.scope.tasks();
        self.handled = 0;
        self.hook("restarting", ctx);
    }
}

impl Handler<Ping> for Probe {
    type Result = ();

    fn handle(&mut self, _: Ping, _: &mut Self::Context) {}
}

/// Runs a closure in the actor; the reply is how many messages this generation has handled.
pub(super) struct Do(Act);

impl Message for Do {
    type Result = usize;
}

impl Handler<Do> for Probe {
    type Result = usize;

    fn handle(&mut self, Do(act): Do, ctx: &mut Self::Context) -> usize {
        self.handled += 1;
        act(self, ctx);
        self.handled
    }
}

pub(super) fn act<F>(act: F) -> Do
where
    F: Fn(&mut Probe, &mut Context<Probe>) + Send + Sync + 'static,
{
    Do(Arc::new(act))
}

pub(super) fn nothing() -> Do {
    act(|_, _| {})
}

pub(super) fn panics() -> Do {
    act(|_, _| panic!("boom"))
}

/// Blocks the actor's thread until the value that is returned is dropped.
pub(super) async fn block(addr: &Addr<Probe>) -> mpsc::Sender<()> {
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    let (reached, mut blocks) = watch::channel(false);
    addr.do_send(act(move |_, _| {
        reached.send_replace(true);
        let _ = blocked.lock().unwrap().recv();
    }));
    blocks.wait_for(|blocks| *blocks).await.unwrap();
    release
}

/// Restarts up to `restarts` times, after exactly 100 ms, 200 ms, ….
pub(super) fn policy(restarts: u32) -> ChildPolicy {
    ChildPolicy {
        intensity: Intensity {
            restarts,
            within: Duration::from_secs(60),
        },
        backoff: Backoff::default().jitter(0.0),
        ..ChildPolicy::default()
    }
}

/// Runs a test as an arbiter would.
pub(super) async fn on_arbiter<F: Future>(test: F) -> F::Output {
    LocalSet::new().run_until(test).await
}

/// Asks until the actor answers: it is up.
pub(super) async fn handled(addr: &Addr<Probe>) -> usize {
    addr.send(nothing()).await.unwrap()
}
