//! The work that both kinds of client do alike: which message comes when, and what it carries.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::time::{Instant, sleep_until};

/// Begins a body that tells when it was made.
const MARK: &[u8; 8] = b"load\x00\x01\x02\x03";
const STAMPED: usize = 16;

/// A body of this size; with 16 bytes or more it carries the time of now.
pub(crate) fn body(size: usize) -> Bytes {
    let mut body = BytesMut::with_capacity(size);
    if size >= STAMPED {
        body.put_slice(MARK);
        body.put_u64(since_epoch(SystemTime::now()).as_nanos() as u64);
    }
    body.resize(size, b'x');
    body.freeze()
}

/// How old a message is, by its body, else by its born time; zero where clocks disagree.
pub(crate) fn age(body: &[u8], born: Option<SystemTime>) -> Duration {
    let stamp = body.strip_prefix(MARK).and_then(<[u8]>::first_chunk);
    let made = match stamp {
        Some(nanos) => Duration::from_nanos(u64::from_be_bytes(*nanos)),
        None => born.map_or(Duration::ZERO, since_epoch),
    };
    since_epoch(SystemTime::now()).saturating_sub(made)
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Hands out messages by number, to any number of senders, evenly over time if there is a rate.
#[derive(Debug)]
pub(crate) struct Schedule {
    count: usize,
    rate: Option<f64>,
    started: Instant,
    next: AtomicUsize,
}

impl Schedule {
    pub(crate) fn start(count: usize, rate: Option<f64>) -> Self {
        Self {
            count,
            rate,
            started: Instant::now(),
            next: AtomicUsize::new(0),
        }
    }

    /// The next messages, at most so many, once the last of them is due; none at the end.
    pub(crate) async fn take(&self, most: usize) -> Option<Range<usize>> {
        let first = self.next.fetch_add(most, Ordering::Relaxed);
        let last = (first + most).min(self.count);
        if first >= last {
            return None;
        }
        if let Some(rate) = self.rate {
            let due = Duration::from_secs_f64((last - 1) as f64 / rate);
            sleep_until(self.started + due).await;
        }
        Some(first..last)
    }
}
