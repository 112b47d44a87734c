//! What the client logs: the commits of routes show nowhere else.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing_subscriber::fmt::MakeWriter;

/// The log of this thread from its making to its end.
pub(super) struct Log {
    text: Text,
    _default: tracing::subscriber::DefaultGuard,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Text {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    pub(super) fn start() -> Self {
        use tracing_subscriber::util::SubscriberInitExt;
        let text = Text::default();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing_subscriber::filter::LevelFilter::INFO)
            .with_writer(text.clone())
            .finish();
        Self {
            text,
            _default: subscriber.set_default(),
        }
    }

    /// The lines that have `part`, from it on.
    pub(super) fn lines(&self, part: &str) -> Vec<String> {
        let text = String::from_utf8(self.text.0.lock().unwrap().clone()).unwrap();
        text.lines()
            .filter_map(|line| Some(line[line.find(part)?..].to_owned()))
            .collect()
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
