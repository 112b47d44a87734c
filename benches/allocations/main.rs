//! Allocations per message of this library and of a bare client, on the embedded broker in another
//! process.
//!
//! `cargo bench --bench allocations [-- MESSAGES]`
//!
//! Counted are all threads of the process. Each figure is the difference of a run of twice as many
//! messages and one of as many, so that starting and stopping are not in it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement stops at the first error and prints"
)]

#[path = "../throughput/ours.rs"]
mod ours;
#[path = "../throughput/raw.rs"]
mod raw;

use std::{
    alloc::System,
    env,
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
};

use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Sends at once, or handlers.
const IN_FLIGHT: usize = 64;
const BODY: usize = 1024;
/// One for each run.
const TOPICS: [&str; 4] = ["ours", "ours-twice", "bare", "bare-twice"];
const SERVE: &str = "serve";

fn main() {
    let words: Vec<_> = env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    if words.iter().any(|word| word == SERVE) {
        return serve(&runtime);
    }
    let messages = words.iter().find_map(|word| word.parse().ok());
    let messages = messages.unwrap_or(20_000);
    let (mut server, at) = server();
    println!("| {messages} messages of {BODY} bytes | allocations/message | bytes/message |");
    println!("| --- | --: | --: |");
    let [ours, ours_twice, bare, bare_twice] = TOPICS;
    let size = BODY;
    row("send, ours", messages, |count| {
        let topic = [ours, ours_twice][count / messages - 1];
        runtime.block_on(ours::send(&at, topic, count, size, 1));
    });
    row("send, bare", messages, |count| {
        let topic = [bare, bare_twice][count / messages - 1];
        runtime.block_on(raw::send(&at, topic, count, size));
    });
    row("receive and ack, ours", messages, |count| {
        let topic = [ours, ours_twice][count / messages - 1];
        runtime.block_on(ours::consume(&at, topic, count, 1));
    });
    row("receive and ack, bare", messages, |count| {
        let topic = [bare, bare_twice][count / messages - 1];
        runtime.block_on(raw::consume(&at, topic, count));
    });
    drop(server.stdin.take());
    server.wait().unwrap();
}

/// Runs the work with so many messages and with twice as many, and prints the difference.
fn row(what: &str, messages: usize, work: impl Fn(usize)) {
    let counted = |count| {
        let region = Region::new(ALLOCATOR);
        work(count);
        region.change()
    };
    let (once, twice) = (counted(messages), counted(2 * messages));
    let each = |of: fn(&Stats) -> usize| (of(&twice) as f64 - of(&once) as f64) / messages as f64;
    let allocations = each(|stats| stats.allocations + stats.reallocations);
    let bytes = each(|stats| stats.bytes_allocated);
    println!("| {what} | {allocations:.1} | {bytes:.0} |");
}

/// Another process of this program, and where its broker listens.
fn server() -> (Child, String) {
    let mut server = Command::new(env::current_exe().unwrap())
        .arg(SERVE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut endpoints = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut endpoints)
        .unwrap();
    (server, endpoints.trim().to_owned())
}

/// The broker, until whoever started it is gone.
fn serve(runtime: &Runtime) {
    let broker = EmbeddedBroker::builder().without_record().start();
    let broker = runtime.block_on(broker).unwrap();
    for topic in TOPICS {
        broker.create_topic(topic, TopicConfig::normal(8));
    }
    println!("{}", broker.endpoints());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}
