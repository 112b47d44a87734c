//! What follows from a failed attempt, and how long one send has left. No I/O.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use rocketmq_proto::v2 as pb;
use tokio::time::Instant;

use crate::{
    Error, ErrorKind,
    model::{
        RetryPolicy,
        delays::{Delays, DelaysState},
    },
    rpc::says_settings_lost,
};

/// Between two rounds over all brokers, and between tries against a server's doubts.
const DELAYS: Delays = Delays::doubling(Duration::from_millis(20), Duration::from_secs(1));

/// What a failed attempt says about the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No attempt will fare better.
    Final,
    /// The server is well, but asks for less.
    Throttled,
    /// It denies what it had accepted before, as one does whose metadata is being changed.
    Doubtful,
    /// It lost the settings of this producer.
    SettingsLost,
    /// The endpoint is in trouble: another may not be.
    Elsewhere,
}

/// Judges a failed attempt. `accepted_before`: the topic has taken a message of this producer.
pub(super) fn judge(error: &Error, accepted_before: bool) -> Verdict {
    let topic_unknown = error.server_code() == Some(pb::Code::TopicNotFound as i32);
    if says_settings_lost(error) {
        return Verdict::SettingsLost;
    }
    match error.kind() {
        ErrorKind::Throttled => Verdict::Throttled,
        ErrorKind::TypeConflict if accepted_before => Verdict::Doubtful,
        ErrorKind::NotFound if accepted_before && topic_unknown => Verdict::Doubtful,
        ErrorKind::Timeout
        | ErrorKind::Unreachable
        | ErrorKind::Tls
        | ErrorKind::Disconnected
        | ErrorKind::Server => Verdict::Elsewhere,
        _ => Verdict::Final,
    }
}

/// One send from its first attempt to its end.
#[derive(Debug)]
pub(super) struct Journey {
    started: Instant,
    deadline: Instant,
    max_attempts: u32,
    /// Requests made.
    requests: u32,
    /// Failures that count against `max_attempts`.
    failures: u32,
    throttled: i32,
    doubts: DelaysState,
    rounds: DelaysState,
    /// Brokers that failed in this round.
    tried: BTreeSet<Arc<str>>,
    under_way: bool,
    maybe_stored: bool,
    last: Option<Error>,
}

impl Journey {
    pub(super) fn new(started: Instant, budget: Duration, max_attempts: i32) -> Self {
        Self {
            started,
            deadline: started + budget,
            max_attempts: u32::try_from(max_attempts).unwrap_or(1),
            requests: 0,
            failures: 0,
            throttled: 0,
            doubts: DELAYS.start(),
            rounds: DELAYS.start(),
            tried: BTreeSet::new(),
            under_way: false,
            maybe_stored: false,
            last: None,
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The fair share of what is left that the next attempt may take.
    pub(super) fn share(&self, now: Instant) -> Duration {
        self.deadline.saturating_duration_since(now) / self.attempts_left()
    }

    /// At least one.
    pub(super) fn attempts_left(&self) -> u32 {
        self.max_attempts.saturating_sub(self.failures).max(1)
    }

    pub(super) fn tried(&self) -> &BTreeSet<Arc<str>> {
        &self.tried
    }

    pub(super) fn retries(&self) -> u32 {
        self.requests.saturating_sub(1)
    }

    /// A request goes out now.
    pub(super) fn departs(&mut self) {
        self.requests = self.requests.saturating_add(1);
        self.under_way = true;
    }

    /// The request failed so: how long to wait before the next, or nothing when this was the last.
    pub(super) fn failed(
        &mut self,
        broker: &Arc<str>,
        error: &Error,
        verdict: Verdict,
        policy: &RetryPolicy,
        rng: &mut fastrand::Rng,
    ) -> Option<Duration> {
        self.under_way = false;
        self.maybe_stored |= !error.is_definite();
        self.last = Some(error.clone());
        match verdict {
            Verdict::Final => None,
            Verdict::Throttled => {
                self.throttled = self.throttled.saturating_add(1);
                // A policy without delays would make this a storm.
                let floor = DELAYS.first / 2;
                Some(policy.delay(self.throttled).max(floor))
            }
            Verdict::Doubtful => Some(self.doubts.next(rng)),
            Verdict::SettingsLost | Verdict::Elsewhere => {
                self.tried.insert(broker.clone());
                self.missed().then_some(Duration::ZERO)
            }
        }
    }

    /// The request was refused, which need not be the fault of this message.
    pub(super) fn refused(&mut self, error: Error) {
        self.under_way = false;
        self.maybe_stored |= !error.is_definite();
        self.last = Some(error);
    }

    /// One attempt is lost: whether another is left.
    pub(super) fn missed(&mut self) -> bool {
        self.failures = self.failures.saturating_add(1);
        self.failures < self.max_attempts
    }

    /// Every broker was tried: how long to wait before all are tried again.
    pub(super) fn next_round(&mut self, rng: &mut fastrand::Rng) -> Duration {
        self.tried.clear();
        self.rounds.next(rng)
    }

    /// Whether nothing can be tried any more after such a wait.
    pub(super) fn ends_within(&self, wait: Duration, now: Instant) -> bool {
        now + wait >= self.deadline
    }

    /// Why the send ends when its time is over.
    pub(super) fn last_error(&self) -> Error {
        let none = || Error::new(ErrorKind::Timeout, "no time was left for a request");
        self.last.clone().unwrap_or_else(none)
    }

    /// The last error as the caller gets it: with what was tried, and definite only if no attempt
    /// may have been stored.
    pub(super) fn give_up(&self, error: Error, now: Instant) -> Error {
        let error = match self.requests {
            0 => error,
            1 if error.kind() != ErrorKind::Timeout => error,
            requests => {
                let elapsed = now.duration_since(self.started);
                error.context(format!("not sent with {requests} requests in {elapsed:?}"))
            }
        };
        if self.maybe_stored || self.under_way {
            error.possibly()
        } else {
            error.definitely()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn journey() -> Journey {
        Journey::new(Instant::now(), 9 * SECOND, 3)
    }

    fn fail(journey: &mut Journey, kind: ErrorKind) -> Option<Duration> {
        let policy = RetryPolicy::exponential(3, SECOND, 4 * SECOND, 2.0).unwrap();
        let error = Error::new(kind, "failed");
        let verdict = judge(&error, false);
        let mut rng = fastrand::Rng::with_seed(1);
        journey.departs();
        journey.failed(&"b".into(), &error, verdict, &policy, &mut rng)
    }

    #[tokio::test]
    async fn only_what_may_succeed_elsewhere_or_later_is_tried_again() {
        use ErrorKind as Kind;
        for kind in [
            Kind::InvalidArgument,
            Kind::Unauthorized,
            Kind::Forbidden,
            Kind::TooLarge,
            Kind::TypeConflict,
            Kind::NotFound,
            Kind::Unsupported,
            Kind::Protocol,
        ] {
            assert_eq!(fail(&mut journey(), kind), None, "{kind:?}");
        }
        for kind in [
            Kind::Timeout,
            Kind::Unreachable,
            Kind::Disconnected,
            Kind::Server,
        ] {
            assert_eq!(fail(&mut journey(), kind), Some(Duration::ZERO), "{kind:?}");
        }
        let unknown = Error::new(Kind::NotFound, "no topic").code(40402);
        assert_eq!(judge(&unknown, false), Verdict::Final);
        assert_eq!(judge(&unknown, true), Verdict::Doubtful);
        let lost = Error::new(Kind::Server, "who are you").code(40015);
        assert_eq!(judge(&lost, true), Verdict::SettingsLost);
    }

    #[tokio::test]
    async fn throttling_has_its_own_series_and_uses_up_no_attempt() {
        let mut journey = journey();
        let waits: Vec<_> = (0..5)
            .map(|_| fail(&mut journey, ErrorKind::Throttled).unwrap())
            .collect();
        assert_eq!(waits, [1, 2, 4, 4, 4].map(|seconds| seconds * SECOND));
        assert!(journey.tried().is_empty());
        assert!(fail(&mut journey, ErrorKind::Timeout).is_some());
        assert!(fail(&mut journey, ErrorKind::Timeout).is_some());
        assert_eq!(fail(&mut journey, ErrorKind::Timeout), None, "the third");
    }

    #[tokio::test(start_paused = true)]
    async fn each_attempt_has_a_fair_share_of_what_is_left() {
        let mut journey = journey();
        let start = Instant::now();
        assert_eq!(journey.share(start), 3 * SECOND);
        fail(&mut journey, ErrorKind::Unreachable);
        assert_eq!(journey.share(start), 4500 * SECOND / 1000);
        fail(&mut journey, ErrorKind::Unreachable);
        assert_eq!(journey.share(start + 8 * SECOND), SECOND);
        assert_eq!(journey.share(start + 10 * SECOND), Duration::ZERO);
        assert!(journey.ends_within(SECOND, start + 8 * SECOND));
        assert!(!journey.ends_within(SECOND, start + 7 * SECOND));
    }

    #[tokio::test]
    async fn the_end_is_definite_only_if_no_attempt_may_have_been_stored() {
        let now = Instant::now();
        let refused = || Error::new(ErrorKind::Unreachable, "refused");
        let mut clean = journey();
        fail(&mut clean, ErrorKind::Unreachable);
        fail(&mut clean, ErrorKind::Throttled);
        let error = clean.give_up(refused(), now);
        assert!(error.is_definite());
        assert!(error.to_string().contains("2 requests"), "{error}");
        let mut doubtful = journey();
        fail(&mut doubtful, ErrorKind::Timeout);
        fail(&mut doubtful, ErrorKind::Unreachable);
        assert!(!doubtful.give_up(refused(), now).is_definite());
        let mut cut = journey();
        cut.departs();
        assert!(
            !cut.give_up(Error::closed("the producer"), now)
                .is_definite()
        );
        let waited = journey().give_up(Error::new(ErrorKind::Timeout, "no settings"), now);
        assert!(waited.is_definite(), "nothing was ever sent");
    }
}
