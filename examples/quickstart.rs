//! The main job in one process: a broker, a producer, and two consumers of one group.
//!
//! `cargo run --example quickstart`
//!
//! 1,000 orders are sent. One consumer handles them with an async closure, the other with an
//! actor. Every 50th fails once and comes again; one can never be handled and is dead-lettered.
//! At the end the counts of the handlers are compared with those of the broker.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks to its user"
)]

use std::{
    collections::HashSet,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use actix::{Actor, Context, Handler};
use rocketmq_actors::{
    Client, ClientConfig, Deliver, Delivery, Error, Filter, Message, Outcome, ProducerSpec,
    PushConsumer, PushConsumerSpec, Tls,
};
use rocketmq_embedded::{Backoff, EmbeddedBroker, GroupConfig, TopicConfig};

const ORDERS: usize = 1_000;
/// One in so many fails at its first handling.
const FAILS: usize = 50;
/// This one has no amount.
const HOPELESS: &str = "order 777";

/// What the handlers saw.
#[derive(Debug, Default)]
struct Counts {
    by_closure: usize,
    by_actor: usize,
    failed: HashSet<String>,
    dead: usize,
}

type Shared = Arc<Mutex<Counts>>;

/// What both handlers do.
fn handle(counts: &Shared, delivery: &Delivery, count: fn(&mut Counts) -> &mut usize) -> Outcome {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let body = String::from_utf8_lossy(delivery.body());
    if body == HOPELESS {
        counts.dead += 1;
        return Outcome::dead_letter("it has no amount");
    }
    let number: usize = body.trim_start_matches("order ").parse().unwrap_or(0);
    if number.is_multiple_of(FAILS) && counts.failed.insert(delivery.message_id().to_owned()) {
        return Outcome::Retry;
    }
    *count(&mut counts) += 1;
    Outcome::Ack
}

/// An actor as handler: it handles one delivery after the other, with its own state.
struct Ledger(Shared);

impl Actor for Ledger {
    type Context = Context<Self>;
}

impl Handler<Deliver> for Ledger {
    type Result = Outcome;

    fn handle(&mut self, message: Deliver, _: &mut Self::Context) -> Outcome {
        handle(&self.0, &message.delivery, |counts| &mut counts.by_actor)
    }
}

#[actix::main]
async fn main() -> ExitCode {
    let started = Instant::now();
    match run().await {
        Ok(true) => {
            println!("\nAll of it in {:.1?}. Read on:", started.elapsed());
            println!("  examples/push_consumer.rs and producer.rs    against a server of yours");
            println!("  docs/semantics.md                            what you can rely on");
            println!("  ARCHITECTURE.md                              how it works");
            ExitCode::SUCCESS
        }
        Ok(false) => {
            eprintln!("\nThe handlers and the broker disagree.");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let broker = EmbeddedBroker::start().await?;
    broker.create_topic("orders", TopicConfig::normal(4));
    let soon = Backoff::Custom(vec![Duration::from_millis(200)]);
    broker.create_group("billing", GroupConfig::default().backoff(soon));

    let client = Client::new(
        ClientConfig::builder(broker.endpoints())
            .tls(Tls::Off)
            .build()?,
    );
    let producer = client
        .start(ProducerSpec::builder().topic("orders").build()?)
        .await?;
    let counts = Shared::default();
    let consumers = [
        client.start(by_closure(&counts)?).await?,
        client.start(by_actor(&counts)?).await?,
    ];

    let orders = (0..ORDERS).map(|number| {
        Message::builder("orders")
            .body(format!("order {number}"))
            .key(number.to_string())
            .build()
    });
    let mut sent = 0;
    for receipt in producer
        .send_all(orders.collect::<Result<Vec<_>, Error>>()?)
        .await
    {
        receipt?;
        sent += 1;
    }

    // Every order is acknowledged once, but for the dead letter.
    let settled =
        broker.wait_for(|_| broker.acks().len() + broker.dead_letters("billing").len() >= ORDERS);
    if tokio::time::timeout(Duration::from_secs(30), settled)
        .await
        .is_err()
    {
        eprintln!("not everything was settled in time");
    }
    let drains = consumers
        .iter()
        .map(|consumer| consumer.shutdown(Duration::from_secs(5)));
    futures::future::join_all(drains).await;
    producer.shutdown(Duration::from_secs(5)).await;
    Ok(agree(sent, &counts, &consumers, &broker))
}

fn by_closure(counts: &Shared) -> Result<PushConsumerSpec, Error> {
    let counts = counts.clone();
    PushConsumerSpec::builder("billing")
        .subscribe("orders", Filter::any())
        .handler(move |delivery: Delivery| {
            let counts = counts.clone();
            async move { handle(&counts, &delivery, |counts| &mut counts.by_closure) }
        })
        .build()
}

fn by_actor(counts: &Shared) -> Result<PushConsumerSpec, Error> {
    let ledger = Ledger(counts.clone()).start();
    PushConsumerSpec::builder("billing")
        .subscribe("orders", Filter::any())
        .handler(ledger.recipient())
        .build()
}

/// Prints both sides' counts; whether they agree.
fn agree(
    sent: usize,
    counts: &Shared,
    consumers: &[PushConsumer],
    broker: &EmbeddedBroker,
) -> bool {
    let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let stored = broker.messages("orders").len();
    let repeated = broker
        .deliveries()
        .iter()
        .filter(|delivery| delivery.attempt > 1)
        .count();
    let retried: u64 = consumers
        .iter()
        .map(|consumer| consumer.stats().retried)
        .sum();
    let handled = counts.by_closure + counts.by_actor;
    let rows = [
        ("sent, stored", sent, stored),
        ("handled, acknowledged", handled, broker.acks().len()),
        (
            "failed once, delivered again",
            counts.failed.len(),
            repeated,
        ),
        (
            "dead-lettered",
            counts.dead,
            broker.dead_letters("billing").len(),
        ),
    ];
    println!("{:<30} {:>9} {:>9}", "", "handlers", "broker");
    for (what, ours, theirs) in rows {
        println!("{what:<30} {ours:>9} {theirs:>9}");
    }
    println!(
        "\nby the closure {}, by the actor {}",
        counts.by_closure, counts.by_actor
    );
    rows.iter().all(|(_, ours, theirs)| ours == theirs)
        && (sent, handled, counts.dead) == (ORDERS, ORDERS - 1, 1)
        && u64::try_from(counts.failed.len()).is_ok_and(|failed| failed == retried)
}
