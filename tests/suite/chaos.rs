//! Messages flow through a consumer, three stages of actors and a producer while all of them crash
//! at random, wherever they can: each has its effect, and nothing is left behind.
//!
//! `CHAOS_MESSAGES` sets how many, 3,000 by default, and `CHAOS_SEED` what crashes when.

use std::{
    collections::BTreeSet,
    panic::resume_unwind,
    sync::{Arc, Mutex},
};

use actix::{
    Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, MessageResult, ResponseActFuture,
    SyncArbiter, SyncContext, WrapFuture,
};
use bytes::Bytes;
use rocketmq_actors::{
    ChildRef, ChildSpec, Deliver, Filter, Intensity, MemberRef, Message, Outcome, Place, Producer,
    ProducerSpec, PushConsumer, PushConsumerSpec, Scope, Topology, TopologyHandle,
};
use rocketmq_embedded::TopicConfig;

use super::harness::*;

const CONCURRENCY: usize = 8;
const STAGES: [&str; 3] = ["check", "price", "publish"];

/// Where in a stage a panic can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot {
    Handler,
    Task,
    Timer,
    PoolThread,
    /// Of the generation that a crash of a handler brings about.
    Making,
    Started,
}

const SPOTS: [Spot; 6] = [
    Spot::Handler,
    Spot::Task,
    Spot::Timer,
    Spot::PoolThread,
    Spot::Making,
    Spot::Started,
];

/// Where the next panic of a stage is. Each happens once.
#[derive(Debug, Clone, Default)]
struct Fuse(Arc<Mutex<Option<Spot>>>);

impl Fuse {
    fn light(&self, spot: Spot) {
        *self.0.lock().unwrap() = Some(spot);
    }

    fn take(&self, spot: Spot) -> bool {
        self.0.lock().unwrap().take_if(|lit| *lit == spot).is_some()
    }

    fn blow_at(&self, spot: Spot) {
        if self.take(spot) {
            blow();
        }
    }
}

/// Panics without a message on the terminal.
fn blow() -> ! {
    resume_unwind(Box::new("chaos"))
}

/// Where a stage hands its result.
#[derive(Clone)]
enum Next {
    Stage(ChildRef<Stage>),
    Topic(MemberRef<Producer>),
}

impl Next {
    async fn take(self, payload: Bytes) -> Outcome {
        match self {
            Self::Stage(stage) => {
                let asked = stage.ready().await.send(Work(payload)).await;
                asked.unwrap_or(Outcome::Retry)
            }
            Self::Topic(out) => {
                tokio::time::sleep(millis(200)).await;
                let message = Message::builder("out").body(payload).build();
                let sent = async { out.ready().await.send(message?).await };
                sent.await.map_or(Outcome::Retry, |_| Outcome::Ack)
            }
        }
    }
}

#[derive(actix::Message)]
#[rtype(result = "Outcome")]
struct Work(Bytes);

/// What a thread of a pool is done with.
#[derive(actix::Message)]
#[rtype(result = "Bytes")]
struct Done(Bytes);

/// One of the three; each has a pool of threads.
struct Stage {
    scope: Scope,
    pool: Addr<Pool>,
    next: Next,
    fuse: Fuse,
}

impl Stage {
    fn new(scope: Scope, next: Next, fuse: Fuse) -> Self {
        fuse.blow_at(Spot::Making);
        let of_pool = fuse.clone();
        Self {
            scope,
            pool: SyncArbiter::start(1, move || Pool(of_pool.clone())),
            next,
            fuse,
        }
    }
}

impl Actor for Stage {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        self.fuse.blow_at(Spot::Started);
    }
}

impl Handler<Work> for Stage {
    type Result = ResponseActFuture<Self, Outcome>;

    fn handle(&mut self, work: Work, ctx: &mut Self::Context) -> Self::Result {
        self.fuse.blow_at(Spot::Handler);
        if self.fuse.take(Spot::Task) {
            ctx.spawn(async { blow() }.into_actor(self));
        }
        if self.fuse.take(Spot::Timer) {
            ctx.run_later(millis(1), |_, _| blow());
        }
        let (done, next) = (self.pool.send(Done(work.0)), self.next.clone());
        let handled = async move { Some(next.take(done.await.ok()?).await) };
        let handled = handled.into_actor(self).map(|outcome, stage, ctx| {
            if outcome.is_none() {
                stage.scope.fail(ctx, "a thread of its pool is lost");
            }
            outcome.unwrap_or(Outcome::Retry)
        });
        Box::pin(handled)
    }
}

impl Handler<Deliver> for Stage {
    type Result = ResponseActFuture<Self, Outcome>;

    fn handle(&mut self, order: Deliver, ctx: &mut Self::Context) -> Self::Result {
        self.handle(Work(order.payload), ctx)
    }
}

#[derive(actix::Message)]
#[rtype(result = "()")]
struct Crash;

impl Handler<Crash> for Stage {
    type Result = ();

    fn handle(&mut self, _: Crash, _: &mut Self::Context) {
        blow();
    }
}

/// A thread of a stage's pool.
struct Pool(Fuse);

impl Actor for Pool {
    type Context = SyncContext<Self>;
}

impl Handler<Done> for Pool {
    type Result = MessageResult<Done>;

    fn handle(&mut self, done: Done, _: &mut Self::Context) -> Self::Result {
        self.0.blow_at(Spot::PoolThread);
        MessageResult(done.0)
    }
}

struct Pipeline {
    app: TopologyHandle,
    stages: Vec<(ChildRef<Stage>, Fuse)>,
    input: MemberRef<PushConsumer>,
    out: MemberRef<Producer>,
}

impl Pipeline {
    async fn start(broker: &Checked) -> Self {
        let out = MemberRef::<Producer>::new("out");
        let input = MemberRef::<PushConsumer>::new("in");
        let stages = STAGES.map(|name| (ChildRef::<Stage>::new(name), Fuse::default()));
        let consumer = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .concurrency(CONCURRENCY)
            .max_cached_messages(32)
            .handler(stages[0].0.deliver())
            .build()
            .unwrap();
        let producer = ProducerSpec::builder().topic("out").build().unwrap();
        let client = client(broker);
        let often = Intensity {
            restarts: 100,
            within: secs(60),
        };
        let mut app = Topology::named("app")
            .place(Place::Here)
            .intensity(often)
            .child(ChildSpec::member(&out, &client, producer));
        for at in (0..stages.len()).rev() {
            let (stage, fuse) = stages[at].clone();
            let next = match stages.get(at + 1) {
                Some((next, _)) => Next::Stage(next.clone()),
                None => Next::Topic(out.clone()),
            };
            let make = move |scope| Stage::new(scope, next.clone(), fuse.clone());
            app = app.child(ChildSpec::scoped_actor(&stage, make));
        }
        let app = app.child(ChildSpec::member(&input, &client, consumer));
        Self {
            app: app.start().await.unwrap(),
            stages: stages.to_vec(),
            input,
            out,
        }
    }

    async fn crash(&self, rng: &mut fastrand::Rng) {
        match rng.usize(0..10) {
            0..=2 => self.crash_stage(rng).await,
            which @ 3..=6 => {
                let actor = ["routes", "consumer", "session", "queue"][which - 3];
                self.input.ready().await.crash(actor);
            }
            which => {
                let actor = ["routes", "producer", "session"][which - 7];
                self.out.ready().await.crash(actor);
            }
        }
    }

    async fn crash_stage(&self, rng: &mut fastrand::Rng) {
        let (stage, fuse) = &self.stages[rng.usize(0..self.stages.len())];
        let spot = SPOTS[rng.usize(0..SPOTS.len())];
        fuse.light(spot);
        if matches!(spot, Spot::Making | Spot::Started) {
            stage.ready().await.do_send(Crash);
        }
    }

    /// Nobody is left, and no permit.
    async fn ends_clean(self) {
        let mut health = self.app.health();
        health.wait_for(|health| health.ready).await.unwrap();
        let (input, out) = (self.input.ready().await, self.out.ready().await);
        let tree = self.app.tree().to_string();
        let running = |line: &str| line.contains("running");
        assert!(tree.lines().all(running), "{tree}");
        assert!(self.app.stop(secs(60)).await.in_time);
        let (consumer, producer) = (input.stats(), out.stats());
        assert_eq!(
            (consumer.tasks, consumer.actors, consumer.cached_messages),
            (0, 0, 0),
            "{consumer:?}"
        );
        assert_eq!(
            (producer.tasks, producer.actors, producer.in_flight_messages),
            (0, 0, 0),
            "{producer:?}"
        );
    }
}

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |number| number.parse().unwrap())
}

#[test]
#[allow(clippy::print_stdout, reason = "figures for who runs it by hand")]
fn every_message_has_its_effect_while_everything_crashes_at_random() {
    let messages = number("CHAOS_MESSAGES", 3_000);
    let seed = number("CHAOS_SEED", 4) as u64;
    virtually_in_a_system(async {
        let broker = broker(|builder| builder.nodes(2).without_record()).await;
        broker.create_topic("t", TopicConfig::normal(2));
        broker.create_topic("out", TopicConfig::normal(2));
        store_numbered(&broker, "t", messages).await;
        let pipeline = Pipeline::start(&broker).await;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut crashes = 0;
        let effects = || -> BTreeSet<_> {
            let sent = broker.messages("out").into_iter();
            sent.map(|stored| stored.message.body.to_vec()).collect()
        };
        while effects().len() < messages {
            tokio::time::sleep(millis(rng.u64(1_000..6_000))).await;
            pipeline.crash(&mut rng).await;
            crashes += 1;
        }
        assert!(crashes > 5, "{crashes}");
        let twice = broker.messages("out").len() - messages;
        assert!(
            twice <= crashes * CONCURRENCY,
            "only what was in flight at a crash: {twice} by {crashes} crashes"
        );
        let tree = pipeline.app.tree();
        println!("{messages} messages, {crashes} crashes, {twice} twice\n{tree}");
        pipeline.ends_clean().await;
    });
}
