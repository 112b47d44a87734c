//! A dead endpoint does not stop the living.

use rocketmq_embedded::{Fault, proto::Code};

use super::{log::Log, *};

/// Node 2 is dead in some way at the start, and lives later.
async fn starts_without_node_2_and_takes_it_in_later(
    kill: impl FnOnce(&EmbeddedBroker),
    revive: impl AsyncFnOnce(&EmbeddedBroker),
) {
    let log = Log::start();
    let broker = cluster(3).await;
    kill(&broker);
    let start = tokio::time::Instant::now();
    let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
    assert!(start.elapsed() <= secs(7), "{:?}", start.elapsed());
    assert_eq!(log.commits(), ["t 2 1"], "without the dead one's queues");
    receiving(&broker, &[1]).await;
    tokio::time::sleep(secs(80)).await;
    assert_eq!(count(&broker.record(), 2, Rpc::ReceiveMessage), 0);
    let queries = broker.record().count(Rpc::QueryRoute);
    revive(&broker).await;
    broker
        .wait_for(|_| log.commits().last().unwrap() == "t 4 0")
        .await;
    assert_eq!(
        broker.record().count(Rpc::QueryRoute),
        queries,
        "its session's success ran the gate, no refresh"
    );
    receiving(&broker, &[2]).await;
    assert_eq!(log.commits().len(), 2, "and nothing else was committed");
}

#[test]
fn n1_a_stopped_endpoint_is_quarantined_until_it_lives() {
    virtually(starts_without_node_2_and_takes_it_in_later(
        |broker| broker.stop_node(2),
        async |broker| broker.start_node(2).await.unwrap(),
    ));
}

#[test]
fn n1_a_black_hole_is_quarantined_until_it_lives() {
    virtually(starts_without_node_2_and_takes_it_in_later(
        |broker| broker.black_hole(2, true),
        async |broker| broker.black_hole(2, false),
    ));
}

#[test]
fn n1_an_endpoint_that_refuses_the_settings_is_quarantined_until_it_takes_them() {
    virtually(starts_without_node_2_and_takes_it_in_later(
        |broker| {
            let refusal = Fault::on(Rpc::Telemetry).node(2).always();
            broker.fault(refusal.grpc(tonic::Code::InvalidArgument, "no"));
        },
        async |broker| broker.clear_faults(),
    ));
}

#[test]
fn an_endpoint_that_never_answers_is_quarantined_and_tried_at_most_once_a_second() {
    virtually(async {
        let broker = cluster(3).await;
        broker.fault(Fault::on(Rpc::Telemetry).node(2).always().hang());
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        tokio::time::sleep(secs(60)).await;
        let record = broker.record();
        let tries: Vec<_> = at(&record, 2).map(|call| call.at).collect();
        assert!(tries.len() >= 10, "its session keeps trying: {tries:?}");
        assert!(tries.windows(2).all(|pair| pair[1] - pair[0] >= secs(1)));
        assert!(at(&record, 2).all(|call| call.rpc == Rpc::Telemetry));
    });
}

#[test]
fn later_fetches_do_not_wait_for_the_quarantined() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(4).await;
        topic(&broker, "t", &[1, 3]);
        broker.black_hole(3, true);
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        assert_eq!(log.commits(), ["t 2 1"]);
        route(&broker, "t", &[1, 2, 3]);
        queried(&broker, 2).await;
        assert_eq!(log.commits(), ["t 2 1", "t 4 1"], "at once, with node 2");
    });
}

#[test]
fn an_endpoint_that_passes_after_a_failure_while_the_gate_is_open_counts() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(3).await;
        broker.fault(Fault::on(Rpc::Telemetry).node(1).always().hang());
        let once = Fault::on(Rpc::Telemetry).node(2);
        broker.fault(once.status(Code::InternalServerError, "starting"));
        let start = tokio::time::Instant::now();
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        assert!(start.elapsed() <= millis(6_100), "{:?}", start.elapsed());
        assert_eq!(log.commits(), ["t 2 1"]);
        receiving(&broker, &[2]).await;
    });
}

#[test]
fn with_all_or_nothing_one_dead_endpoint_fails_the_start_and_poisons_nothing() {
    virtually(async {
        let broker = cluster(3).await;
        broker.stop_node(2);
        let config = config(&broker).require_all_endpoints(true).build().unwrap();
        let client = rocketmq_actors::Client::new(config);
        let error = client.start(consumer_of(&["t"])).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&broker.node_endpoints(2)), "{text}");
        assert!(!text.contains(&broker.node_endpoints(1)), "{text}");
        assert_eq!(broker.record().count(Rpc::ReceiveMessage), 0);
        broker.start_node(2).await.unwrap();
        let _consumer = client.start(consumer_of(&["t"])).await.unwrap();
        receiving(&broker, &[1, 2]).await;
    });
}

#[test]
fn with_all_or_nothing_a_dead_newcomer_keeps_the_route_as_it_was() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(3).await;
        topic(&broker, "t", &[1]);
        let config = config(&broker).require_all_endpoints(true).build().unwrap();
        let client = rocketmq_actors::Client::new(config);
        let _consumer = client.start(consumer_of(&["t"])).await.unwrap();
        broker.stop_node(2);
        route(&broker, "t", &[1, 2]);
        tokio::time::sleep(secs(100)).await;
        assert_eq!(log.commits(), ["t 2 0"]);
        assert!(
            !log.lines("route not refreshed").is_empty(),
            "and it is said"
        );
        broker.start_node(2).await.unwrap();
        tokio::time::sleep(secs(31)).await;
        assert_eq!(log.commits(), ["t 2 0", "t 4 0"]);
    });
}

#[test]
fn assignments_are_asked_for_at_the_living_when_a_committed_endpoint_dies() {
    virtually(async {
        for dead in [1, 2] {
            let broker = cluster(3).await;
            let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
            receiving(&broker, &[1, 2]).await;
            broker.stop_node(dead);
            let asked = || count(&broker.record(), 3 - dead, Rpc::QueryAssignment);
            let before = asked();
            tokio::time::sleep(secs(60)).await;
            assert!(
                asked() >= before + 10,
                "{} without node {dead}",
                asked() - before
            );
        }
    });
}
