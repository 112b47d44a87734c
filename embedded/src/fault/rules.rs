//! The rules of a broker, in use.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Fault, Plan};
use crate::record::Call;
use crate::rpc::Ask;

/// A rule that was given to a broker. Dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct FaultHandle {
    state: Arc<RuleState>,
}

impl FaultHandle {
    /// How many calls it met, without those it skipped.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.state.hits.load(Ordering::Acquire)
    }

    /// Makes it meet no more calls.
    pub fn clear(&self) {
        self.state.cleared.store(true, Ordering::Release);
    }
}

#[derive(Debug, Default)]
struct RuleState {
    seen: AtomicU64,
    hits: AtomicU64,
    cleared: AtomicBool,
}

#[derive(Debug)]
struct Rule {
    fault: Fault,
    state: Arc<RuleState>,
}

impl Rule {
    fn over(&self) -> bool {
        self.state.cleared.load(Ordering::Acquire)
            || self.state.hits.load(Ordering::Acquire) >= self.fault.times
    }
}

/// All rules of a broker.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: Mutex<Vec<Rule>>,
    any: AtomicBool,
}

impl Faults {
    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub(crate) fn add(&self, fault: Fault) -> FaultHandle {
        let state = Arc::new(RuleState::default());
        let mut rules = self.rules();
        rules.push(Rule {
            fault,
            state: Arc::clone(&state),
        });
        self.any.store(true, Ordering::Release);
        FaultHandle { state }
    }

    pub(crate) fn clear(&self) {
        let mut rules = self.rules();
        for rule in rules.drain(..) {
            rule.state.cleared.store(true, Ordering::Release);
        }
        self.any.store(false, Ordering::Release);
    }

    /// What is to happen to this call, if anything.
    pub(crate) fn plan<Q: Ask>(&self, call: &Call, request: &Q) -> Option<Plan> {
        if !self.any() {
            return None;
        }
        let mut rules = self.rules();
        rules.retain(|rule| !rule.over());
        self.any.store(!rules.is_empty(), Ordering::Release);
        let rule = rules
            .iter()
            .find(|rule| rule.fault.meets(call, request.topic(), request.group()))?;
        let seen = rule.state.seen.fetch_add(1, Ordering::AcqRel);
        if seen < rule.fault.skip {
            return None;
        }
        rule.state.hits.fetch_add(1, Ordering::AcqRel);
        Some(rule.fault.plan.clone())
    }
}
