//! Consumes a topic and prints one line a message, its first word the message id.
//!
//! ```text
//! cargo run --example push_consumer -- --endpoints 127.0.0.1:8081 --topic orders --group billing
//! ```
//!
//! Ends after `--count` messages, on Ctrl-C or on SIGTERM, having drained. Logs (`RUST_LOG`) and
//! the final report go to stderr.

use std::{
    io::Write,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rocketmq_actors::{
    Client, ClientConfig, Delivery, Error, Filter, PushConsumer, PushConsumerSpec, Tls,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::Notify,
};
use tracing_subscriber::EnvFilter;

const USAGE: &str = "usage: push_consumer --endpoints H:P --topic T --group G \
                     [--filter TAGS] [--count N] [--tls]";
/// How long running handlers and settling may take at the end.
const GRACE: Duration = Duration::from_secs(10);
/// The same after `--count` messages, when what is still being handled is surplus.
const SURPLUS_GRACE: Duration = Duration::from_secs(1);

struct Options {
    endpoints: String,
    topic: String,
    group: String,
    filter: Filter,
    count: u64,
    tls: Tls,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(filter)
        .init();
    let Some(options) = options(std::env::args().skip(1)) else {
        complain(USAGE);
        return ExitCode::from(2);
    };
    match run(options).await {
        Ok(code) => code,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let (mut endpoints, mut topic, mut group) = (None, None, None);
    let (mut filter, mut count, mut tls) = (Filter::any(), u64::MAX, Tls::Off);
    while let Some(option) = args.next() {
        match option.as_str() {
            "--endpoints" => endpoints = Some(args.next()?),
            "--topic" => topic = Some(args.next()?),
            "--group" => group = Some(args.next()?),
            "--filter" => filter = Filter::tag(args.next()?),
            "--count" => count = args.next()?.parse().ok().filter(|count| *count > 0)?,
            "--tls" => tls = Tls::default(),
            _ => return None,
        }
    }
    Some(Options {
        endpoints: endpoints?,
        topic: topic?,
        group: group?,
        filter,
        count,
        tls,
    })
}

async fn run(options: Options) -> Result<ExitCode, Error> {
    let config = ClientConfig::builder(options.endpoints)
        .tls(options.tls)
        .build()?;
    let (started, printed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (done, broken) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (wanted, enough, unprinted) = (options.count, done.clone(), broken.clone());
    let spec = PushConsumerSpec::builder(options.group)
        .subscribe(options.topic, options.filter)
        .handler(move |delivery: Delivery| {
            let (started, printed) = (started.clone(), printed.clone());
            let (enough, unprinted) = (enough.clone(), unprinted.clone());
            async move {
                if started.fetch_add(1, Ordering::AcqRel) >= wanted {
                    // More than was asked for: held until the drain gives it back, unhandled.
                    std::future::pending::<()>().await;
                }
                if let Err(error) = print(&delivery) {
                    // Nobody reads any more: the message comes again to whoever consumes next.
                    unprinted.notify_one();
                    return Err(error);
                }
                if printed.fetch_add(1, Ordering::AcqRel) + 1 == wanted {
                    enough.notify_one();
                }
                Ok::<(), std::io::Error>(())
            }
        })
        .build()?;
    let consumer = Client::new(config).start(spec).await?;
    Ok(end(&consumer, &done, &broken).await)
}

/// One line; a message that cannot be printed is a failed delivery.
fn print(delivery: &Delivery) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let body: String = String::from_utf8_lossy(delivery.body())
        .chars()
        .take(200)
        .collect();
    writeln!(
        out,
        "{} attempt={} tag={} keys={} body={:?}",
        delivery.message_id(),
        delivery.attempt(),
        delivery.tag().unwrap_or("-"),
        delivery.keys().join(","),
        body,
    )?;
    out.flush()
}

/// Waits for a reason to end, then drains.
async fn end(consumer: &PushConsumer, done: &Notify, broken: &Notify) -> ExitCode {
    let (grace, code) = tokio::select! {
        () = done.notified() => (SURPLUS_GRACE, ExitCode::SUCCESS),
        () = stop_signal() => (GRACE, ExitCode::SUCCESS),
        () = broken.notified() => (SURPLUS_GRACE, ExitCode::FAILURE),
        error = consumer.failed() => {
            complain(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    let report = consumer.shutdown(grace).await;
    complain(&format!("{report:?}"));
    code
}

async fn stop_signal() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        // Without a handler the signal ends the process by itself.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

fn complain(text: &str) {
    // Nobody is left to tell if stderr is gone.
    let _ = writeln!(std::io::stderr(), "{text}");
}
