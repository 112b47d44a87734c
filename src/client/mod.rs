//! The client: configuration, connections and threads that its producers and consumers share.

mod host;
mod pulse;
mod timers;

use std::{fmt, pin::pin, sync::Arc};

use tokio::sync::Mutex;

pub(crate) use host::Host;
pub(crate) use timers::with_timers;

use crate::{ClientConfig, Result};

/// A client of one RocketMQ cluster. Producers and consumers are started on it.
///
/// Cheap to clone, and usable from any thread. Connections and threads are made when the first
/// producer or consumer starts, shared by all of them, and end with the last of them and of the
/// clones of this.
///
/// ```no_run
/// use rocketmq_actors::{Client, ClientConfig, Delivery, Filter, PushConsumerSpec, Tls};
///
/// # async fn run() -> rocketmq_actors::Result<()> {
/// let client = Client::new(ClientConfig::builder("127.0.0.1:8081").tls(Tls::Off).build()?);
/// let spec = PushConsumerSpec::builder("billing")
///     .subscribe("orders", Filter::tag("paid"))
///     .handler(|delivery: Delivery| async move {
///         println!("{}", delivery.message_id());
///     })
///     .build()?;
/// let consumer = client.start(spec).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    config: Arc<ClientConfig>,
    host: Mutex<Option<Arc<Host>>>,
}

impl Client {
    /// A client with this configuration. Connects to nothing yet.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        Self(Arc::new(Inner {
            config: Arc::new(config),
            host: Mutex::default(),
        }))
    }

    /// Starts a producer or consumer and returns its handle once it is ready.
    ///
    /// # Errors
    /// Whatever kept it from being ready within the start time-out; nothing is left running then.
    ///
    /// Cancel safe: a start that is dropped is undone.
    pub async fn start<S: Startable>(&self, spec: S) -> Result<S::Handle> {
        self.start_as(None, spec).await
    }

    /// The same for one that has a place in a tree.
    pub(crate) async fn start_in<S: Startable>(
        &self,
        tree: sealed::InTree,
        spec: S,
    ) -> Result<S::Handle> {
        self.start_as(Some(tree), spec).await
    }

    async fn start_as<S: Startable>(
        &self,
        tree: Option<sealed::InTree>,
        spec: S,
    ) -> Result<S::Handle> {
        let host = self.host().await?;
        let config = self.0.config.clone();
        let runtime = host.runtime.clone();
        let starting = pin!(spec.start(sealed::Context { config, host, tree }));
        with_timers(&runtime, starting).await
    }

    async fn host(&self) -> Result<Arc<Host>> {
        let mut host = self.0.host.lock().await;
        if let Some(host) = &*host {
            return Ok(host.clone());
        }
        let made = Arc::new(Host::start(&self.0.config).await?);
        *host = Some(made.clone());
        Ok(made)
    }

    /// How many endpoints this client has connections to.
    pub async fn connections(&self) -> usize {
        self.0
            .host
            .lock()
            .await
            .as_ref()
            .map_or(0, |host| host.pool.len())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client")
            .field("config", &self.0.config)
            .finish_non_exhaustive()
    }
}

/// What can be started on a [`Client`]: [`PushConsumerSpec`](crate::PushConsumerSpec) and
/// [`ProducerSpec`](crate::ProducerSpec).
pub trait Startable: sealed::Start {}

impl<S: sealed::Start> Startable for S {}

pub(crate) mod sealed {
    use std::{future::Future, sync::Arc, time::Duration};

    use tokio::sync::watch;

    use super::Host;
    use crate::{
        ClientConfig, Error, Health, Result,
        topology::{Details, Events, Label, MemberReport, TreeNode},
    };

    /// What a start needs of its client.
    #[derive(Debug)]
    pub struct Context {
        pub(crate) config: Arc<ClientConfig>,
        pub(crate) host: Arc<Host>,
        pub(crate) tree: Option<InTree>,
    }

    /// The place of what is started as a part of a tree.
    #[derive(Debug)]
    pub(crate) struct InTree {
        pub(crate) path: Arc<str>,
        /// Of the whole tree.
        pub(crate) events: Events,
    }

    impl Context {
        /// The path and the events of what is started: its own, where it is in no tree.
        pub(crate) fn place(&self, own_name: impl FnOnce() -> String) -> (Arc<str>, Events) {
            match &self.tree {
                Some(tree) => (tree.path.clone(), Events::part_of(&tree.events)),
                None => (own_name().into(), Events::new()),
            }
        }
    }

    /// Starts what a spec describes.
    pub trait Start: Send {
        /// What controls it once it runs.
        type Handle: Running;

        /// Runs the start to its end.
        fn start(self, on: Context) -> impl Future<Output = Result<Self::Handle>> + Send;

        /// The child of a topology that its handler is, if it is one.
        fn refers_to(&self) -> Option<Label> {
            None
        }
    }

    /// What a topology needs of a running producer or consumer.
    pub trait Running: std::fmt::Debug + Clone + Send + Sync + 'static {
        /// Waits until it has failed for good.
        fn failed(&self) -> impl Future<Output = Error> + Send;

        /// Shuts it down; when it is shut down already, tells the report again.
        fn shutdown(&self, grace: Duration) -> impl Future<Output = MemberReport> + Send;

        /// How it is.
        fn health(&self) -> watch::Receiver<Health>;

        /// Its figures, and its actors as they are now.
        fn look(&self) -> (Details, Vec<TreeNode>);

        /// Whether a handler of it makes this call.
        fn is_calling(&self) -> bool;

        /// Lets it end without waiting for anything, unless it is being shut down.
        fn abandon(&self);
    }
}
