//! How long a failed delivery waits before it is tried again.

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use prost_types::Duration as ProtoDuration;
use rocketmq_proto::v2::{self as pb, retry_policy::Strategy as Kind};

use super::time;
use crate::{Error, Result};

/// The longest a server keeps a delivery invisible.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(12 * 3600);
const MAX_STEPS: usize = 1024;
/// What the broker gives a group for which nothing else was set, in seconds.
const SERVER_STEPS: [u64; 18] = [
    1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
];
const SERVER_ATTEMPTS: i32 = 17;

/// How often a message is tried and how long it waits between two tries.
///
/// For consumers the server's group configuration decides; a group for which nothing was set has
/// 17 attempts and waits 1 s, 5 s, 10 s, 30 s, 1 to 10 min by the minute, 20 min, 30 min, 1 h, 2 h.
/// No delay is longer than 12 h.
///
/// ```
/// use rocketmq_actors::RetryPolicy;
/// use std::time::Duration;
///
/// let (first, max) = (Duration::from_millis(5), Duration::from_secs(1));
/// let policy = RetryPolicy::exponential(16, first, max, 5.0)?;
/// assert_eq!(policy.delay(3), Duration::from_millis(125));
/// assert_eq!(policy.delay(i32::MAX), max);
/// # Ok::<(), rocketmq_actors::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    max_attempts: i32,
    backoff: Backoff,
}

#[derive(Debug, Clone, PartialEq)]
enum Backoff {
    Exponential {
        initial: Duration,
        max: Duration,
        multiplier: f32,
    },
    Customized(Arc<[Duration]>),
}

impl RetryPolicy {
    /// Waits `initial`, then each time `multiplier` as long as before, at most `max`.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) unless
    /// `1 <= max_attempts < i32::MAX`, `initial <= max` and `1 <= multiplier < infinity`.
    pub fn exponential(
        max_attempts: i32,
        initial: Duration,
        max: Duration,
        multiplier: f32,
    ) -> Result<Self> {
        if initial > max {
            let what = format!("initial delay {initial:?} is longer than the longest, {max:?}");
            return Err(refusal(&what));
        }
        if !multiplier.is_finite() || multiplier < 1.0 {
            return Err(refusal(&format!(
                "multiplier {multiplier} is not 1 or more"
            )));
        }
        let (initial, max) = (initial.min(MAX_DELAY), max.min(MAX_DELAY));
        Self::new(
            max_attempts,
            Backoff::Exponential {
                initial,
                max,
                multiplier,
            },
        )
    }

    /// Waits as `steps` say, one after the other; the last holds for all later tries.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) unless
    /// `1 <= max_attempts < i32::MAX` and there are 1 to 1024 steps.
    pub fn customized(
        max_attempts: i32,
        steps: impl IntoIterator<Item = Duration>,
    ) -> Result<Self> {
        let cap = |step: Duration| step.min(MAX_DELAY);
        let steps: Vec<_> = steps.into_iter().take(MAX_STEPS + 1).map(cap).collect();
        if steps.is_empty() || steps.len() > MAX_STEPS {
            return Err(refusal(&format!(
                "a list of delays has 1 to {MAX_STEPS} steps"
            )));
        }
        Self::new(max_attempts, Backoff::Customized(steps.into()))
    }

    fn new(max_attempts: i32, backoff: Backoff) -> Result<Self> {
        // The largest number is no number of attempts: somebody left a field at its limit.
        if !(1..i32::MAX).contains(&max_attempts) {
            return Err(refusal(&format!("{max_attempts} attempts")));
        }
        Ok(Self {
            max_attempts,
            backoff,
        })
    }

    /// No wait at all between tries.
    pub(crate) fn immediate(max_attempts: i32) -> Result<Self> {
        Self::exponential(max_attempts, Duration::ZERO, Duration::ZERO, 1.0)
    }

    /// What holds until a server has said something else.
    pub(crate) fn server_default() -> Self {
        let steps = SERVER_STEPS.map(Duration::from_secs);
        Self {
            max_attempts: SERVER_ATTEMPTS,
            backoff: Backoff::Customized(steps.into()),
        }
    }

    /// Takes what a server sent. Delays outside `0..=12 h` become the nearer bound; all else that
    /// makes no sense is an error, and the policy that was in force stays so.
    pub(crate) fn from_proto(policy: &pb::RetryPolicy) -> Result<Self> {
        match &policy.strategy {
            Some(Kind::ExponentialBackoff(backoff)) => {
                let span = |span: Option<ProtoDuration>| {
                    time::duration(&span.unwrap_or_default(), MAX_DELAY)
                };
                let (initial, max) = (span(backoff.initial), span(backoff.max));
                Self::exponential(policy.max_attempts, initial, max, backoff.multiplier)
            }
            Some(Kind::CustomizedBackoff(backoff)) => {
                let steps = backoff
                    .next
                    .iter()
                    .map(|step| time::duration(step, MAX_DELAY));
                Self::customized(policy.max_attempts, steps)
            }
            None => Err(refusal("no kind of backoff")),
        }
    }

    pub(crate) fn to_proto(&self) -> pb::RetryPolicy {
        let strategy = match &self.backoff {
            Backoff::Exponential {
                initial,
                max,
                multiplier,
            } => Kind::ExponentialBackoff(pb::ExponentialBackoff {
                initial: Some(time::to_proto_duration(*initial)),
                max: Some(time::to_proto_duration(*max)),
                multiplier: *multiplier,
            }),
            Backoff::Customized(steps) => Kind::CustomizedBackoff(pb::CustomizedBackoff {
                next: steps.iter().copied().map(time::to_proto_duration).collect(),
            }),
        };
        pb::RetryPolicy {
            max_attempts: self.max_attempts,
            strategy: Some(strategy),
        }
    }

    /// The same delays for another number of attempts.
    pub(crate) fn with_max_attempts(self, max_attempts: i32) -> Result<Self> {
        Self::new(max_attempts, self.backoff)
    }

    /// How often a message is delivered at most, the first time included.
    #[must_use]
    pub fn max_attempts(&self) -> i32 {
        self.max_attempts
    }

    /// The wait after the given attempt failed. The first attempt is 1; less counts as 1.
    #[must_use]
    pub fn delay(&self, attempt: i32) -> Duration {
        let before = attempt.max(1) - 1;
        match &self.backoff {
            Backoff::Exponential {
                initial,
                max,
                multiplier,
            } => grown(*initial, *max, *multiplier, before),
            Backoff::Customized(steps) => {
                let step = usize::try_from(before)
                    .ok()
                    .and_then(|index| steps.get(index));
                step.or(steps.last()).copied().unwrap_or_default()
            }
        }
    }
}

fn grown(initial: Duration, max: Duration, multiplier: f32, times: i32) -> Duration {
    if initial.is_zero() {
        return initial;
    }
    let seconds = initial.as_secs_f64() * f64::from(multiplier).powi(times);
    Duration::try_from_secs_f64(seconds).unwrap_or(max).min(max)
}

fn refusal(why: &str) -> Error {
    Error::invalid(format!("retry policy: {why}"))
}
