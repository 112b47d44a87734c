#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use proptest::prelude::*;

use super::*;

fn queue(
    broker: &str,
    broker_id: i32,
    id: i32,
    permission: i32,
    types: &[i32],
) -> pb::MessageQueue {
    let endpoints = Endpoints::parse(&format!("{broker}:8081"))
        .unwrap()
        .to_proto();
    pb::MessageQueue {
        topic: Some(pb::Resource {
            resource_namespace: String::new(),
            name: "t".into(),
        }),
        id,
        permission,
        broker: Some(pb::Broker {
            name: broker.into(),
            id: broker_id,
            endpoints: Some(endpoints),
        }),
        accept_message_types: types.to_vec(),
    }
}

fn route(queues: Vec<pb::MessageQueue>) -> Route {
    let (route, warnings) = Route::from_proto("t", queues);
    assert_eq!(warnings, Vec::<String>::new());
    route
}

#[test]
fn unknown_permissions_and_types_never_fail_a_route() {
    let route = route(vec![
        queue("a", 0, 0, 0, &[0]),
        queue("a", 0, 1, 99, &[99]),
        queue("a", 0, 2, -1, &[-1]),
        queue("a", 0, 3, 4, &[99, 2, 2]),
    ]);
    assert_eq!(route.queues.len(), 4);
    assert_eq!(
        route.writable().count(),
        1,
        "what may be done with the others is unknown"
    );
    for queue in route.queues.iter().take(3) {
        assert!(
            queue.accepts_type(MessageType::Lite),
            "unknown types only: anything goes"
        );
    }
    let last = route.queues.last().unwrap();
    assert!(last.accepts_type(MessageType::Fifo) && !last.accepts_type(MessageType::Normal));
    assert_eq!(route.accepted_types(), BTreeSet::from([MessageType::Fifo]));
}

#[test]
fn a_queue_that_cannot_be_used_is_skipped_with_a_warning() {
    let mut no_broker = queue("a", 0, 1, 4, &[1]);
    no_broker.broker = None;
    let mut no_endpoints = queue("a", 0, 2, 4, &[1]);
    no_endpoints.broker.as_mut().unwrap().endpoints = None;
    let mut bad_port = queue("a", 0, 3, 4, &[1]);
    bad_port
        .broker
        .as_mut()
        .unwrap()
        .endpoints
        .as_mut()
        .unwrap()
        .addresses[0]
        .port = 70_000;
    let mut foreign = queue("a", 0, 4, 4, &[1]);
    foreign.topic.as_mut().unwrap().name = "other".into();
    let mut no_topic = queue("a", 0, 5, 4, &[1]);
    no_topic.topic = None;
    let sent = vec![no_broker, no_endpoints, bad_port, foreign, no_topic];
    let (route, warnings) = Route::from_proto("t", sent);
    assert_eq!(
        route
            .queues
            .iter()
            .map(|queue| queue.id)
            .collect::<Vec<_>>(),
        [5]
    );
    assert_eq!(warnings.len(), 4);
    for (warning, said) in warnings
        .iter()
        .zip(["no broker", "no endpoints", "70000", "other"])
    {
        assert!(warning.contains(said), "{warning}");
    }
}

#[test]
fn neither_queues_nor_warnings_grow_without_bound() {
    let (route, warnings) = Route::from_proto("t", vec![pb::MessageQueue::default(); 100]);
    assert!(route.is_empty());
    assert_eq!(warnings.len(), 9, "eight in full, the others counted");

    let sent = (0..65_540).map(|id| queue("a", 0, id, 4, &[]));
    let (route, warnings) = Route::from_proto("t", sent.collect());
    assert_eq!((route.queues.len(), warnings.len()), (65_536, 1));
}

#[test]
fn only_masters_are_read_from_and_written_to() {
    let route = route(vec![
        queue("a", 0, 0, 4, &[1]),
        queue("a", 1, 1, 4, &[1]),
        queue("a", 0, 2, 2, &[1]),
        queue("a", 0, 3, 3, &[1]),
        queue("a", 0, 4, 1, &[1]),
    ]);
    let ids = |queues: Vec<&MessageQueue>| queues.iter().map(|queue| queue.id).collect::<Vec<_>>();
    assert_eq!(ids(route.readable().collect()), [0, 2]);
    assert_eq!(ids(route.writable().collect()), [0, 3]);
}

#[test]
fn each_fact_of_a_queue_makes_a_route_another() {
    let base = route(vec![queue("a", 0, 0, 4, &[1])]);
    for other in [
        vec![],
        vec![queue("a", 0, 0, 4, &[1]), queue("a", 0, 1, 4, &[1])],
        vec![queue("b", 0, 0, 4, &[1])],
        vec![queue("a", 1, 0, 4, &[1])],
        vec![queue("a", 0, 1, 4, &[1])],
        vec![queue("a", 0, 0, 2, &[1])],
        vec![queue("a", 0, 0, 4, &[2])],
    ] {
        assert!(!base.same_as(&route(other)));
    }
}

#[test]
fn an_empty_or_untyped_route_is_worse_than_one_that_knows_more() {
    let typed = route(vec![queue("a", 0, 0, 4, &[1])]);
    let untyped = route(vec![queue("a", 0, 0, 4, &[0]), queue("a", 0, 1, 4, &[])]);
    let empty = route(vec![]);
    let worst_first = [&empty, &untyped, &typed];
    for (rank, route) in worst_first.iter().enumerate() {
        for (other_rank, other) in worst_first.iter().enumerate() {
            assert_eq!(route.is_worse_than(other), rank < other_rank);
        }
    }
}

#[test]
fn queues_of_excluded_endpoints_are_left_out() {
    let route = route(vec![queue("a", 0, 0, 4, &[1]), queue("b", 0, 0, 4, &[1])]);
    let a = Endpoints::parse("a:8081").unwrap();
    let rest = route.without(&BTreeSet::from([a]));
    assert_eq!(
        rest.endpoints(),
        BTreeSet::from([Endpoints::parse("b:8081").unwrap()])
    );
    assert!(rest.without(&rest.endpoints()).is_empty());
}

proptest! {
    #[test]
    fn order_of_queues_addresses_and_types_means_nothing(
        sent in prop::collection::vec(("[ab]", 0..2, 0..9, -1..6, [0..8, 0..8]), 0..20),
        shuffled_by: u64,
    ) {
        let build = |turned: bool| {
            let one = |(broker, broker_id, id, permission, types): &(String, _, _, _, [i32; 2])| {
                let mut queue = queue(broker, *broker_id, *id, *permission, types);
                let endpoints = queue.broker.as_mut().unwrap().endpoints.as_mut().unwrap();
                endpoints.addresses.push(pb::Address { host: "z".into(), port: 1 });
                if turned {
                    endpoints.addresses.reverse();
                    queue.accept_message_types.reverse();
                }
                queue
            };
            sent.iter().map(one).collect::<Vec<_>>()
        };
        let mut turned = build(true);
        fastrand::Rng::with_seed(shuffled_by).shuffle(&mut turned);
        let (one, other) = (route(build(false)), route(turned));
        prop_assert!(one.same_as(&other) && other.same_as(&one));
        prop_assert_eq!(one.endpoints(), other.endpoints());
        prop_assert!(!one.is_worse_than(&other));
    }

    #[test]
    fn any_queue_is_taken_or_named_in_a_warning(
        id: i32, permission: i32, types in prop::collection::vec(any::<i32>(), 0..9),
        host in ".{0,20}", port: i32, scheme: i32,
    ) {
        let mut sent = queue("a", 0, id, permission, &types);
        sent.broker.as_mut().unwrap().endpoints =
            Some(pb::Endpoints { scheme, addresses: vec![pb::Address { host, port }] });
        let (route, warnings) = Route::from_proto("t", vec![sent.clone()]);
        prop_assert_eq!(route.queues.len() + warnings.len(), 1);
        if let Some(queue) = route.queues.first() {
            prop_assert_eq!(&*queue.proto, &sent, "kept for the echo, unchanged");
        }
    }
}
