//! A producer or consumer as a child: started anew from its spec by each restart.

use std::{
    cell::Cell,
    convert::Infallible,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{self, Poll},
    time::Duration,
};

use futures::future::LocalBoxFuture;
use tokio_util::sync::CancellationToken;

use super::{
    Exit, event::Events, inside::Shown, life::Life, member_ref::MemberRef, records::Records,
    supervisor::ChildPolicy, vitals::Vitals,
};
use crate::{
    Client,
    client::{
        Startable,
        sealed::{InTree, Running},
    },
};

/// Of the time a member has to stop, what it may need to take leave of the servers.
const LEAVE: Duration = Duration::from_secs(1);

/// What all generations of a member share.
#[derive(Clone)]
pub(super) struct MemberSpec<S: Startable> {
    pub(super) client: Client,
    pub(super) spec: S,
    pub(super) reference: MemberRef<S::Handle>,
}

/// The generations of a member.
pub(super) struct MemberLife<S: Startable> {
    shared: Rc<Shared<S>>,
    generation: LocalBoxFuture<'static, Exit>,
    stop: CancellationToken,
}

struct Shared<S: Startable> {
    member: MemberSpec<S>,
    path: Arc<str>,
    records: Records,
    vitals: Vitals,
    events: Events,
    shown: Arc<Shown<S::Handle>>,
    up: Cell<bool>,
    /// What a stop gives for handlers to finish.
    grace: Cell<Duration>,
}

impl<S: Startable + Clone + 'static> MemberLife<S> {
    pub(super) fn new(
        member: MemberSpec<S>,
        path: Arc<str>,
        policy: &ChildPolicy,
        shown: Arc<Shown<S::Handle>>,
    ) -> Self {
        let shared = Rc::new(Shared {
            member,
            path,
            records: policy.records.clone(),
            vitals: policy.vitals.clone(),
            events: policy.events.clone(),
            shown,
            up: Cell::new(false),
            grace: Cell::default(),
        });
        let stop = CancellationToken::new();
        Self {
            generation: Box::pin(live(Rc::clone(&shared), stop.clone())),
            shared,
            stop,
        }
    }
}

async fn live<S: Startable + Clone>(shared: Rc<Shared<S>>, stop: CancellationToken) -> Exit {
    let MemberSpec { client, spec, .. } = &shared.member;
    let handle = match stop
        .run_until_cancelled(client.start_in(shared.place(), spec.clone()))
        .await
    {
        None => return Exit::Shutdown,
        Some(Ok(handle)) => handle,
        Some(Err(error)) => return shared.fail(error),
    };
    let reference = &shared.member.reference;
    reference.resolve(handle.clone());
    shared.shown.set(Some(handle.clone()));
    let running = Abandoned {
        handle,
        reference,
        shown: &shared.shown,
    };
    shared.up.set(true);
    let ended = async {
        tokio::select! {
            error = running.handle.failed() => error,
            never = shared.report_health(&running.handle) => match never {},
        }
    };
    let error = stop.run_until_cancelled(ended).await;
    // Nobody shall find one that is going down.
    reference.clear();
    let report = running.handle.shutdown(shared.grace.take()).await;
    shared.records.reported(Arc::clone(&shared.path), report);
    match error {
        None => Exit::Shutdown,
        Some(error) => shared.fail(error),
    }
}

impl<S: Startable> Shared<S> {
    fn place(&self) -> InTree {
        InTree {
            path: Arc::clone(&self.path),
            events: self.events.clone(),
        }
    }

    /// Tells the tree how it is, for ever.
    async fn report_health(&self, running: &S::Handle) -> Infallible {
        let mut health = running.health();
        loop {
            let now = health.borrow_and_update().clone();
            self.vitals.member(&self.path, now);
            if health.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn fail(&self, error: crate::Error) -> Exit {
        let exit = Exit::Failed(error.to_string());
        self.records.failed(error);
        exit
    }
}

/// Ends a member whose generation is dropped before its shutdown; after one it does nothing.
struct Abandoned<'a, H: Running> {
    handle: H,
    reference: &'a MemberRef<H>,
    shown: &'a Shown<H>,
}

impl<H: Running> Drop for Abandoned<'_, H> {
    fn drop(&mut self) {
        self.reference.clear();
        self.shown.set(None);
        self.handle.abandon();
    }
}

impl<S: Startable + Clone + 'static> Life for MemberLife<S> {
    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<Exit> {
        Pin::new(&mut self.generation).poll(cx)
    }

    fn is_up(&self) -> bool {
        self.shared.up.get()
    }

    fn restart(&mut self) -> Result<(), Exit> {
        self.shared.up.set(false);
        self.stop = CancellationToken::new();
        self.generation = Box::pin(live(Rc::clone(&self.shared), self.stop.clone()));
        Ok(())
    }

    fn ask_to_stop(&mut self, limit: Duration) {
        self.shared.grace.set(limit.saturating_sub(LEAVE));
        self.stop.cancel();
    }
}
