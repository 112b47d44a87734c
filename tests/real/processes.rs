//! Consumers in processes of their own, and what each of them printed.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::raw::Raw;
use crate::support::RealServer;

/// What a worker prints last on a line if it let a message fail that will be tried again.
pub(crate) const TO_BE_RETRIED: &str = "outcome=retry";

/// Messages with such ids only show that a consumer consumes; they are not counted.
const WARM_UP: &str = "warm-up";

/// How long a process may take to end after SIGTERM: its own grace of 10 s, on a busy machine.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// A program of `examples`, where `tests/real/run` has built it.
pub(crate) fn example(name: &str) -> Command {
    let test = env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).unwrap();
    let program: PathBuf = profile.join("examples").join(name);
    assert!(
        program.exists(),
        "{} is missing: run tests/real/run",
        program.display()
    );
    Command::new(program)
}

/// Sends messages with the example and returns their ids in order.
pub(crate) async fn produce(server: &RealServer, topic: &str, count: usize) -> Vec<String> {
    let output = example("producer")
        .args(["--endpoints", server.endpoints(), "--topic", topic])
        .args(["--count", &count.to_string()])
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{errors}", output.status);
    let receipts = String::from_utf8(output.stdout).unwrap();
    let ids: Vec<_> = receipts
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect();
    assert_eq!(ids.len(), count, "receipts");
    ids
}

/// What the processes printed: a line a handling, `ID attempt=N ...`.
#[derive(Debug)]
pub(crate) struct Printed {
    /// The handlings of each message, each with its process and the time since the start.
    pub(crate) handlings: BTreeMap<String, Vec<String>>,
    /// Messages whose handling is over.
    pub(crate) over: BTreeSet<String>,
    /// How many different messages each process handled.
    pub(crate) by_process: Vec<BTreeSet<String>>,
    /// Processes that handled a warm-up message.
    warm: BTreeSet<usize>,
    pub(crate) warm_ups: usize,
    started: Instant,
}

impl Printed {
    fn nothing_of(processes: usize) -> Self {
        Self {
            handlings: BTreeMap::new(),
            over: BTreeSet::new(),
            by_process: vec![BTreeSet::new(); processes],
            warm: BTreeSet::new(),
            warm_ups: 0,
            started: Instant::now(),
        }
    }

    fn line(&mut self, process: usize, line: &str) {
        let mut words = line.split(' ');
        // All else is what the test harness says around a worker.
        let (Some(id), Some("attempt")) = (
            words.next(),
            words.next().and_then(|word| word.split('=').next()),
        ) else {
            return;
        };
        if id.starts_with(WARM_UP) {
            self.warm.insert(process);
            self.warm_ups += 1;
            return;
        }
        let after = self.started.elapsed();
        let handling = format!("process {process} after {after:.2?}: {line}");
        self.handlings
            .entry(id.to_owned())
            .or_default()
            .push(handling);
        self.by_process[process].insert(id.to_owned());
        if !line.ends_with(TO_BE_RETRIED) {
            self.over.insert(id.to_owned());
        }
    }

    pub(crate) fn total(&self) -> usize {
        self.handlings.values().map(Vec::len).sum()
    }
}

/// Two processes of one consumer group.
#[derive(Debug)]
pub(crate) struct Pair {
    children: Vec<Child>,
    readers: Vec<JoinHandle<()>>,
    printed: Arc<Mutex<Printed>>,
    changed: watch::Receiver<()>,
}

impl Pair {
    pub(crate) fn spawn(command: impl Fn() -> Command) -> Self {
        let printed = Arc::new(Mutex::new(Printed::nothing_of(2)));
        let (change, changed) = watch::channel(());
        let (mut children, mut readers) = (Vec::new(), Vec::new());
        for process in 0..2 {
            let mut command = command();
            command.stdin(Stdio::null()).stdout(Stdio::piped());
            let mut child = command.kill_on_drop(true).spawn().unwrap();
            let stdout = child.stdout.take().unwrap();
            let (printed, change) = (printed.clone(), change.clone());
            readers.push(tokio::spawn(read(process, stdout, printed, change)));
            children.push(child);
        }
        Self {
            children,
            readers,
            printed,
            changed,
        }
    }

    /// Waits until the lines are as wanted.
    pub(crate) async fn until(&mut self, within: Duration, wanted: impl Fn(&Printed) -> bool) {
        let printed = self.printed.clone();
        let met = async {
            while !wanted(&printed.lock().unwrap()) {
                self.changed.changed().await.expect("both processes ended");
            }
        };
        if timeout(within, met).await.is_err() {
            let printed = self.printed.lock().unwrap();
            panic!(
                "not within {within:?}: {} handlings, {} messages over, {:?} by process",
                printed.total(),
                printed.over.len(),
                printed
                    .by_process
                    .iter()
                    .map(BTreeSet::len)
                    .collect::<Vec<_>>(),
            );
        }
    }

    /// Sends messages until both processes have handled one.
    pub(crate) async fn warm_up(&mut self, server: &RealServer, topic: &str) {
        let mut raw = Raw::connect(server, "warm-up").await;
        for number in 1..=100 {
            raw.send(topic, &format!("{WARM_UP}-{number}")).await;
            let handled = |printed: &Printed| printed.warm_ups == number;
            self.until(Duration::from_secs(60), handled).await;
            if self.printed.lock().unwrap().warm.len() == 2 {
                return;
            }
        }
        panic!("one process handled all of 100 messages");
    }

    /// Ends both with SIGTERM, wants both to end well and returns all that they printed.
    pub(crate) async fn terminate(self) -> Printed {
        for child in &self.children {
            let pid = child.id().expect("it ended by itself").to_string();
            let kill = Command::new("sh")
                .args(["-c", "kill -TERM \"$0\"", &pid])
                .status();
            assert!(kill.await.unwrap().success());
        }
        for mut child in self.children {
            let status = timeout(ENDS_WITHIN, child.wait()).await;
            let status = status.expect("it does not end").unwrap();
            assert!(status.success(), "{status}");
        }
        for reader in self.readers {
            reader.await.unwrap();
        }
        let printed = Arc::into_inner(self.printed).expect("the readers have ended");
        printed.into_inner().unwrap()
    }
}

async fn read(
    process: usize,
    stdout: ChildStdout,
    printed: Arc<Mutex<Printed>>,
    change: watch::Sender<()>,
) {
    let mut lines = BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        printed.lock().unwrap().line(process, &line);
        change.send_replace(());
    }
}
