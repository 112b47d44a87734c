//! The threads of a client, and the connections that live on them.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use actix::{Arbiter, ArbiterHandle};
use tokio::{runtime::Handle, sync::oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::pulse::Pulse;
use crate::{
    ClientConfig, Error, ErrorKind, Result,
    rpc::{ChannelPool, Transport},
    topology::{Place, local_runtime, spawn_thread},
};

/// The first check for idle channels comes so long after the start.
const FIRST_IDLE_CHECK: Duration = Duration::from_secs(5);

/// Where the actors of a client run. Ends with the last of its producers and consumers.
///
/// Control actors and connections have a thread of their own, so that no handler and no flood of
/// messages can hold back a heartbeat.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) io: Place,
    pub(crate) data: Place,
    pub(crate) pool: Arc<ChannelPool>,
    /// Of the thread of control actors and connections.
    pub(crate) runtime: Handle,
    /// Of the data thread, where it is another than that of connections.
    pub(crate) pulse: Option<Arc<Pulse>>,
    _stop: DropGuard,
}

impl Host {
    pub(crate) async fn start(config: &ClientConfig) -> Result<Self> {
        if config.on_this_thread {
            Self::here(config)
        } else {
            Self::threads(config).await
        }
    }

    fn here(config: &ClientConfig) -> Result<Self> {
        let runtime = Handle::try_current()
            .map_err(|error| Error::invalid("no tokio runtime runs here").caused_by(error))?;
        let stop = CancellationToken::new();
        let pool = channels(config, runtime.clone());
        let clearing = clear_idle(pool.clone(), config.clone(), stop.clone());
        // Nothing tells beforehand whether this thread runs local tasks.
        let spawned = catch_unwind(AssertUnwindSafe(|| tokio::task::spawn_local(clearing)));
        if spawned.is_err() {
            return Err(Error::invalid(
                "on_this_thread needs an actix arbiter or a tokio LocalSet on this thread",
            ));
        }
        Ok(Self {
            io: Place::Here,
            data: Place::Here,
            pool,
            runtime,
            pulse: None,
            _stop: stop.drop_guard(),
        })
    }

    /// Two threads of the client's own.
    async fn threads(config: &ClientConfig) -> Result<Self> {
        let stop = CancellationToken::new();
        let (ready, started) = oneshot::channel();
        let ended = stop.clone();
        let pulse = Pulse::new(config.intervals.blocked_after);
        let beating = pulse.clone();
        spawn_thread("rocketmq-io", move || run_thread(ready, beating, ended))
            .map_err(|error| Error::new(ErrorKind::Server, "no thread").caused_by(error))?;
        let not_started = || Error::new(ErrorKind::Server, "the client's threads did not start");
        let Threads { io, data, runtime } = started
            .await
            .map_err(|_| not_started())?
            .map_err(|error| not_started().caused_by(error))?;
        let pool = channels(config, runtime.clone());
        runtime.spawn(clear_idle(pool.clone(), config.clone(), stop.clone()));
        Ok(Self {
            io: Place::Arbiter(io),
            data: Place::Arbiter(data),
            pool,
            runtime,
            pulse: Some(pulse),
            _stop: stop.drop_guard(),
        })
    }
}

struct Threads {
    io: ArbiterHandle,
    data: ArbiterHandle,
    runtime: Handle,
}

async fn run_thread(
    ready: oneshot::Sender<io::Result<Threads>>,
    pulse: Arc<Pulse>,
    stop: CancellationToken,
) {
    let data = match local_runtime() {
        Ok(runtime) => Arbiter::with_tokio_rt(move || runtime),
        Err(error) => {
            // Whoever waits no longer needs no error.
            let _ = ready.send(Err(error));
            return;
        }
    };
    data.spawn(async move { match pulse.beat().await {} });
    let threads = Threads {
        io: Arbiter::current(),
        data: data.handle(),
        runtime: Handle::current(),
    };
    if ready.send(Ok(threads)).is_ok() {
        stop.cancelled().await;
    }
    data.stop();
}

fn channels(config: &ClientConfig, runtime: Handle) -> Arc<ChannelPool> {
    let transport = Transport::new(
        &config.environment,
        config.tls.clone(),
        config.connect_timeout,
        runtime,
    );
    let signed = config.credentials.is_some();
    Arc::new(ChannelPool::new(transport.signed(signed)))
}

async fn clear_idle(pool: Arc<ChannelPool>, config: ClientConfig, stop: CancellationToken) {
    let work = async {
        tokio::time::sleep(FIRST_IDLE_CHECK).await;
        loop {
            for endpoint in pool.clear_idle(config.intervals.idle_after) {
                tracing::debug!(%endpoint, "idle channel closed");
            }
            tokio::time::sleep(config.intervals.idle_check).await;
        }
    };
    stop.run_until_cancelled(work).await;
}
