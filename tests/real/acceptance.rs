//! Ten thousand messages to two processes of one group, on a topic of one queue.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::processes::{Pair, Printed, example, produce};
use crate::shared::consuming::dead_letters;
use crate::support::RealServer;
use crate::worker::{self, Fate};

const COUNT: usize = 10_000;
/// Consuming takes some ten seconds, on a machine that does nothing else.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn two_processes_handle_every_message_and_repeat_only_what_failed() {
    const NAME: &str = "acceptance::two_processes_handle_every_message_and_repeat_only_what_failed";
    if worker::is_wanted() {
        return worker::run().await;
    }
    let server = RealServer::from_env();
    let (topic, group) = ("a-failures", "a-failures");
    let started = Instant::now();
    let mut pair = Pair::spawn(|| worker::command(NAME, topic, group));
    pair.warm_up(&server, topic).await;
    let ids = produce(&server, topic, COUNT).await;
    let produced = started.elapsed();
    pair.until(PATIENCE, |printed| printed.over.len() >= COUNT)
        .await;
    let consumed = started.elapsed();

    let dead: BTreeSet<_> = (0..COUNT)
        .filter(|number| Fate::of(*number) == Fate::AlwaysFails)
        .map(|number| ids[number].clone())
        .collect();
    assert_eq!(dead.len(), 5);
    let letters = dead_letters(&server, group, dead.len()).await;
    let letters: BTreeSet<_> = letters.into_iter().map(|letter| letter.id).collect();
    assert_eq!(letters, dead);

    let printed = pair.terminate().await;
    let wanted: BTreeMap<_, _> = ids
        .into_iter()
        .enumerate()
        .map(|(number, id)| (id, Fate::of(number).handlings()))
        .collect();
    report(&printed, produced, consumed);
    assert_stored_once(&server, topic, &printed).await;
    assert_handled(&printed, &wanted);

    server.caught_up(group, PATIENCE).await;
    // Each failure makes the server write the message once more, the last one of an exhausted
    // message too: it is moved to the dead letters when it is due again.
    let failures: usize = (0..COUNT).map(|number| Fate::of(number).failures()).sum();
    let retried = server.written(&format!("%RETRY%{group}_{topic}")).await;
    assert_eq!(retried, failures as u64, "redeliveries by the server");
    assert_eq!(server.written(&format!("%DLQ%{group}")).await, 5);
}

#[tokio::test]
async fn two_examples_print_each_message_once() {
    let server = RealServer::from_env();
    let (topic, group) = ("a-examples", "a-examples");
    let started = Instant::now();
    let mut pair = Pair::spawn(|| {
        let mut command = example("push_consumer");
        command
            .args(["--endpoints", server.endpoints()])
            .args(["--topic", topic, "--group", group]);
        command
    });
    pair.warm_up(&server, topic).await;
    let ids = produce(&server, topic, COUNT).await;
    let produced = started.elapsed();
    pair.until(PATIENCE, |printed| printed.over.len() >= COUNT)
        .await;
    let consumed = started.elapsed();
    let printed = pair.terminate().await;
    report(&printed, produced, consumed);
    assert_stored_once(&server, topic, &printed).await;
    assert_handled(&printed, &ids.into_iter().map(|id| (id, 1)).collect());
    server.caught_up(group, PATIENCE).await;
    // Nothing was made again by the server, so it has not even made the topic for that.
    assert_eq!(server.written(&format!("%RETRY%{group}_{topic}")).await, 0);
}

fn report(printed: &Printed, produced: Duration, consumed: Duration) {
    let shares: Vec<_> = printed.by_process.iter().map(BTreeSet::len).collect();
    println!(
        "sent after {produced:.1?}, all over after {consumed:.1?}: {} handlings, {shares:?} \
         messages by process",
        printed.total(),
    );
}

/// A send that timed out may be stored twice, for which no consumer is to blame.
async fn assert_stored_once(server: &RealServer, topic: &str, printed: &Printed) {
    let surplus = server.written(topic).await - (COUNT + printed.warm_ups) as u64;
    assert_eq!(surplus, 0, "messages that the producer had stored twice");
}

/// Each message was handled as often as wanted, and either process handled its share.
fn assert_handled(printed: &Printed, wanted: &BTreeMap<String, usize>) {
    let different: Vec<_> = wanted
        .iter()
        .map(|(id, wanted)| (id, *wanted, printed.handlings.get(id)))
        .filter(|(_, wanted, handled)| handled.map_or(0, Vec::len) != *wanted)
        .collect();
    assert!(
        different.is_empty(),
        "(id, wanted, handled): {different:#?}"
    );
    assert_eq!(printed.handlings.len(), wanted.len(), "ids nobody sent");
    for handled in &printed.by_process {
        let share = handled.len() * 100 / wanted.len();
        assert!(share > 20, "a process handled {share} % of the messages");
    }
}
