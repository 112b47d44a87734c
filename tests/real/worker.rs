//! A consumer in a process of its own: this test binary, executed once more.

use std::env;
use std::time::Duration;

use rocketmq_actors::{Client, ClientConfig, Delivery, Filter, Outcome, PushConsumerSpec, Tls};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::processes::TO_BE_RETRIED;
use crate::support::RealServer;

/// Set in the worker's environment: the topic and the group.
const TOPIC: &str = "ROCKETMQ_WORKER_TOPIC";
const GROUP: &str = "ROCKETMQ_WORKER_GROUP";

/// Handlings of a message before the group's 2 retries are used up.
const ATTEMPTS: u32 = 3;

/// What is to become of the message of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Succeeds,
    FailsOnce,
    AlwaysFails,
}

impl Fate {
    /// Three in a hundred fail once, and one in two thousand always.
    pub(crate) fn of(number: usize) -> Self {
        match number {
            number if number % 2000 == 1999 => Self::AlwaysFails,
            number if number % 100 < 3 => Self::FailsOnce,
            _ => Self::Succeeds,
        }
    }

    /// How many handlings of such a message fail.
    pub(crate) fn failures(self) -> usize {
        match self {
            Self::Succeeds => 0,
            Self::FailsOnce => 1,
            Self::AlwaysFails => ATTEMPTS as usize,
        }
    }

    /// How often such a message is handled.
    pub(crate) fn handlings(self) -> usize {
        match self {
            Self::Succeeds => 1,
            Self::FailsOnce => 2,
            Self::AlwaysFails => ATTEMPTS as usize,
        }
    }
}

/// The command that runs the test of this name as a worker.
pub(crate) fn command(test: &str, topic: &str, group: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", test, "--quiet", "--nocapture"])
        .env(TOPIC, topic)
        .env(GROUP, group);
    command
}

/// Whether this process is a worker.
pub(crate) fn is_wanted() -> bool {
    env::var_os(TOPIC).is_some()
}

/// Consumes until SIGTERM, then drains.
pub(crate) async fn run() {
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    let server = RealServer::from_env();
    let config = ClientConfig::builder(server.endpoints()).tls(Tls::Off);
    let spec = PushConsumerSpec::builder(env::var(GROUP).unwrap())
        .subscribe(env::var(TOPIC).unwrap(), Filter::any())
        .handler(|delivery: Delivery| async move { handle(&delivery) });
    let client = Client::new(config.build().unwrap());
    let consumer = client.start(spec.build().unwrap()).await.unwrap();
    terminate.recv().await;
    let report = consumer.shutdown(Duration::from_secs(10)).await;
    assert!(report.in_time && report.abandoned == 0, "{report:?}");
}

fn handle(delivery: &Delivery) -> Outcome {
    // A message that is not one of the producer's is the warm-up.
    let fate = number(delivery).map_or(Fate::Succeeds, Fate::of);
    let (outcome, word) = match (fate, delivery.attempt()) {
        (Fate::AlwaysFails, ATTEMPTS..) => (Outcome::Retry, "outcome=dead"),
        (Fate::AlwaysFails, _) | (Fate::FailsOnce, 1) => (Outcome::Retry, TO_BE_RETRIED),
        _ => (Outcome::Ack, "outcome=ack"),
    };
    let (id, attempt) = (delivery.message_id(), delivery.attempt());
    println!("{id} attempt={attempt} {word}");
    outcome
}

/// The number that the producer gave the message.
fn number(delivery: &Delivery) -> Option<usize> {
    let body = str::from_utf8(delivery.body()).ok()?;
    body.strip_prefix("message ")?.parse().ok()
}
