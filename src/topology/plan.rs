//! Which child of a group goes down and comes up next: decisions only.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    Backoff, Exit, Intensity, Restart, Strategy,
    backoff::Delays,
    budget::{RestartBudget, Verdict},
    order::Turn,
};

/// A child is told something.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) child: usize,
    pub(super) turn: Turn,
}

/// The children of a group in start order, and how far each is.
///
/// What happened goes in, who is told what comes out. Siblings that a failure takes along are
/// suspended one by one in reverse order; then all that are down come up one by one in start
/// order. Under [`Strategy::OneForOne`] every child restarts for itself.
#[derive(Debug)]
pub(super) struct Plan {
    strategy: Strategy,
    budget: RestartBudget,
    children: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    restart: Restart,
    delays: Delays,
    phase: Phase,
    /// The restart that waits for it, or that it waits out.
    due: Turn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Up(Instant),
    /// A sibling takes it along.
    Doomed,
    Suspending,
    Down,
    Resuming,
    Ended,
}

/// The restart of one that only follows a sibling.
const AT_ONCE: Turn = Turn::Resume {
    attempt: 0,
    delay: Duration::ZERO,
};

impl Plan {
    pub(super) fn new(strategy: Strategy, intensity: Intensity) -> Self {
        Self {
            strategy,
            budget: RestartBudget::new(intensity),
            children: Vec::new(),
        }
    }

    /// The next child in start order is up.
    pub(super) fn started(&mut self, restart: Restart, backoff: Backoff, now: Instant) {
        self.children.push(Member {
            restart,
            delays: Delays::new(backoff),
            phase: Phase::Up(now),
            due: AT_ONCE,
        });
    }

    /// A child came up.
    pub(super) fn up(&mut self, child: usize, now: Instant) -> Option<Step> {
        let member = self.children.get_mut(child)?;
        if member.phase == Phase::Resuming {
            member.phase = Phase::Up(now);
            member.due = AT_ONCE;
        }
        self.next_in_line()
    }

    /// A child went down, because it was told or by itself.
    pub(super) fn down(
        &mut self,
        child: usize,
        exit: &Exit,
        now: Instant,
        rng: &mut fastrand::Rng,
    ) -> Option<Step> {
        let member = self.children.get_mut(child)?;
        let ran = match member.phase {
            Phase::Down | Phase::Ended => return None,
            // Nothing restarts a temporary child, no sibling either.
            Phase::Doomed | Phase::Suspending if member.restart == Restart::Temporary => {
                return self.tell(child, Phase::Ended, Turn::End);
            }
            Phase::Doomed | Phase::Suspending => {
                member.phase = Phase::Down;
                return self.next_in_line();
            }
            Phase::Up(since) => now.saturating_duration_since(since),
            Phase::Resuming => Duration::ZERO,
        };
        match self.budget.judge(member.restart, exit, now) {
            Verdict::End => self.tell(child, Phase::Ended, Turn::End),
            Verdict::GiveUp => self.tell(child, Phase::Ended, Turn::GiveUp),
            Verdict::Restart => {
                let (attempt, delay) = member.delays.next(ran, rng);
                member.due = Turn::Resume { attempt, delay };
                member.phase = Phase::Down;
                self.take_along(child);
                self.next_in_line()
            }
        }
    }

    /// A child ended for good by itself. Whether the group can live with that.
    pub(super) fn ended(&mut self, child: usize, exit: &Exit) -> bool {
        let Some(member) = self.children.get_mut(child) else {
            return true;
        };
        let expected = member.phase == Phase::Ended;
        member.phase = Phase::Ended;
        expected || !member.restart.restarts_after(exit)
    }

    /// What is due once a child is out of the way for good.
    pub(super) fn next_in_line(&mut self) -> Option<Step> {
        let count = |phase| self.children.iter().filter(|m| m.phase == phase).count();
        let alone = self.strategy == Strategy::OneForOne;
        if !alone && count(Phase::Suspending) > 0 {
            return None;
        }
        let last_doomed = self.children.iter().rposition(|m| m.phase == Phase::Doomed);
        if let Some(child) = last_doomed {
            return self.tell(child, Phase::Suspending, Turn::Suspend);
        }
        if !alone && count(Phase::Resuming) > 0 {
            return None;
        }
        let child = self.children.iter().position(|m| m.phase == Phase::Down)?;
        let due = self.children.get(child)?.due.clone();
        self.tell(child, Phase::Resuming, due)
    }

    fn tell(&mut self, child: usize, phase: Phase, turn: Turn) -> Option<Step> {
        self.children.get_mut(child)?.phase = phase;
        Some(Step { child, turn })
    }

    fn take_along(&mut self, failed: usize) {
        let affected = self.strategy.affected(failed, self.children.len());
        for member in self.children.get_mut(affected).unwrap_or_default() {
            if matches!(member.phase, Phase::Up(_) | Phase::Resuming) {
                member.phase = Phase::Doomed;
            }
        }
    }
}
