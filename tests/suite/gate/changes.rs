//! Which fetched routes change the cache, and which do not.

use std::sync::atomic::{AtomicUsize, Ordering};

use rocketmq_embedded::{Fault, proto::Code};

use super::{log::Log, *};

#[test]
fn an_unchanged_route_is_committed_once_whatever_its_order() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(3).await;
        let turn = AtomicUsize::new(0);
        broker.set_route("t", move |queues| {
            let turn = turn.fetch_add(1, Ordering::Relaxed);
            let count = queues.len();
            queues.rotate_left(turn % count);
        });
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        tokio::time::sleep(secs(300)).await;
        assert!(broker.record().count(Rpc::QueryRoute) >= 10);
        assert_eq!(log.commits(), ["t 6 0"]);
    });
}

#[test]
fn an_unchanged_route_with_a_quarantined_endpoint_is_committed_once() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(3).await;
        broker.stop_node(2);
        let consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        tokio::time::sleep(secs(300)).await;
        assert_eq!(log.commits(), ["t 2 1"]);
        consumer.crash("routes");
        tokio::time::sleep(secs(100)).await;
        assert_eq!(
            log.commits(),
            ["t 2 1"],
            "nor by a route actor that restarted"
        );
    });
}

#[test]
fn a_changed_route_is_committed_also_after_a_restart_of_the_route_actor() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(3).await;
        let consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        tokio::time::sleep(secs(200)).await;
        consumer.crash("routes");
        route(&broker, "t", &[1]);
        let asked = broker.record().count(Rpc::QueryRoute);
        queried(&broker, asked + 1).await;
        assert_eq!(log.commits(), ["t 4 0", "t 2 0"]);
    });
}

#[test]
fn an_answer_that_comes_too_late_does_not_overwrite_a_newer_one() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(3).await;
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        route(&broker, "t", &[1]);
        let late = Fault::on(Rpc::QueryRoute).delay_reply(secs(45));
        broker.fault(late);
        tokio::time::sleep(secs(11)).await;
        // The answer to the query at 10 s names node 1, and is on its way until 55 s.
        route(&broker, "t", &[2]);
        tokio::time::sleep(secs(120)).await;
        assert_eq!(log.commits(), ["t 4 0", "t 2 0"]);
        assert!(count(&broker.record(), 0, Rpc::QueryRoute) >= 4);
    });
}

/// A worse answer comes at 10 s, and again at every refresh.
async fn is_kept_for_one_period(worse: fn(&mut Vec<pb::MessageQueue>), commit: &str) {
    let log = Log::start();
    let broker = cluster(3).await;
    let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
    broker.set_route("t", worse);
    tokio::time::sleep(secs(39)).await;
    assert_eq!(broker.record().count(Rpc::QueryRoute), 2);
    assert_eq!(log.commits(), ["t 4 0"]);
    tokio::time::sleep(secs(62)).await;
    assert_eq!(log.commits(), ["t 4 0", commit]);
    route(&broker, "t", &[1, 2]);
    tokio::time::sleep(secs(31)).await;
    assert_eq!(log.commits().len(), 3, "a better one counts at once");
}

#[test]
fn an_empty_route_does_not_replace_a_better_one_within_one_refresh_period() {
    virtually(is_kept_for_one_period(Vec::clear, "t 0 0"));
}

#[test]
fn an_untyped_route_does_not_replace_a_typed_one_within_one_refresh_period() {
    virtually(is_kept_for_one_period(
        |queues| {
            queues.retain(|queue| queue.broker.as_ref().unwrap().name != "broker-0");
            for queue in queues {
                queue.accept_message_types.clear();
            }
        },
        "t 4 0",
    ));
}

#[test]
fn a_worse_answer_in_between_changes_nothing() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(3).await;
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        broker.set_route("t", Vec::clear);
        tokio::time::sleep(secs(20)).await;
        route(&broker, "t", &[1, 2]);
        tokio::time::sleep(secs(100)).await;
        assert_eq!(log.commits(), ["t 4 0"]);
    });
}

#[test]
fn n3_a_failed_refresh_leaves_the_route_as_it_was_and_is_said() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(3).await;
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        let query = || Fault::on(Rpc::QueryRoute);
        broker.fault(query().status(Code::TopicNotFound, "gone"));
        broker.fault(query().grpc(tonic::Code::Unavailable, "down"));
        broker.fault(query().hang());
        tokio::time::sleep(secs(100)).await;
        assert_eq!(log.commits(), ["t 4 0"]);
        assert_eq!(log.lines("route not refreshed").len(), 3);
        store(&broker, 1, vec![message("t", "m", b"m")]).await;
        broker.wait_for(|_| broker.acks().len() == 1).await;
    });
}

#[test]
fn n14_q8_types_and_permissions_nobody_knows_fail_no_route() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(2).await;
        broker.set_route("t", |queues| {
            queues.retain(|queue| queue.broker.as_ref().unwrap().name != "broker-0");
            queues[0].accept_message_types = vec![0, 99];
            queues[0].permission = 99;
        });
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        assert_eq!(log.commits(), ["t 2 0"]);
        receiving(&broker, &[1]).await;
    });
}
