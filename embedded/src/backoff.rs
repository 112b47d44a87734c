//! Delays between the attempts of a group.

use std::time::Duration;

use rocketmq_proto::v2 as pb;

use crate::clock::proto_duration;

/// When a group's clients are advised to retry. The broker itself uses it only for messages it
/// renewed for three hours.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Backoff {
    /// One delay per attempt; the last one repeats.
    Custom(Vec<Duration>),
    /// `initial · multiplier^n`, at most `max`.
    Exponential {
        /// The first delay.
        initial: Duration,
        /// No delay is longer.
        max: Duration,
        /// The factor from one delay to the next.
        multiplier: f32,
    },
}

/// The broker's list: 1 s 5 s 10 s 30 s, then 1 to 10, 20, 30 minutes, 1 h, 2 h.
impl Default for Backoff {
    fn default() -> Self {
        let minutes = (1..=10).chain([20, 30, 60, 120]).map(|n| n * 60);
        Self::Custom(
            [1, 5, 10, 30]
                .into_iter()
                .chain(minutes)
                .map(Duration::from_secs)
                .collect(),
        )
    }
}

impl Backoff {
    pub(crate) fn to_proto(&self, max_attempts: i32) -> pb::RetryPolicy {
        use pb::retry_policy::Strategy;
        let strategy = match self {
            Self::Custom(next) => Strategy::CustomizedBackoff(pb::CustomizedBackoff {
                next: next.iter().copied().map(proto_duration).collect(),
            }),
            Self::Exponential {
                initial,
                max,
                multiplier,
            } => Strategy::ExponentialBackoff(pb::ExponentialBackoff {
                initial: Some(proto_duration(*initial)),
                max: Some(proto_duration(*max)),
                multiplier: *multiplier,
            }),
        };
        pb::RetryPolicy {
            max_attempts,
            strategy: Some(strategy),
        }
    }

    /// The delay the broker applies itself to a message that failed `reconsume` times.
    pub(crate) fn server_delay(&self, reconsume: u32) -> Duration {
        match self {
            Self::Custom(next) => {
                let index = usize::try_from(reconsume).unwrap_or(usize::MAX);
                let index = index.saturating_add(2).min(next.len().saturating_sub(1));
                next.get(index).copied().unwrap_or_default()
            }
            Self::Exponential {
                initial,
                max,
                multiplier,
            } => {
                let factor = f64::from(*multiplier).powi(reconsume.min(32) as i32);
                Duration::try_from_secs_f64(initial.as_secs_f64() * factor)
                    .unwrap_or(*max)
                    .min(*max)
            }
        }
    }
}
