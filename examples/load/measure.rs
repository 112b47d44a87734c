//! Time, processor time, memory and percentiles of a run.

use std::{
    fs,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use crate::Failure;

/// Of `/proc/self/stat`; Linux shows every process 100 to the second.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a run is measured from.
#[derive(Debug)]
pub(crate) struct Span {
    started: Instant,
    cpu: f64,
}

impl Span {
    pub(crate) fn begin() -> Result<Self, Failure> {
        // Whoever starts a sender beside a consumer waits for this line.
        tracing::info!("measured from here");
        Ok(Self {
            cpu: cpu_seconds()?,
            started: Instant::now(),
        })
    }

    pub(crate) fn end(&self, messages: usize, latencies: &Latencies) -> Result<Figures, Failure> {
        let seconds = self.started.elapsed().as_secs_f64();
        let cpu_seconds = cpu_seconds()? - self.cpu;
        let peak_rss_kib = peak_rss_kib()?;
        let (p50_ms, p99_ms) = latencies.percentiles();
        Ok(Figures {
            messages,
            seconds,
            p50_ms,
            p99_ms,
            cpu_seconds,
            peak_rss_kib,
        })
    }
}

/// User and system time of this process, all threads.
fn cpu_seconds() -> Result<f64, Failure> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name of the program, in parentheses, may hold spaces.
    let (_, fields) = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?;
    let ticks: Vec<f64> = fields
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
}

fn peak_rss_kib() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next());
    Ok(kib.ok_or("no VmHWM in /proc/self/status")?.parse()?)
}

/// Counts messages and keeps the latency of each of the first so many.
///
/// Four bytes a message, allocated at the start: what is measured is not measured with it.
#[derive(Debug)]
pub(crate) struct Latencies {
    micros: Box<[AtomicU32]>,
    next: AtomicUsize,
}

impl Latencies {
    pub(crate) fn of(messages: usize) -> Self {
        Self {
            micros: (0..messages).map(|_| AtomicU32::new(0)).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// Up to 71 minutes; what took longer counts as that. Says how many there are with it.
    pub(crate) fn record(&self, latency: Duration) -> usize {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(slot) = self.micros.get(index) {
            let micros = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
            slot.store(micros, Ordering::Relaxed);
        }
        index + 1
    }

    /// p50 and p99 in milliseconds: exact, the smallest value that so many do not exceed.
    fn percentiles(&self) -> (f64, f64) {
        let recorded = self.next.load(Ordering::Relaxed);
        let slots = self.micros.iter().take(recorded);
        let mut micros: Vec<u32> = slots.map(|slot| slot.load(Ordering::Relaxed)).collect();
        micros.sort_unstable();
        let at = |percent: usize| {
            let rank = (micros.len() * percent).div_ceil(100).max(1);
            micros
                .get(rank - 1)
                .map_or(f64::NAN, |micros| f64::from(*micros) / 1e3)
        };
        (at(50), at(99))
    }
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Figures {
    messages: usize,
    seconds: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_seconds: f64,
    peak_rss_kib: u64,
}

impl Figures {
    pub(crate) fn json(&self, mode: &str) -> String {
        let Self {
            messages,
            seconds,
            p50_ms,
            p99_ms,
            cpu_seconds,
            peak_rss_kib,
        } = self;
        let per_second = *messages as f64 / seconds;
        format!(
            "{{\"mode\":\"{mode}\",\"messages\":{messages},\"seconds\":{seconds:.3},\
             \"messages_per_second\":{per_second:.1},\"p50_ms\":{p50_ms:.3},\"p99_ms\":{p99_ms:.3},\
             \"cpu_seconds\":{cpu_seconds:.2},\"peak_rss_kib\":{peak_rss_kib}}}"
        )
    }
}
