//! Commits of routes, which show nowhere else than in the log.

use tracing::level_filters::LevelFilter;

use crate::log;

/// The log of this thread from its making to its end.
pub(super) struct Log(log::Log);

impl Log {
    pub(super) fn start() -> Self {
        Self(log::Log::start(LevelFilter::INFO))
    }

    /// The lines that have `part`, from it on.
    pub(super) fn lines(&self, part: &str) -> Vec<String> {
        self.0.lines(part)
    }

    /// Each commit of a route as `topic queues quarantined`.
    pub(super) fn commits(&self) -> Vec<String> {
        let of = |line: &String, field: &str| {
            let value = &line[line.find(field).unwrap() + field.len()..];
            value.split(' ').next().unwrap().to_owned()
        };
        let line = |line: &String| {
            let fields = ["topic=", "queues=", "quarantined="];
            fields.map(|field| of(line, field)).join(" ")
        };
        self.lines("route committed").iter().map(line).collect()
    }
}
