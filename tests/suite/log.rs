//! What is logged on the thread of one test.
//!
//! One subscriber serves the whole process: with one for each test, a line whose place is met for
//! the first time while another test sets its own may be switched off for all.

use std::{
    cell::RefCell,
    io,
    sync::{
        Arc, Mutex, Once,
        atomic::{AtomicUsize, Ordering},
    },
};

use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber, callsite::rebuild_interest_cache, subscriber::Interest};
use tracing_subscriber::{
    Layer, fmt,
    layer::{Context, Filter, SubscriberExt},
};

type Text = Arc<Mutex<Vec<u8>>>;

thread_local! {
    /// Where this thread's lines go, and up to which level.
    static CAPTURE: RefCell<Option<(LevelFilter, Text)>> = const { RefCell::new(None) };
}

/// How many captures there are at TRACE: without one, such lines cost next to nothing.
static TRACING: AtomicUsize = AtomicUsize::new(0);

/// Lets through what the thread that logs captures.
struct Captured;

impl<S: Subscriber> Filter<S> for Captured {
    fn enabled(&self, place: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        CAPTURE.with_borrow(|capture| {
            let level = capture
                .as_ref()
                .map_or(LevelFilter::OFF, |(level, _)| *level);
            *place.level() <= level
        })
    }

    fn callsite_enabled(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let traced = TRACING.load(Ordering::Acquire) > 0;
        Some(if traced {
            LevelFilter::TRACE
        } else {
            LevelFilter::INFO
        })
    }
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
        let lines = fmt::layer().with_ansi(false).with_writer(|| ThisThread);
        let subscriber = tracing_subscriber::registry().with(lines.with_filter(Captured));
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
        if level == LevelFilter::TRACE {
            TRACING.fetch_add(1, Ordering::AcqRel);
            rebuild_interest_cache();
        }
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
        let ended = CAPTURE.take();
        if ended.is_some_and(|(level, _)| level == LevelFilter::TRACE) {
            TRACING.fetch_sub(1, Ordering::AcqRel);
            rebuild_interest_cache();
        }
    }
}
