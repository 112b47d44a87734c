#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use rocketmq_proto::v2 as pb;

use super::*;

/// Queues as (broker, id), each broker at its own endpoints, all of them writable.
fn route(queues: &[(String, i32)]) -> Route {
    let queue = |(broker, id): &(String, i32)| pb::MessageQueue {
        topic: None,
        id: *id,
        permission: pb::Permission::ReadWrite.into(),
        broker: Some(pb::Broker {
            name: broker.clone(),
            id: 0,
            endpoints: Some(at(broker).to_proto()),
        }),
        accept_message_types: vec![],
    };
    Route::from_proto("t", queues.iter().map(queue).collect()).0
}

fn at(broker: &str) -> Endpoints {
    Endpoints::parse(&format!("{broker}:8081")).unwrap()
}

fn two_brokers() -> Route {
    route(&[
        ("a".into(), 0),
        ("a".into(), 1),
        ("b".into(), 0),
        ("b".into(), 1),
    ])
}

fn shown(queues: &[MessageQueue]) -> Vec<String> {
    queues
        .iter()
        .map(|queue| format!("{}{}", queue.broker_name, queue.id))
        .collect()
}

#[test]
fn turns_go_round_and_go_on_after_a_refresh() {
    let balancer = PublishBalancer::new(&two_brokers(), usize::MAX).unwrap();
    let none = BTreeSet::new();
    assert_eq!(
        shown(&balancer.take(&none, 1)),
        ["b1"],
        "the turn before the first"
    );
    assert_eq!(shown(&balancer.take(&none, 1)), ["a0"]);
    let refreshed = balancer.refreshed(&two_brokers()).unwrap();
    assert_eq!(shown(&refreshed.take(&none, 1)), ["a1"]);
    assert_eq!(
        shown(&balancer.take(&none, 1)),
        ["b0"],
        "an old one shares the turns"
    );
}

#[test]
fn brokers_are_distinct_and_isolated_ones_come_last() {
    let balancer = PublishBalancer::new(&two_brokers(), 0).unwrap();
    assert_eq!(shown(&balancer.take(&BTreeSet::new(), 9)), ["a0", "b0"]);
    assert_eq!(shown(&balancer.take(&BTreeSet::from([at("a")]), 9)), ["b0"]);
    assert_eq!(
        shown(&balancer.take(&BTreeSet::from([at("a"), at("b")]), 9)),
        ["b0", "a0"]
    );
    assert!(balancer.take(&BTreeSet::new(), 0).is_empty());
}

#[test]
fn without_a_writable_queue_there_is_no_balancer() {
    let error = PublishBalancer::new(&route(&[]), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    let balancer = PublishBalancer::new(&two_brokers(), 0).unwrap();
    assert!(balancer.refreshed(&route(&[])).is_err());
}

#[test]
fn groups_are_hashed_as_the_reference_does() {
    for (group, hash, of_eight) in [
        ("test", 0x2676_5E52_5C56_729A, 2),
        ("A", 0x7129_10E8_ADB7_9065, 5),
        ("B", 0xD773_7BCB_1DFA_A297, 7),
        ("message-group-0", 0x828A_1F21_06A0_1E71, 1),
        ("", 0x726F_DB47_DD0E_0E31_u64, 1),
    ] {
        assert_eq!(group_hash(group).cast_unsigned(), hash, "{group}");
        let eight: Vec<_> = (0..8).map(|id| ("a".to_owned(), id)).collect();
        let balancer = PublishBalancer::new(&route(&eight), 0).unwrap();
        assert_eq!(
            balancer.take_by_group(group).map(|queue| queue.id),
            Some(of_eight),
            "{group}"
        );
    }
}

proptest! {
    #[test]
    fn every_writable_queue_is_used_within_as_many_sends(
        queues in prop::collection::btree_set(("[a-d]", 0..8), 1..30), start: usize,
    ) {
        let queues: Vec<_> = queues.into_iter().collect();
        let balancer = PublishBalancer::new(&route(&queues), start).unwrap();
        let used: BTreeSet<_> = (0..queues.len())
            .flat_map(|_| balancer.take(&BTreeSet::new(), 1))
            .map(|queue| (queue.broker_name.to_string(), queue.id))
            .collect();
        prop_assert_eq!(used, queues.into_iter().collect::<BTreeSet<_>>());
    }

    #[test]
    fn isolated_brokers_are_taken_only_when_all_are(
        queues in prop::collection::vec(("[a-d]", 0..8), 1..30),
        isolated in prop::collection::btree_set("[a-d]", 0..4),
        start: usize, n in 1..6_usize,
    ) {
        let balancer = PublishBalancer::new(&route(&queues), start).unwrap();
        let excluded = isolated.iter().map(|broker| at(broker)).collect();
        let taken = balancer.take(&excluded, n);
        let brokers: BTreeSet<_> = queues.iter().map(|(broker, _)| broker.clone()).collect();
        let healthy: BTreeSet<_> = brokers.difference(&isolated).cloned().collect();
        let expected = if healthy.is_empty() { brokers } else { healthy };
        let used: BTreeSet<_> = taken.iter().map(|queue| queue.broker_name.to_string()).collect();
        prop_assert_eq!(used.len(), taken.len(), "brokers are distinct");
        prop_assert_eq!(taken.len(), n.min(expected.len()));
        prop_assert!(used.is_subset(&expected));
    }

    #[test]
    fn a_group_stays_at_its_queue_however_a_route_is_ordered(
        queues in prop::collection::btree_set(("[a-d]", 0..8), 1..30), group in ".{0,9}", seed: u64,
    ) {
        let mut queues: Vec<_> = queues.into_iter().collect();
        let key = |route| {
            let queue = PublishBalancer::new(&route, 0).unwrap().take_by_group(&group);
            queue.map(|queue| queue.key())
        };
        let before = key(route(&queues));
        fastrand::Rng::with_seed(seed).shuffle(&mut queues);
        prop_assert!(before.is_some());
        prop_assert_eq!(before, key(route(&queues)));
    }
}
