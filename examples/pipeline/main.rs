//! Orders in, invoices out, through three stages of actors, with back-pressure from end to end.
//!
//! ```text
//! cargo run --example pipeline                                      # with a broker of its own
//! cargo run --example pipeline -- --endpoints 127.0.0.1:8081        # or with yours
//! ```
//!
//! A server of yours needs the empty topics `orders` and `invoices`, and in local mode the group
//! `pricing`. Ends with 0 when what came out is what went in, and no more was under way than the
//! limits allow. How it works is in `stages.rs`.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use std::{process::ExitCode, thread, time::Duration};

use rocketmq_actors::{
    Client, ClientConfig, Intensity, MemberReport, Message, ProducerSpec, Tls, TopologyHandle,
};
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use tokio::time::{Instant, sleep, timeout};

mod stages;

use stages::{Parts, Plan};

const ORDERS: usize = 1_000;
const LIMIT: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn plan() -> Plan {
    Plan {
        orders: "orders",
        invoices: "invoices",
        group: "pricing",
        concurrency: 16,
        max_cached_messages: 64,
        price: |order| {
            // Some work that blocks.
            thread::sleep(Duration::from_millis(1));
            format!("invoice of {order}")
        },
        intensity: Intensity::default(),
    }
}

#[actix::main]
async fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let endpoints = match (args.next().as_deref(), args.next()) {
        (None, _) => None,
        (Some("--endpoints"), Some(endpoints)) => Some(endpoints),
        _ => {
            println!("usage: pipeline [--endpoints HOST:PORT]");
            return ExitCode::from(2);
        }
    };
    match run(endpoints).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            println!("These figures do not agree.");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(endpoints: Option<String>) -> Outcome<bool> {
    let plan = plan();
    let (endpoints, broker) = match endpoints {
        Some(endpoints) => (endpoints, None),
        None => {
            let broker = EmbeddedBroker::start().await?;
            broker.create_topic(plan.orders, TopicConfig::normal(4));
            broker.create_topic(plan.invoices, TopicConfig::normal(4));
            (broker.endpoints(), Some(broker))
        }
    };
    let client = Client::new(ClientConfig::builder(endpoints).tls(Tls::Off).build()?);
    let (topology, parts) = stages::pipeline(&client, &plan)?;
    let begun = Instant::now();
    let pipeline = topology.start().await?;
    send_orders(&client, plan.orders).await?;
    let done = timeout(LIMIT, all_through(&parts)).await.is_ok();
    println!("{}\n", pipeline.tree());
    let took = begun.elapsed();
    // The consumer first: what is under way goes through to its end.
    let agree = report(&pipeline, &parts, &plan).await;
    println!("in {took:.1?}");
    let stored = broker.map_or(ORDERS, |broker| broker.messages(plan.invoices).len());
    Ok(done && agree && stored == ORDERS)
}

async fn send_orders(client: &Client, topic: &str) -> Outcome<()> {
    let producer = client
        .start(ProducerSpec::builder().topic(topic).build()?)
        .await?;
    let orders = (0..ORDERS).map(|n| Message::builder(topic).body(format!("order {n}")).build());
    let orders: Vec<_> = orders.collect::<Result<_, _>>()?;
    for receipt in producer.send_all(orders).await {
        receipt?;
    }
    producer.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

async fn all_through(parts: &Parts) {
    while parts.consumer.ready().await.stats().acked < ORDERS as u64 {
        sleep(Duration::from_millis(20)).await;
    }
}

/// Stops the pipeline and prints its figures; whether they agree.
async fn report(pipeline: &TopologyHandle, parts: &Parts, plan: &Plan) -> bool {
    let (consumer, producer) = (parts.consumer.get(), parts.producer.get());
    let stopped = pipeline.stop(LIMIT).await;
    let (Some(consumer), Some(producer)) = (consumer, producer) else {
        println!("a part of the pipeline is down");
        return false;
    };
    let (taken, sent) = (consumer.stats(), producer.stats());
    let most = parts.in_flight.most();
    let abandoned = stopped
        .members
        .values()
        .any(|member| matches!(member, MemberReport::Consumer(report) if report.abandoned > 0));
    println!("orders acknowledged      {:>6} of {ORDERS}", taken.acked);
    println!("invoices sent            {:>6}", sent.sent);
    println!("most within the stages   {most:>6} of {}", plan.concurrency);
    println!("left within the stages   {:>6}", parts.in_flight.now());
    taken.acked == ORDERS as u64
        && sent.sent == ORDERS as u64
        && (1..=plan.concurrency).contains(&most)
        && parts.in_flight.now() == 0
        && stopped.in_time
        && !abandoned
}
