//! Connections: taking them, serving them, cutting them.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rocketmq_proto::v2::messaging_service_server::MessagingServiceServer;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cluster::Cluster;
use crate::node::Node;
use crate::service::Port;
use crate::wire::Wire;

/// What the real proxy takes at most: 130 MiB.
const MAX_MESSAGE: usize = 130 * 1024 * 1024;

/// After a failed accept; it fails again at once when descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Streams that a client may give up at one time: more than it is taken to have.
const MAX_RESETS: usize = 100_000;

/// How many bytes an in-memory pipe holds in each direction.
const PIPE: usize = 256 * 1024;

/// Runs a connection's streams; they end with it.
#[derive(Clone, Debug)]
struct Spawner {
    tasks: TaskTracker,
    connection: CancellationToken,
}

impl<F> hyper::rt::Executor<F> for Spawner
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let connection = self.connection.clone();
        self.tasks.spawn(async move {
            connection.run_until_cancelled(stream).await;
        });
    }
}

impl Cluster {
    /// A pipe to the node at this address.
    pub(crate) fn pipe(self: &Arc<Self>, host: &str, port: u16) -> io::Result<DuplexStream> {
        let node = self
            .nodes
            .iter()
            .find(|node| node.host == host && node.port == port)
            .filter(|node| !node.refuses())
            .ok_or(io::ErrorKind::ConnectionRefused)?;
        let (near, far) = tokio::io::duplex(PIPE);
        self.serve(node, far, |_| {});
        Ok(near)
    }

    /// Takes connections until the node stops.
    pub(crate) fn listen(self: &Arc<Self>, node: &Arc<Node>, listener: TcpListener) {
        let cluster = Arc::clone(self);
        let node = Arc::clone(node);
        let running = node.running();
        let open = node.open(|node| &node.listeners);
        self.tasks.spawn(async move {
            let accepting = async {
                loop {
                    match listener.accept().await {
                        Ok((stream, _)) => cluster.accept(&node, stream),
                        // Out of descriptors, or the peer was gone already: the next may do.
                        Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                    }
                }
            };
            running.run_until_cancelled(accepting).await;
            drop(listener);
            drop(open);
            cluster.recorder.touch();
        });
    }

    fn accept(self: &Arc<Self>, node: &Arc<Node>, stream: TcpStream) {
        if node.refuses() {
            // Dropped, it is reset: the nearest to a refusal that an open port can do.
            let _ = stream.set_zero_linger();
            return;
        }
        // Only latency depends on it.
        let _ = stream.set_nodelay(true);
        self.serve(node, stream, |stream| {
            // Without it the peer sees an orderly end; nothing else is lost.
            let _ = stream.set_zero_linger();
        });
    }

    fn http(&self, connection: CancellationToken) -> http2::Builder<Spawner> {
        let mut http = http2::Builder::new(Spawner {
            tasks: self.tasks.clone(),
            connection,
        });
        http.timer(TokioTimer::new())
            .max_concurrent_streams(self.options.max_concurrent_streams)
            .max_pending_accept_reset_streams(MAX_RESETS)
            .max_local_error_reset_streams(None);
        http
    }

    /// Serves one connection; `cut` prepares the stream for being cut off.
    fn serve<T>(self: &Arc<Self>, node: &Arc<Node>, io: T, cut: fn(&T))
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connection = node.running().child_token();
        let port = Port {
            cluster: Arc::clone(self),
            node: Arc::clone(node),
            connection: connection.clone(),
            number: self.number(),
        };
        let service = MessagingServiceServer::new(port)
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE);
        let open = node.open(|node| &node.connections);
        let io = TokioIo::new(Wire::new(
            io,
            Arc::clone(&node.valve),
            connection.clone(),
            cut,
        ));
        let served = self
            .http(connection.clone())
            .serve_connection(io, TowerToHyperService::new(service));
        let node = Arc::clone(node);
        let cluster = Arc::clone(self);
        self.tasks.spawn(async move {
            let served = async {
                tokio::select! {
                    () = node.reset.notified() => connection.cancel(),
                    served = served => if let Err(error) = served {
                        tracing::debug!(%error, "connection ended");
                    },
                }
            };
            connection.run_until_cancelled(served).await;
            connection.cancel();
            drop(open);
            cluster.recorder.touch();
        });
    }
}

/// The port is kept over a restart, so that clients find the node again.
pub(crate) async fn bind(port: u16) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
