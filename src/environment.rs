//! The outside world as constructor arguments: wall clock, randomness and connections.
//!
//! Monotonic time is not here: it is tokio's, which a test pauses.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::io::{AsyncRead, AsyncWrite};

/// A connection that was silent for so long is probed by the kernel.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Tells the time of day, for signatures and message ids.
pub trait WallClock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> SystemTime;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl WallClock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A byte stream to a server.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send>>;

/// Opens byte streams to servers; TCP unless a client is given another one.
///
/// Tests replace it to reach a broker in the same process. TLS, where it is on, runs on top.
#[derive(Clone)]
pub struct Connector(Arc<dyn Fn(String, u16) -> Connecting + Send + Sync>);

impl Connector {
    /// A connector that calls `connect` with host and port.
    pub fn new<F, Fut, S>(connect: F) -> Self
    where
        F: Fn(String, u16) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<S>> + Send + 'static,
        S: Io,
    {
        Self(Arc::new(move |host, port| {
            let connecting = connect(host, port);
            Box::pin(async move { Ok(Box::new(connecting.await?) as Box<dyn Io>) })
        }))
    }

    /// Plain TCP without delay, kept alive by the kernel.
    pub fn tcp() -> Self {
        Self::new(|host: String, port| async move {
            let stream = tokio::net::TcpStream::connect((host.as_str(), port)).await?;
            stream.set_nodelay(true)?;
            // By the kernel: servers punish HTTP/2 pings more often than every five minutes.
            let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE);
            socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
            Ok(stream)
        })
    }

    pub(crate) async fn connect(&self, host: &str, port: u16) -> io::Result<Box<dyn Io>> {
        (self.0)(host.to_owned(), port).await
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// A random UUID (version 4) as text.
pub(crate) fn random_uuid(rng: &mut fastrand::Rng) -> String {
    uuid::Builder::from_random_bytes(rng.u128(..).to_be_bytes())
        .into_uuid()
        .to_string()
}

/// What every part of one client shares of the outside world.
#[derive(Clone)]
pub(crate) struct Environment {
    pub(crate) clock: Arc<dyn WallClock>,
    pub(crate) connector: Connector,
    random: Arc<Mutex<fastrand::Rng>>,
}

impl Environment {
    pub(crate) fn new(clock: Arc<dyn WallClock>, connector: Connector, seed: Option<u64>) -> Self {
        let rng = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        Self {
            clock,
            connector,
            random: Arc::new(Mutex::new(rng)),
        }
    }

    /// A generator of its own for one part, derived from the client's seed.
    pub(crate) fn rng(&self) -> fastrand::Rng {
        self.random
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fork()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Environment").finish_non_exhaustive()
    }
}
