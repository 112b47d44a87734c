//! The command line.

use std::str::FromStr;

pub(crate) const USAGE: &str = "\
usage: load send|consume|raw-send|raw-consume --endpoints HOST:PORT --topic T --count N
            --concurrency C [--group G] [--size BYTES] [--batch B] [--loops R] [--rate PER_SECOND]

  --group        of consume and raw-consume
  --count        messages to send, or to handle and acknowledge
  --size         of a body, sends only (1024)
  --concurrency  messages in flight, or handlers at once; raw-consume has none
  --batch        send and raw-send: most messages of a request (1)
                 raw-consume: most entries of an acknowledgement (32)
  --loops        raw-consume: receives at once, of 32 messages each (4)
  --rate         sends: messages per second, evenly; as fast as possible without it";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Send,
    Consume,
    RawSend,
    RawConsume,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Consume => "consume",
            Self::RawSend => "raw-send",
            Self::RawConsume => "raw-consume",
        }
    }

    fn consumes(self) -> bool {
        matches!(self, Self::Consume | Self::RawConsume)
    }
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) mode: Mode,
    pub(crate) endpoints: String,
    pub(crate) topic: String,
    /// Empty for sends.
    pub(crate) group: String,
    pub(crate) count: usize,
    pub(crate) size: usize,
    pub(crate) concurrency: usize,
    pub(crate) batch: usize,
    pub(crate) loops: usize,
    pub(crate) rate: Option<f64>,
}

pub(crate) enum Parsed {
    Run(Options),
    Help,
}

pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Parsed, String> {
    let mode = match words.next().as_deref() {
        Some("send") => Mode::Send,
        Some("consume") => Mode::Consume,
        Some("raw-send") => Mode::RawSend,
        Some("raw-consume") => Mode::RawConsume,
        Some("--help" | "-h") => return Ok(Parsed::Help),
        Some(other) => return Err(format!("{other:?} is no mode")),
        None => return Err("which mode?".to_owned()),
    };
    let (mut endpoints, mut topic, mut group) = (None, None, None);
    let (mut count, mut size, mut concurrency) = (None, 1024, None);
    let (mut batch, mut loops, mut rate) = (None, 4, None);
    while let Some(option) = words.next() {
        if matches!(option.as_str(), "--help" | "-h") {
            return Ok(Parsed::Help);
        }
        let word = words.next().ok_or(format!("{option} without a value"))?;
        match option.as_str() {
            "--endpoints" => endpoints = Some(word),
            "--topic" => topic = Some(word),
            "--group" => group = Some(word),
            "--count" => count = Some(positive(&option, &word)?),
            "--size" => size = positive(&option, &word)?,
            "--concurrency" => concurrency = Some(positive(&option, &word)?),
            "--batch" => batch = Some(positive(&option, &word)?),
            "--loops" => loops = positive(&option, &word)?,
            "--rate" => rate = Some(number::<f64>(&option, &word)?),
            _ => return Err(format!("{option} is no option")),
        }
    }
    if rate.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
        return Err("--rate has to be above zero".to_owned());
    }
    if mode.consumes() && group.is_none() {
        return Err(missing("--group"));
    }
    Ok(Parsed::Run(Options {
        mode,
        endpoints: endpoints.ok_or_else(|| missing("--endpoints"))?,
        topic: topic.ok_or_else(|| missing("--topic"))?,
        group: group.unwrap_or_default(),
        count: count.ok_or_else(|| missing("--count"))?,
        size,
        concurrency: concurrency
            .or((mode == Mode::RawConsume).then_some(1))
            .ok_or_else(|| missing("--concurrency"))?,
        batch: batch.unwrap_or(if mode == Mode::RawConsume { 32 } else { 1 }),
        loops,
        rate,
    }))
}

fn missing(option: &str) -> String {
    format!("{option} is missing")
}

fn positive(option: &str, word: &str) -> Result<usize, String> {
    match number(option, word)? {
        0 => Err(format!("{option} has to be above zero")),
        number => Ok(number),
    }
}

fn number<T: FromStr>(option: &str, word: &str) -> Result<T, String> {
    word.parse()
        .map_err(|_| format!("{option} takes no {word:?}"))
}
