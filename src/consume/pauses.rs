//! Which topics of a consumer are paused.

use std::{collections::BTreeSet, sync::Arc};

use tokio::sync::watch;

use super::{Subscription, consumption::Consumption};
use crate::{Error, Result, health::Reason, topology::EventKind};

/// The paused topics of one consumer. Outlives restarts of its actors.
#[derive(Debug, Default)]
pub(crate) struct Pauses(watch::Sender<BTreeSet<Arc<str>>>);

impl Pauses {
    pub(crate) fn contains(&self, topic: &str) -> bool {
        self.0.borrow().contains(topic)
    }

    pub(crate) fn topics(&self) -> BTreeSet<Arc<str>> {
        self.0.borrow().clone()
    }

    /// Waits until a topic may be received from. Cancel safe.
    pub(super) async fn over(&self, topic: &str) {
        let mut paused = self.0.subscribe();
        // An error is impossible, for the sender is here.
        let _ = paused.wait_for(|paused| !paused.contains(topic)).await;
    }

    /// Sets which topics are paused; says whether that changed anything.
    fn change(&self, change: impl FnOnce(&mut BTreeSet<Arc<str>>)) -> bool {
        self.0.send_if_modified(|paused| {
            let before = paused.clone();
            change(paused);
            *paused != before
        })
    }
}

impl Consumption {
    /// Whether no topic may be received from.
    pub(crate) fn all_paused(&self) -> bool {
        let paused = self.pauses.0.borrow();
        self.topics().all(|topic| paused.contains(topic))
    }

    pub(super) fn pause_all(&self) {
        let all: BTreeSet<_> = self.topics().cloned().collect();
        if self.pauses.change(|paused| *paused = all) {
            self.pauses_changed(EventKind::Paused { topic: None });
        }
    }

    pub(super) fn resume_all(&self) {
        if self.pauses.change(BTreeSet::clear) {
            self.pauses_changed(EventKind::Resumed { topic: None });
        }
    }

    /// # Errors
    /// The topic is not subscribed.
    pub(super) fn pause(&self, topic: &str) -> Result<()> {
        let topic = self.subscribed(topic)?;
        let changed = self.pauses.change(|paused| {
            paused.insert(topic.clone());
        });
        if changed {
            self.pauses_changed(EventKind::Paused { topic: Some(topic) });
        }
        Ok(())
    }

    /// # Errors
    /// The topic is not subscribed.
    pub(super) fn resume(&self, topic: &str) -> Result<()> {
        let topic = self.subscribed(topic)?;
        let changed = self.pauses.change(|paused| {
            paused.remove(&topic);
        });
        if changed {
            self.pauses_changed(EventKind::Resumed { topic: Some(topic) });
        }
        Ok(())
    }

    fn pauses_changed(&self, event: EventKind) {
        let reasons = if self.all_paused() {
            vec![Reason::Paused { topic: None }]
        } else {
            let paused = self.pauses.topics().into_iter();
            let reason = |topic| Reason::Paused { topic: Some(topic) };
            paused.map(reason).collect()
        };
        // The time without a receive begins anew with a resume, and does not run in a pause.
        self.freshness.renew(&self.member);
        self.member.paused(reasons);
        tracing::info!(member = %self.member.path, ?event, "receiving");
        self.member.report(event);
    }

    fn topics(&self) -> impl Iterator<Item = &Arc<str>> {
        self.role
            .subscriptions
            .iter()
            .map(|subscription| &subscription.topic)
    }

    pub(super) fn subscribed(&self, topic: &str) -> Result<Arc<str>> {
        let mut subscriptions = self.role.subscriptions.iter();
        let found = subscriptions.find(|Subscription { topic: known, .. }| **known == *topic);
        found.map(|found| found.topic.clone()).ok_or_else(|| {
            let group = &self.role.group;
            Error::invalid(format!(
                "group {group} is not subscribed to topic {topic:?}"
            ))
        })
    }
}
