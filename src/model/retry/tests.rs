#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use proptest::prelude::*;

use super::*;

const fn span(seconds: i64, nanos: i32) -> ProtoDuration {
    ProtoDuration { seconds, nanos }
}

fn exponential(max_attempts: i32, multiplier: f32) -> pb::RetryPolicy {
    let (initial, max) = (Some(span(0, 5_000_000)), Some(span(1, 0)));
    let backoff = pb::ExponentialBackoff {
        initial,
        max,
        multiplier,
    };
    pb::RetryPolicy {
        max_attempts,
        strategy: Some(Kind::ExponentialBackoff(backoff)),
    }
}

fn customized(max_attempts: i32, next: Vec<ProtoDuration>) -> pb::RetryPolicy {
    let backoff = pb::CustomizedBackoff { next };
    pb::RetryPolicy {
        max_attempts,
        strategy: Some(Kind::CustomizedBackoff(backoff)),
    }
}

fn millis(policy: &RetryPolicy, attempts: &[i32]) -> Vec<u128> {
    attempts
        .iter()
        .map(|&attempt| policy.delay(attempt).as_millis())
        .collect()
}

#[test]
fn exponential_delays_grow_up_to_the_longest() {
    let policy = RetryPolicy::from_proto(&exponential(3, 5.0)).unwrap();
    assert_eq!(
        millis(&policy, &[1, 2, 3, 4, 5, 6, i32::MAX]),
        [5, 25, 125, 625, 1000, 1000, 1000]
    );
    assert_eq!(policy.max_attempts(), 3);
}

#[test]
fn an_attempt_below_one_counts_as_the_first() {
    for policy in [
        exponential(3, 5.0),
        customized(3, vec![span(0, 5_000_000), span(9, 0)]),
    ] {
        let policy = RetryPolicy::from_proto(&policy).unwrap();
        assert_eq!(millis(&policy, &[0, -1, i32::MIN, 1]), [5, 5, 5, 5]);
    }
}

#[test]
fn a_list_is_followed_and_its_last_step_repeats() {
    let policy = RetryPolicy::from_proto(&customized(5, vec![span(3, 0), span(1, 0)])).unwrap();
    assert_eq!(
        millis(&policy, &[1, 2, 3, i32::MAX]),
        [3000, 1000, 1000, 1000]
    );
}

#[test]
fn absurd_delays_of_a_server_become_the_nearest_bound() {
    let steps = vec![
        span(-5, 0),
        span(i64::MAX, i32::MAX),
        span(0, -1),
        span(i64::MIN, 0),
    ];
    let policy = RetryPolicy::from_proto(&customized(5, steps)).unwrap();
    let max = MAX_DELAY.as_millis();
    assert_eq!(millis(&policy, &[1, 2, 3, 4]), [0, max, 0, 0]);
}

#[test]
fn a_policy_that_makes_no_sense_is_refused() {
    let mut inverted = exponential(3, 2.0);
    if let Some(Kind::ExponentialBackoff(backoff)) = &mut inverted.strategy {
        backoff.max = None;
    }
    let mut bad = vec![
        pb::RetryPolicy {
            max_attempts: 3,
            strategy: None,
        },
        inverted,
        customized(3, vec![]),
        customized(3, vec![span(1, 0); 1025]),
    ];
    bad.extend([0, -1, i32::MIN, i32::MAX].map(|attempts| exponential(attempts, 2.0)));
    bad.extend([0, -1, i32::MAX].map(|attempts| customized(attempts, vec![span(1, 0)])));
    bad.extend(
        [0.0, -1.0, 0.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY]
            .map(|multiplier| exponential(3, multiplier)),
    );
    for policy in bad {
        RetryPolicy::from_proto(&policy).expect_err(&format!("{policy:?}"));
    }
    RetryPolicy::from_proto(&customized(3, vec![span(1, 0); 1024])).expect("at the limit");
}

#[test]
fn the_default_is_what_the_broker_documents() {
    let policy = RetryPolicy::server_default();
    assert_eq!(policy.max_attempts(), 17);
    assert_eq!(
        millis(&policy, &[1, 4, 5, 14, 18, 19]),
        [1000, 30_000, 60_000, 600_000, 7_200_000, 7_200_000]
    );
}

#[test]
fn immediate_never_waits_and_attempts_can_be_kept() {
    let policy = RetryPolicy::immediate(3).unwrap();
    assert_eq!(millis(&policy, &[1, 2, i32::MAX]), [0, 0, 0]);
    assert_eq!(policy.with_max_attempts(9).unwrap().max_attempts(), 9);
}

fn any_span() -> impl Strategy<Value = ProtoDuration> {
    let seconds = prop_oneof![any::<i64>(), -10..100_000_i64];
    (seconds, any::<i32>()).prop_map(|(seconds, nanos)| span(seconds, nanos))
}

fn any_policy() -> impl Strategy<Value = pb::RetryPolicy> {
    let multiplier = prop_oneof![any::<f32>(), 0.0..20.0_f32, Just(1.0 + f32::EPSILON)];
    let attempts = prop_oneof![any::<i32>(), 1..20];
    let backoff = prop_oneof![
        Just(None),
        (
            prop::option::of(any_span()),
            prop::option::of(any_span()),
            multiplier
        )
            .prop_map(|(initial, max, multiplier)| {
                let backoff = pb::ExponentialBackoff {
                    initial,
                    max,
                    multiplier,
                };
                Some(Kind::ExponentialBackoff(backoff))
            }),
        prop::collection::vec(any_span(), 0..30)
            .prop_map(|next| Some(Kind::CustomizedBackoff(pb::CustomizedBackoff { next }))),
    ];
    (attempts, backoff).prop_map(|(max_attempts, strategy)| pb::RetryPolicy {
        max_attempts,
        strategy,
    })
}

proptest! {
    #[test]
    fn whatever_a_server_sends_delays_stay_within_bounds(
        sent in any_policy(),
        attempts in prop::collection::vec(prop_oneof![any::<i32>(), 0..40], 1..20),
    ) {
        let Ok(policy) = RetryPolicy::from_proto(&sent) else { return Ok(()) };
        let max = match &policy.backoff {
            Backoff::Exponential { max, .. } => *max,
            Backoff::Customized(steps) => *steps.iter().max().unwrap(),
        };
        prop_assert!(max <= MAX_DELAY);
        let mut attempts = attempts;
        attempts.sort_unstable();
        let delays: Vec<_> = attempts.iter().map(|&attempt| policy.delay(attempt)).collect();
        prop_assert!(delays.iter().all(|delay| *delay <= max));
        if matches!(policy.backoff, Backoff::Exponential { .. }) {
            prop_assert!(delays.is_sorted(), "{:?} -> {:?}", attempts, delays);
        }
        prop_assert_eq!(RetryPolicy::from_proto(&policy.to_proto()).unwrap(), policy);
    }
}
