//! The sessions of one producer or consumer, by endpoint.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use actix::Addr;
use arc_swap::ArcSwap;

use crate::{
    actors::{SessionActor, SessionLife},
    messages::session::SettingsLost,
    model::Endpoints,
    topology::ChildControl,
};

/// A session as others see it.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) life: Arc<SessionLife>,
    pub(crate) addr: Addr<SessionActor>,
    pub(crate) control: ChildControl,
}

impl Session {
    /// The server said that it does not know this client: the settings go there again before
    /// anything else does. `generation` is the one the refused call was made in.
    pub(crate) fn settings_lost(&self, generation: u64) {
        // One message a refused call; calls are bounded by permits.
        self.addr.do_send(SettingsLost { generation });
    }
}

/// The session table. It outlives restarts of the route actor, which fills it.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    table: Mutex<BTreeMap<Endpoints, Session>>,
    wanted: ArcSwap<BTreeSet<Endpoints>>,
}

impl Sessions {
    /// Whether the settings of these endpoints are applied. Asked for every send and receive.
    pub(crate) fn is_ready(&self, endpoints: &Endpoints) -> bool {
        let table = self.lock();
        table
            .get(endpoints)
            .is_some_and(|session| session.life.is_ready())
    }

    pub(crate) fn get(&self, endpoints: &Endpoints) -> Option<Session> {
        self.lock().get(endpoints).cloned()
    }

    /// The generation of the session of these endpoints.
    pub(crate) fn generation(&self, endpoints: &Endpoints) -> Option<u64> {
        let table = self.lock();
        table
            .get(endpoints)
            .map(|session| session.life.generation())
    }

    /// The session of these endpoints, made by `start` if there is none.
    pub(crate) fn get_or_start(
        &self,
        endpoints: &Endpoints,
        start: impl FnOnce() -> Session,
    ) -> Session {
        let mut table = self.lock();
        table.entry(endpoints.clone()).or_insert_with(start).clone()
    }

    /// Removes a session that retires, unless another took its place.
    pub(crate) fn forget(&self, life: &Arc<SessionLife>) {
        let mut table = self.lock();
        if table
            .get(life.endpoints())
            .is_some_and(|session| Arc::ptr_eq(&session.life, life))
        {
            table.remove(life.endpoints());
        }
    }

    /// Forgets all: the member has ended.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    pub(crate) fn all(&self) -> Vec<Session> {
        self.lock().values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Sets which endpoints are named by routes or assignments; other sessions retire.
    pub(crate) fn want(&self, endpoints: BTreeSet<Endpoints>) {
        self.wanted.store(Arc::new(endpoints));
    }

    /// The endpoints that routes or assignments name.
    pub(crate) fn wanted(&self) -> Arc<BTreeSet<Endpoints>> {
        self.wanted.load_full()
    }

    pub(crate) fn is_wanted(&self, endpoints: &Endpoints) -> bool {
        self.wanted.load().contains(endpoints)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Endpoints, Session>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
