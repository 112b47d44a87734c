//! The real server as the tests see it: where it listens, and the script that controls it.

use std::env;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::Instant;

/// One process of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Process {
    Proxy,
    Broker,
}

impl Process {
    fn name(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Broker => "broker",
        }
    }
}

/// How far a group is behind on one topic.
///
/// A message that is delivered and not yet acknowledged does not count: it shows up on the retry
/// topic `%RETRY%GROUP_TOPIC` once its invisible duration has run out. So to learn whether all was
/// acknowledged, look when the consumers are gone, whose messages the server then takes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lag {
    pub(crate) topic: String,
    pub(crate) behind: u64,
}

/// The server that `tests/real/run` started.
#[derive(Clone, Debug)]
pub(crate) struct RealServer {
    endpoints: String,
    script: PathBuf,
}

impl RealServer {
    pub(crate) fn from_env() -> Self {
        Self {
            endpoints: variable("ROCKETMQ_ENDPOINTS"),
            script: variable("ROCKETMQ_SERVER").into(),
        }
    }

    /// `HOST:PORT` of the proxy's gRPC port.
    pub(crate) fn endpoints(&self) -> &str {
        &self.endpoints
    }

    /// Brings back what was killed, on the same store and ports.
    pub(crate) async fn start(&self) {
        self.succeed(&["start"]).await;
    }

    /// Ends the process as `kill -9` does.
    pub(crate) async fn kill(&self, process: Process) {
        self.succeed(&["kill", process.name()]).await;
    }

    /// Stops the process without ending it: connections stay and nothing is answered.
    pub(crate) async fn pause(&self, process: Process) {
        self.succeed(&["pause", process.name()]).await;
    }

    pub(crate) async fn resume(&self, process: Process) {
        self.succeed(&["resume", process.name()]).await;
    }

    /// What `mqadmin` prints; each call takes seconds.
    pub(crate) async fn admin(&self, arguments: &[&str]) -> String {
        let arguments: Vec<_> = [&["admin"], arguments].concat();
        self.succeed(&arguments).await
    }

    /// The lag per topic, the group's retry topics among them, once the group has consumed at all.
    pub(crate) async fn lag(&self, group: &str) -> Vec<Lag> {
        parse_lag(&self.admin(&["consumerProgress", "-g", group]).await)
    }

    /// Waits until the group has consumed and is behind on no topic.
    pub(crate) async fn caught_up(&self, group: &str, within: Duration) {
        let done = |lag: &[Lag]| !lag.is_empty() && lag.iter().all(|of| of.behind == 0);
        self.lag_becomes(group, within, done).await;
    }

    /// Waits until the lag is as wanted; between two looks lies the start of a JVM.
    pub(crate) async fn lag_becomes(
        &self,
        group: &str,
        within: Duration,
        wanted: impl Fn(&[Lag]) -> bool,
    ) {
        let deadline = Instant::now() + within;
        loop {
            let lag = self.lag(group).await;
            if wanted(&lag) {
                return;
            }
            assert!(Instant::now() < deadline, "lag of {group}: {lag:?}");
        }
    }

    /// Messages ever written to the topic, zero for one that does not exist.
    pub(crate) async fn written(&self, topic: &str) -> u64 {
        parse_written(&self.admin(&["topicStatus", "-t", topic]).await)
    }

    async fn succeed(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.script)
            .args(arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", self.script.display()));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "server {arguments:?}: {}\n{text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr),
        );
        text
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run tests/real/run"))
}

/// Rows are `topic broker queue broker-offset consumer-offset diff inflight last-time`.
fn parse_lag(table: &str) -> Vec<Lag> {
    let mut lag: Vec<Lag> = Vec::new();
    for row in table.lines().filter_map(parse_lag_row) {
        match lag.iter_mut().find(|of| of.topic == row.topic) {
            Some(of) => of.behind += row.behind,
            None => lag.push(row),
        }
    }
    lag
}

fn parse_lag_row(line: &str) -> Option<Lag> {
    let columns: Vec<_> = line.split_whitespace().collect();
    let [topic, _, _, _, _, behind, ..] = columns[..] else {
        return None;
    };
    Some(Lag {
        topic: topic.to_owned(),
        behind: behind.parse().ok()?,
    })
}

/// Rows are `broker queue min-offset max-offset [last-updated]`.
fn parse_written(table: &str) -> u64 {
    let max = |line: &str| -> Option<u64> {
        let columns: Vec<_> = line.split_whitespace().collect();
        columns.get(1)?.parse::<u32>().ok()?;
        columns.get(3)?.parse().ok()
    };
    table.lines().filter_map(max).sum()
}
