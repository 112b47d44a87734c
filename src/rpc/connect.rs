//! How a channel reaches an endpoint: its byte stream, TLS, and a look at who answers.

use std::{
    fmt, io,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    runtime::Handle,
};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::dial::{Dial, Purpose};
use crate::{
    Error, ErrorKind, Result,
    config::Tls,
    environment::{Connector, Environment, Io},
    model::{Address, Endpoints},
};

/// What may be on its way to one connection, unread. A reply that waits for room in its consumer's
/// cache holds up to 2 MiB of it, hyper's window of a stream; so many more must fit beside each
/// other that none holds up another consumer.
const CONNECTION_WINDOW: u32 = 256 << 20;

/// What the first byte of a plain-text peer gave away.
#[derive(Debug, Default)]
pub(crate) struct PeerNote(AtomicU8);

impl PeerNote {
    const TLS: u8 = 1;
    const HTTP1: u8 = 2;

    fn see(&self, first: u8) {
        let note = match first {
            // A TLS alert or handshake record.
            0x15 | 0x16 => Self::TLS,
            // "HTTP/1.1 400 ..."
            b'H' => Self::HTTP1,
            // An HTTP/2 frame header: the length of a first SETTINGS frame starts with zero.
            _ => 0,
        };
        self.0.store(note, Ordering::Relaxed);
    }

    /// Why calls over this connection cannot work, if the peer gave it away.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self.0.load(Ordering::Relaxed) {
            Self::TLS => Some("the server speaks TLS, but TLS is off in the configuration"),
            Self::HTTP1 => Some("the server speaks HTTP/1, is this the gRPC port of a proxy?"),
            _ => None,
        }
    }
}

/// A plain-text stream whose first byte is looked at.
struct Observed {
    inner: Box<dyn Io>,
    note: Option<Arc<PeerNote>>,
}

impl AsyncRead for Observed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if let (Some(note), Some(first)) = (&self.note, buffer.filled().get(before)) {
            note.see(*first);
            self.note = None;
        }
        polled
    }
}

impl AsyncWrite for Observed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

/// Spawns a channel's tasks on one runtime, whichever thread made the channel.
#[derive(Clone)]
struct OnRuntime(Handle);

impl<F> hyper::rt::Executor<F> for OnRuntime
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

/// Makes channels: connector, TLS, and the runtime they live on.
pub(crate) struct Transport {
    connector: Connector,
    tls: Tls,
    connect_timeout: Duration,
    runtime: Handle,
    environment: Environment,
    signed: bool,
}

impl Transport {
    pub(crate) fn new(
        environment: &Environment,
        tls: Tls,
        connect_timeout: Duration,
        runtime: Handle,
    ) -> Self {
        let connector = environment.connector.clone();
        Self {
            connector,
            tls,
            connect_timeout,
            runtime,
            environment: environment.clone(),
            signed: false,
        }
    }

    fn warn_of_plain_text(&self, endpoints: &Endpoints) {
        if !matches!(self.tls, Tls::Off) || endpoints.addresses().iter().all(is_loopback) {
            return;
        }
        if self.signed {
            tracing::warn!(
                endpoint = %endpoints,
                "TLS is off: whoever sits between reads messages and signed headers, and can \
                 send them again"
            );
        } else {
            tracing::warn!(endpoint = %endpoints, "TLS is off: whoever sits between reads messages");
        }
    }

    /// Requests over this are signed, which is worth a warning where anybody can read them.
    pub(crate) fn signed(mut self, signed: bool) -> Self {
        self.signed = signed;
        self
    }

    /// The addresses of a slot that has no predecessor, in random order.
    pub(super) fn addresses(&self, endpoints: &Endpoints) -> Vec<Address> {
        self.warn_of_plain_text(endpoints);
        let mut addresses = endpoints.addresses().to_vec();
        self.environment.rng().shuffle(&mut addresses);
        addresses
    }

    /// A channel that connects at its first call.
    pub(super) fn channel(
        &self,
        endpoints: &Endpoints,
        purpose: Purpose,
        dial: &Arc<Dial>,
        note: &Arc<PeerNote>,
    ) -> Result<Channel> {
        let endpoint = self.endpoint(endpoints)?;
        let (connector, dial, note) = (self.connector.clone(), dial.clone(), note.clone());
        let plain = matches!(self.tls, Tls::Off);
        let limit = self.connect_timeout;
        let connect = service_fn(move |_: Uri| {
            let (connector, dial) = (connector.clone(), dial.clone());
            let note = plain.then(|| note.clone());
            async move {
                let inner = dial.connect(purpose, &connector, limit).await?;
                Ok::<_, io::Error>(TokioIo::new(Observed { inner, note }))
            }
        });
        Ok(endpoint.connect_with_connector_lazy(connect))
    }

    fn endpoint(&self, endpoints: &Endpoints) -> Result<Endpoint> {
        let scheme = if matches!(self.tls, Tls::Off) {
            "http"
        } else {
            "https"
        };
        let authority = endpoints.authority();
        let uri = Uri::builder()
            .scheme(scheme)
            .authority(authority.as_str())
            .path_and_query("/")
            .build()
            .map_err(|error| {
                Error::invalid("not an address")
                    .endpoint(endpoints)
                    .caused_by(error)
            })?;
        let endpoint = Endpoint::from(uri)
            .connect_timeout(self.connect_timeout)
            .http2_max_header_list_size(64 * 1024)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .executor(OnRuntime(self.runtime.clone()));
        secure(endpoint, &self.tls).map_err(|error| {
            Error::new(ErrorKind::Tls, "the TLS options cannot be used")
                .endpoint(endpoints)
                .caused_by(error)
        })
    }
}

fn is_loopback(address: &Address) -> bool {
    let ip = address.host().parse::<IpAddr>();
    ip.map_or(address.host() == "localhost", |ip| ip.is_loopback())
}

impl fmt::Debug for Transport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Transport")
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "tls")]
use super::tls::secure;

#[cfg(not(feature = "tls"))]
fn secure(endpoint: Endpoint, _: &Tls) -> Result<Endpoint, tonic::transport::Error> {
    Ok(endpoint)
}
