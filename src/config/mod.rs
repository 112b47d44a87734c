//! Configuration of a client: where to connect, as whom, and the numbers it lives by.

mod intervals;
mod tls;

use std::{fmt, sync::Arc, time::Duration};

pub use intervals::Intervals;
pub use tls::{Tls, TlsOptions};

use crate::{
    Error, Result,
    environment::{Connector, Environment, SystemClock, WallClock},
    model::{CredentialsProvider, Endpoints, body, endpoints::AccessPoint, header, time::A_YEAR},
};

/// Limit of what is decoded as one gRPC message: the largest legal body of 4 MiB with its
/// properties, and as much again.
const DECODE_LIMIT: usize = 8 * 1024 * 1024;

/// Configuration of a [`Client`](crate::Client), checked when it was built.
///
/// ```
/// use rocketmq_actors::{ClientConfig, Tls};
///
/// let config = ClientConfig::builder("127.0.0.1:8081").tls(Tls::Off).build()?;
/// # Ok::<(), rocketmq_actors::Error>(())
/// ```
#[derive(Clone)]
pub struct ClientConfig {
    pub(crate) endpoints: Endpoints,
    pub(crate) tls: Tls,
    pub(crate) credentials: Option<Arc<dyn CredentialsProvider>>,
    pub(crate) namespace: String,
    pub(crate) request_timeout: Duration,
    pub(crate) settings_timeout: Duration,
    pub(crate) start_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) intervals: Intervals,
    pub(crate) all_endpoints: bool,
    pub(crate) decode_limit: usize,
    pub(crate) inflate_limit: usize,
    pub(crate) environment: Environment,
    pub(crate) on_this_thread: bool,
}

impl ClientConfig {
    /// Starts a configuration for the access point `endpoints`: `host:port`, several separated by
    /// `;`, with `http://` or `https://` before them to say whether TLS is on.
    pub fn builder(endpoints: impl Into<String>) -> ClientConfigBuilder {
        ClientConfigBuilder {
            endpoints: endpoints.into(),
            tls: None,
            credentials: None,
            namespace: String::new(),
            request_timeout: Duration::from_secs(3),
            settings_timeout: None,
            start_timeout: Duration::from_secs(9),
            connect_timeout: Duration::from_secs(3),
            intervals: Intervals::default(),
            all_endpoints: false,
            decode_limit: DECODE_LIMIT,
            inflate_limit: body::DEFAULT_LIMIT,
            clock: Arc::new(SystemClock),
            connector: Connector::tcp(),
            seed: None,
            on_this_thread: false,
        }
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientConfig")
            .field("endpoints", &self.endpoints)
            .field("tls", &self.tls)
            .field("credentials", &self.credentials.is_some())
            .field("namespace", &self.namespace)
            .field("request_timeout", &self.request_timeout)
            .field("start_timeout", &self.start_timeout)
            .finish_non_exhaustive()
    }
}

/// Builds a [`ClientConfig`]; each option says its default.
#[must_use]
pub struct ClientConfigBuilder {
    endpoints: String,
    tls: Option<Tls>,
    credentials: Option<Arc<dyn CredentialsProvider>>,
    namespace: String,
    request_timeout: Duration,
    settings_timeout: Option<Duration>,
    start_timeout: Duration,
    connect_timeout: Duration,
    intervals: Intervals,
    all_endpoints: bool,
    decode_limit: usize,
    inflate_limit: usize,
    clock: Arc<dyn WallClock>,
    connector: Connector,
    seed: Option<u64>,
    on_this_thread: bool,
}

impl ClientConfigBuilder {
    /// Whether connections are encrypted. Default: on, with the system's roots; or what the
    /// scheme of the endpoints says.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Who signs the requests; asked for each one. Default: nobody.
    pub fn credentials(mut self, provider: impl CredentialsProvider + 'static) -> Self {
        self.credentials = Some(Arc::new(provider));
        self
    }

    /// The namespace of all topics and groups. Default: none.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Deadline of a single request. Default: 3 s.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// How long the first settings of an endpoint may take. Default: 3 s more than a request.
    pub fn settings_timeout(mut self, timeout: Duration) -> Self {
        self.settings_timeout = Some(timeout);
        self
    }

    /// How long a start may take, all attempts included. Default: 9 s.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// How long one connection may take to be made. Default: 3 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Periods of the background work. Default: those of [`Intervals`].
    pub fn intervals(mut self, intervals: Intervals) -> Self {
        self.intervals = intervals;
        self
    }

    /// Whether a route is used only when every new endpoint in it answered, as the official Java
    /// client has it. Default: no, the living ones are used and the others join later.
    pub fn require_all_endpoints(mut self, require: bool) -> Self {
        self.all_endpoints = require;
        self
    }

    /// Largest reply that is decoded, in bytes. Default: 8 MiB; at least 4 MiB and 64 KiB.
    pub fn decode_limit(mut self, bytes: usize) -> Self {
        self.decode_limit = bytes;
        self
    }

    /// Largest body after decompression, in bytes. Default: 32 MiB.
    pub fn inflate_limit(mut self, bytes: usize) -> Self {
        self.inflate_limit = bytes;
        self
    }

    /// The wall clock. Default: the system's.
    pub fn clock(mut self, clock: impl WallClock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// How byte streams are opened. Default: TCP.
    pub fn connector(mut self, connector: Connector) -> Self {
        self.connector = connector;
        self
    }

    /// Makes every random choice follow from this number. Default: random.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Runs everything on the arbiter (or `LocalSet`) that starts the client, instead of on
    /// threads of its own. For tests under a paused clock. Default: no.
    pub fn on_this_thread(mut self, here: bool) -> Self {
        self.on_this_thread = here;
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) naming the option: endpoints that
    /// cannot be read, a zero time, a namespace that fits no header, TLS in a build without it.
    pub fn build(self) -> Result<ClientConfig> {
        let AccessPoint {
            endpoints,
            tls: said,
        } = AccessPoint::parse(&self.endpoints)?;
        let tls = self.tls.unwrap_or_else(|| match said {
            Some(false) => Tls::Off,
            Some(true) | None => Tls::default(),
        });
        check_tls(&tls)?;
        if !self.namespace.is_empty() {
            header::check("namespace", &self.namespace)?;
        }
        let default = self.request_timeout.saturating_add(Duration::from_secs(3));
        let settings_timeout = self.settings_timeout.unwrap_or(default.min(A_YEAR));
        for (name, value) in [
            ("request_timeout", self.request_timeout),
            ("settings_timeout", settings_timeout),
            ("start_timeout", self.start_timeout),
            ("connect_timeout", self.connect_timeout),
        ] {
            check_duration(name, value)?;
        }
        self.intervals.check()?;
        for (name, value, least) in [
            (
                "decode_limit",
                self.decode_limit,
                4 * 1024 * 1024 + 64 * 1024,
            ),
            ("inflate_limit", self.inflate_limit, 1),
        ] {
            if value < least {
                return Err(Error::invalid(format!(
                    "{name} is {value}, the least is {least}"
                )));
            }
        }
        Ok(ClientConfig {
            endpoints,
            tls,
            credentials: self.credentials,
            namespace: self.namespace,
            request_timeout: self.request_timeout,
            settings_timeout,
            start_timeout: self.start_timeout,
            connect_timeout: self.connect_timeout,
            intervals: self.intervals,
            all_endpoints: self.all_endpoints,
            decode_limit: self.decode_limit,
            inflate_limit: self.inflate_limit,
            environment: Environment::new(self.clock, self.connector, self.seed),
            on_this_thread: self.on_this_thread,
        })
    }
}

impl fmt::Debug for ClientConfigBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientConfigBuilder")
            .field("endpoints", &self.endpoints)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

pub(crate) fn check_duration(name: &str, value: Duration) -> Result<()> {
    if value.is_zero() || value > A_YEAR {
        return Err(Error::invalid(format!(
            "{name} is {value:?}, it must be more than 0 and at most a year"
        )));
    }
    Ok(())
}

fn check_tls(tls: &Tls) -> Result<()> {
    if cfg!(not(feature = "tls")) && matches!(tls, Tls::On(_)) {
        return Err(Error::invalid(
            "TLS is on, but this build has no `tls` feature: enable it, or say Tls::Off",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn timeout(timeout: Duration) -> Result<ClientConfig> {
        ClientConfig::builder("127.0.0.1:8081")
            .tls(Tls::Off)
            .request_timeout(timeout)
            .build()
    }

    #[test]
    fn a_time_of_nothing_or_of_more_than_a_year_is_refused_in_words_that_say_so() {
        for span in [
            Duration::ZERO,
            A_YEAR + Duration::from_nanos(1),
            Duration::MAX,
        ] {
            let error = timeout(span).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument);
            let text = error.to_string();
            assert!(text.contains("request_timeout is "), "{text}");
            assert!(text.contains("more than 0 and at most a year"), "{text}");
        }
    }

    #[test]
    fn the_default_of_the_settings_timeout_is_never_out_of_bounds() {
        assert_eq!(timeout(A_YEAR).unwrap().settings_timeout, A_YEAR);
    }
}
