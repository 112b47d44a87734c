//! Sends messages to a topic of a running server.
//!
//! `cargo run --example producer -- --endpoints 127.0.0.1:8081 --topic orders --count 10`
//!
//! Prints one line a message: its receipt on stdout, beginning with the message id, or its error
//! on stderr. Exits with 1 if any failed. Logs go to stderr; `RUST_LOG` says which.
#![allow(clippy::print_stderr, reason = "a command line tool")]

use std::{io::Write, process::ExitCode, time::Duration};

use rocketmq_actors::{Client, ClientConfig, Message, ProducerSpec, Result, SendReceipt, Tls};
use tracing_subscriber::EnvFilter;

const USAGE: &str =
    "usage: producer --endpoints HOST:PORT --topic TOPIC --count N [--tag TAG] [--tls]";

struct Options {
    endpoints: String,
    topic: String,
    count: usize,
    tag: Option<String>,
    tls: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let (mut endpoints, mut topic, mut count, mut tag, mut tls) =
            (None, None, None, None, false);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--endpoints" => endpoints = Some(words.next()?),
                "--topic" => topic = Some(words.next()?),
                "--count" => count = Some(words.next()?.parse().ok()?),
                "--tag" => tag = Some(words.next()?),
                "--tls" => tls = true,
                _ => return None,
            }
        }
        Some(Self {
            endpoints: endpoints?,
            topic: topic?,
            count: count?,
            tag,
            tls,
        })
    }
}

/// Sends and says how many messages failed.
async fn run(options: Options) -> Result<usize> {
    let tls = if options.tls {
        Tls::default()
    } else {
        Tls::Off
    };
    let config = ClientConfig::builder(&options.endpoints).tls(tls).build()?;
    let spec = ProducerSpec::builder().topic(&options.topic).build()?;
    let messages = (0..options.count)
        .map(|number| {
            let message = Message::builder(&options.topic).body(format!("message {number}"));
            match &options.tag {
                Some(tag) => message.tag(tag).build(),
                None => message.build(),
            }
        })
        .collect::<Result<Vec<_>>>()?;
    let producer = Client::new(config).start(spec).await?;
    let mut failed = 0;
    for sent in producer.send_all(messages).await {
        match sent {
            // A receipt nobody reads is none: what was sent is not known to have been.
            Ok(receipt) if print(&receipt).is_err() => failed += 1,
            Ok(_) => {}
            Err(error) => {
                failed += 1;
                eprintln!("{error}");
            }
        }
    }
    producer.shutdown(Duration::from_secs(5)).await;
    Ok(failed)
}

fn print(receipt: &SendReceipt) -> std::io::Result<()> {
    writeln!(
        std::io::stdout(),
        "{} {} {} queue {} offset {}",
        receipt.message_id(),
        receipt.topic(),
        receipt.broker_name(),
        receipt.queue_id(),
        receipt
            .offset()
            .map_or_else(|| "unknown".to_owned(), |offset| offset.to_string())
    )
}

#[tokio::main]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(options).await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("{failed} messages have no receipt");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
