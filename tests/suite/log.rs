//! What is logged on the thread of one test.
//!
//! One subscriber serves the whole process: with one for each test, a line whose place is met for
//! the first time while another test sets its own may be switched off for all.

use std::{
    cell::RefCell,
    io,
    sync::{Arc, Mutex, Once},
};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{Layer, filter::dynamic_filter_fn, fmt, layer::SubscriberExt};

type Text = Arc<Mutex<Vec<u8>>>;

thread_local! {
    /// Where this thread's lines go, and up to which level.
    static CAPTURE: RefCell<Option<(LevelFilter, Text)>> = const { RefCell::new(None) };
}

struct ThisThread;

impl io::Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        CAPTURE.with_borrow(|capture| {
            if let Some((_, text)) = capture {
                text.lock().unwrap().extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes logs possible, before anything is logged.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let wanted = dynamic_filter_fn(|place, _| {
            CAPTURE.with_borrow(|capture| {
                let level = capture
                    .as_ref()
                    .map_or(LevelFilter::OFF, |(level, _)| *level);
                *place.level() <= level
            })
        });
        let lines = fmt::layer().with_ansi(false).with_writer(|| ThisThread);
        let subscriber = tracing_subscriber::registry().with(lines.with_filter(wanted));
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

/// The log of this thread from its making to its end.
pub struct Log(Text);

impl Log {
    pub fn start(level: LevelFilter) -> Self {
        install();
        let text = Text::default();
        CAPTURE.set(Some((level, text.clone())));
        Self(text)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines that have `part`, from it on.
    pub fn lines(&self, part: &str) -> Vec<String> {
        self.text()
            .lines()
            .filter_map(|line| Some(line[line.find(part)?..].to_owned()))
            .collect()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        CAPTURE.set(None);
    }
}
