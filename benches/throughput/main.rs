//! Messages per second over loopback without a real server, which would be the slowest part.
//!
//! `cargo bench --bench throughput [-- PART] [MESSAGES]`, where a part is
//!
//! - `clients`: this library beside a bare client, both on the embedded broker
//! - `broker`: the embedded broker beside a server with canned answers, both for the bare client
//! - `scaling`: this library with more queues, more members and larger bodies
//!
//! Pairs run in turn, five times; what counts is the median of the ratios.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement stops at the first error and prints"
)]

mod noop;
mod ours;
mod raw;
mod scaling;

use std::time::Duration;

use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use tokio::runtime::Runtime;

/// Sends at once, or handlers.
const IN_FLIGHT: usize = 64;
const BODY: usize = 1024;
const ROUNDS: usize = 5;

fn main() {
    // Cargo itself adds an option.
    let words: Vec<_> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let messages = words.iter().find_map(|word| word.parse().ok());
    let messages = messages.unwrap_or(20_000);
    let part = words.iter().find(|word| word.parse::<usize>().is_err());
    // The server has a thread of its own, as one in another process would.
    let (server, client) = (runtime(), runtime());
    let broker = EmbeddedBroker::builder().without_record().start();
    let broker = server.block_on(broker).unwrap();
    match part.map(String::as_str) {
        Some("clients") => clients(&broker, &client, messages),
        Some("broker") => servers(&broker, &server, &client, messages),
        Some("scaling") => scaling::run(&broker, &client, messages),
        None => {
            clients(&broker, &client, messages);
            servers(&broker, &server, &client, messages);
            scaling::run(&broker, &client, messages);
        }
        Some(other) => println!("{other} is no part: clients, broker or scaling"),
    }
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

/// This library and the bare client.
fn clients(broker: &EmbeddedBroker, client: &Runtime, messages: usize) {
    let at = broker.endpoints();
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (a, b) = (format!("ours{round}"), format!("bare{round}"));
        broker.create_topic(&a, TopicConfig::normal(8));
        broker.create_topic(&b, TopicConfig::normal(8));
        let ours = client.block_on(ours::send(&at, &a, messages, BODY, 1));
        let raw = client.block_on(raw::send(&at, &b, messages, BODY));
        sends.push(report("send", messages, ("ours", ours), ("bare", raw)));
        let ours = client.block_on(ours::consume(&at, &a, messages, 1));
        let raw = client.block_on(raw::consume(&at, &b, messages));
        receives.push(report("receive", messages, ("ours", ours), ("bare", raw)));
        broker.delete_topic(&a);
        broker.delete_topic(&b);
    }
    conclude("this library beside a bare client", sends, receives);
}

/// The embedded broker and canned answers.
fn servers(broker: &EmbeddedBroker, server: &Runtime, client: &Runtime, messages: usize) {
    let (at, noop) = (broker.endpoints(), server.block_on(noop::start(BODY)));
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let topic = format!("broker{round}");
        broker.create_topic(&topic, TopicConfig::normal(8));
        let stored = client.block_on(raw::send(&at, &topic, messages, BODY));
        let canned = client.block_on(raw::send(&noop, &topic, messages, BODY));
        sends.push(report(
            "send",
            messages,
            ("broker", stored),
            ("canned", canned),
        ));
        let stored = client.block_on(raw::consume(&at, &topic, messages));
        let canned = client.block_on(raw::consume(&noop, &topic, messages));
        receives.push(report(
            "receive",
            messages,
            ("broker", stored),
            ("canned", canned),
        ));
        broker.delete_topic(&topic);
    }
    conclude("the embedded broker beside canned answers", sends, receives);
}

/// Prints a pair and gives its ratio.
fn report(what: &str, messages: usize, one: (&str, Duration), other: (&str, Duration)) -> f64 {
    let rate = |time: Duration| messages as f64 / time.as_secs_f64();
    let ratio = rate(one.1) / rate(other.1);
    println!(
        "{what:<8} {} {:>7.0}/s, {} {:>7.0}/s, ratio {ratio:.2}",
        one.0,
        rate(one.1),
        other.0,
        rate(other.1)
    );
    ratio
}

fn conclude(what: &str, sends: Vec<f64>, receives: Vec<f64>) {
    let (send, receive) = (median(sends), median(receives));
    println!("{what}, medians: send {send:.2}, receive and ack {receive:.2}\n");
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}
