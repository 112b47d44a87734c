//! Puts a load on a running server, by this library or by a bare gRPC client, and measures it.
//!
//! ```text
//! cargo run --release --example load -- send --endpoints 127.0.0.1:8081 --topic t --count 100000 --size 1024 --concurrency 64
//! cargo run --release --example load -- consume --endpoints 127.0.0.1:8081 --topic t --group g --count 100000 --concurrency 64
//! ```
//!
//! `raw-send` and `raw-consume` do the same work by the generated client alone: no retries, no
//! routes, no checks. They are the yardstick: what a server and this machine allow.
//!
//! Prints one JSON line and nothing else on stdout:
//!
//! - `messages`: sent with a receipt, or handled and acknowledged; never fewer than `--count`
//! - `seconds`, `cpu_seconds`: from when the client is connected and the server has answered its
//!   settings until the last receipt or answered acknowledgement. `cpu_seconds` is user and system
//!   time of this process, in steps of 10 ms
//! - `p50_ms`, `p99_ms`: of a send from its call to its receipt. Of a delivery from when the
//!   message was made to the start of its handler, by two clocks if there are two machines: to the
//!   microsecond for messages that this program sent, else by their born time in milliseconds.
//!   Of a backlog that says how long the messages waited
//! - `peak_rss_kib`: the most memory that was resident since the start of the process
//!
//! With `RUST_LOG=load=info` a line on stderr says when that span begins, `measured from here`.
//!
//! Topic and group have to exist. Every mode has a runtime of two threads; this library's
//! consumers and connections run on threads of their own, two unless configured otherwise. Needs
//! Linux: time and memory are read from `/proc`.

mod measure;
mod options;
mod ours;
mod raw;
mod raw_consume;
mod raw_send;
mod work;

use std::{io::Write, process::ExitCode};

use tracing_subscriber::EnvFilter;

use measure::Figures;
use options::{Mode, Options, Parsed, USAGE};

/// Whatever ends a run early.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(filter)
        .init();
    let options = match options::parse(std::env::args().skip(1)) {
        Ok(Parsed::Run(options)) => options,
        Ok(Parsed::Help) => {
            // Nobody is left to tell if stdout is gone.
            let _ = writeln!(std::io::stdout(), "{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            complain(&format!("{problem}\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let figures = runtime.block_on(measured(options))?;
    writeln!(std::io::stdout(), "{}", figures.json(options.mode.name()))?;
    Ok(())
}

async fn measured(options: &Options) -> Result<Figures, Failure> {
    match options.mode {
        Mode::Send => ours::send(options).await,
        Mode::Consume => ours::consume(options).await,
        Mode::RawSend => raw_send::run(options).await,
        Mode::RawConsume => raw_consume::run(options).await,
    }
}

fn complain(text: &str) {
    // Nobody is left to tell if stderr is gone.
    let _ = writeln!(std::io::stderr(), "{text}");
}
