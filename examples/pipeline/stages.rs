//! The pipeline: a consumer, three stages of actors, and a producer, in one topology.
//!
//! ```text
//! topic "orders" ─▶ consumer ─▶ Check ─▶ Pricing ─▶ Publish ─▶ producer ─▶ topic "invoices"
//!                       ▲        actor   SyncArbiter  actor        │
//!                       └────────────── Outcome ◀──────────────────┘
//! ```
//!
//! Each stage asks the next and answers with what that answers. So the outcome of a delivery is
//! known only when its invoice is stored, and until then it holds one of the consumer's permits:
//! a slow last stage slows the consumer down, and nothing is buffered beyond its limits.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use actix::{
    Actor, ActorFutureExt, Addr, Context, Handler, Message, ResponseActFuture, ResponseFuture,
    SyncArbiter, SyncContext, WrapFuture,
};
use rocketmq_actors::{
    ChildRef, ChildSpec, Client, Deliver, Error, Filter, Intensity, MemberRef, Message as Invoice,
    Outcome, Producer, ProducerSpec, PushConsumer, PushConsumerSpec, Scope, Strategy, Text,
    Topology,
};

/// What sets one pipeline apart from another.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) orders: &'static str,
    pub(crate) invoices: &'static str,
    pub(crate) group: &'static str,
    /// Orders between the first stage and the last.
    pub(crate) concurrency: usize,
    /// Orders received and not settled, the above included.
    pub(crate) max_cached_messages: usize,
    /// Work that blocks its thread, of the stage in the middle: an order's invoice.
    pub(crate) price: fn(&str) -> String,
    /// How many restarts within which time are worth trying.
    pub(crate) intensity: Intensity,
}

/// The names under which the parts of a pipeline are found.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) consumer: MemberRef<PushConsumer>,
    pub(crate) producer: MemberRef<Producer>,
    pub(crate) in_flight: InFlight,
}

/// The whole of it: the producer is started first, and the consumer is stopped first.
pub(crate) fn pipeline(client: &Client, plan: &Plan) -> Result<(Topology, Parts), Error> {
    let check = ChildRef::<Check>::new("check");
    let (pricing, publish) = (ChildRef::new("pricing"), ChildRef::new("publish"));
    let parts = Parts {
        consumer: MemberRef::new("orders"),
        producer: MemberRef::new("invoices"),
        in_flight: InFlight::default(),
    };
    let producer = ProducerSpec::builder().topic(plan.invoices).build()?;
    let consumer = PushConsumerSpec::builder(plan.group)
        .subscribe(plan.orders, Filter::any())
        .concurrency(plan.concurrency)
        .max_cached_messages(plan.max_cached_messages)
        .handler(check.deliver_as(Text))
        .build()?;

    // A restart calls these again: they make all state anew.
    let (topic, out) = (plan.invoices, parts.producer.clone());
    let make_publish = move || Publish {
        topic,
        out: out.clone(),
    };
    let (price, next) = (plan.price, publish.clone());
    let make_pricing = move |scope| Pricing::new(scope, price, next.clone());
    let (next, in_flight) = (pricing.clone(), parts.in_flight.clone());
    let make_check = move || Check {
        next: next.clone(),
        in_flight: in_flight.clone(),
    };

    let stages = Topology::named("stages")
        .strategy(Strategy::OneForOne)
        .intensity(plan.intensity)
        .child(ChildSpec::actor(&publish, make_publish).needs(&parts.producer))
        .child(ChildSpec::scoped_actor(&pricing, make_pricing).needs(&publish))
        .child(ChildSpec::actor(&check, make_check).needs(&pricing));
    let topology = Topology::named("pipeline")
        .intensity(plan.intensity)
        .child(ChildSpec::member(&parts.producer, client, producer))
        .child(ChildSpec::topology(stages))
        .child(ChildSpec::member(&parts.consumer, client, consumer));
    Ok((topology, parts))
}

/// An order on its way to its price.
#[derive(Message)]
#[rtype(result = "Outcome")]
struct Order(String);

/// The first stage: what makes no sense goes no further.
struct Check {
    next: ChildRef<Pricing>,
    in_flight: InFlight,
}

impl Actor for Check {
    type Context = Context<Self>;
}

impl Handler<Deliver<String>> for Check {
    type Result = ResponseFuture<Outcome>;

    fn handle(&mut self, order: Deliver<String>, _: &mut Self::Context) -> Self::Result {
        let (next, counted) = (self.next.clone(), self.in_flight.enter());
        Box::pin(async move {
            if order.payload.is_empty() {
                return Outcome::dead_letter("an order without content");
            }
            let asked = next.ready().await.send(Order(order.payload)).await;
            drop(counted);
            // No answer: the stage crashed over it. The order comes again.
            asked.unwrap_or(Outcome::Retry)
        })
    }
}

/// The second stage: supervised, with a pool of threads for what blocks.
///
/// A thread of a `SyncArbiter` that panics is gone for good. So the stage then reports that it
/// has failed, and its restart makes a pool with all threads.
struct Pricing {
    scope: Scope,
    pool: Addr<Pricer>,
    next: ChildRef<Publish>,
}

impl Pricing {
    const THREADS: usize = 2;

    fn new(scope: Scope, price: fn(&str) -> String, next: ChildRef<Publish>) -> Self {
        let pool = SyncArbiter::start(Self::THREADS, move || Pricer(price));
        Self { scope, pool, next }
    }
}

impl Actor for Pricing {
    type Context = Context<Self>;
}

impl Handler<Order> for Pricing {
    /// Part of the actor's context: a restart drops it, and with it what came late.
    type Result = ResponseActFuture<Self, Outcome>;

    fn handle(&mut self, order: Order, _: &mut Self::Context) -> Self::Result {
        let (priced, next) = (self.pool.send(Price(order.0)), self.next.clone());
        let handled = async move {
            let invoice = priced.await.ok()?;
            let stored = next.ready().await.send(Priced(invoice)).await;
            Some(stored.unwrap_or(Outcome::Retry))
        };
        let handled = handled.into_actor(self).map(|outcome, stage, ctx| {
            if outcome.is_none() {
                stage.scope.fail(ctx, "a thread of its pool is lost");
            }
            outcome.unwrap_or(Outcome::Retry)
        });
        Box::pin(handled)
    }
}

/// One thread of the pool.
struct Pricer(fn(&str) -> String);

impl Actor for Pricer {
    type Context = SyncContext<Self>;
}

#[derive(Message)]
#[rtype(result = "String")]
struct Price(String);

impl Handler<Price> for Pricer {
    type Result = String;

    fn handle(&mut self, order: Price, _: &mut Self::Context) -> String {
        (self.0)(&order.0)
    }
}

/// The last stage: it answers when the invoice is stored.
struct Publish {
    topic: &'static str,
    out: MemberRef<Producer>,
}

impl Actor for Publish {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "Outcome")]
struct Priced(String);

impl Handler<Priced> for Publish {
    type Result = ResponseFuture<Outcome>;

    fn handle(&mut self, priced: Priced, _: &mut Self::Context) -> Self::Result {
        let (topic, out) = (self.topic, self.out.clone());
        Box::pin(async move {
            let invoice = Invoice::builder(topic).body(priced.0).build();
            let sent = async { out.ready().await.send(invoice?).await };
            sent.await.map_or(Outcome::Retry, |_| Outcome::Ack)
        })
    }
}

/// How many orders are within the stages, and how many were at most.
#[derive(Clone, Default)]
pub(crate) struct InFlight(Arc<[AtomicUsize; 2]>);

impl InFlight {
    pub(crate) fn now(&self) -> usize {
        self.0[0].load(Ordering::Acquire)
    }

    pub(crate) fn most(&self) -> usize {
        self.0[1].load(Ordering::Acquire)
    }

    fn enter(&self) -> Inside {
        let now = self.0[0].fetch_add(1, Ordering::AcqRel) + 1;
        self.0[1].fetch_max(now, Ordering::AcqRel);
        Inside(self.clone())
    }
}

/// Counts as one until dropped.
struct Inside(InFlight);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0[0].fetch_sub(1, Ordering::AcqRel);
    }
}
