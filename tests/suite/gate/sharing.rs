//! While a gate is open: who is answered, and who shares what.

use rocketmq_embedded::{Fault, RequestBody, proto::Code};

use super::{log::Log, *};

fn queries_of(record: &Record, topic: &str) -> usize {
    let of = |call: &&Call| match &call.request {
        RequestBody::QueryRoute(request) => request.topic.as_ref().unwrap().name == topic,
        _ => false,
    };
    record.calls().filter(of).count()
}

fn assignments_of(record: &Record, topic: &str) -> usize {
    let of = |call: &&Call| match &call.request {
        RequestBody::QueryAssignment(request) => request.topic.as_ref().unwrap().name == topic,
        _ => false,
    };
    record.calls().filter(of).count()
}

#[test]
fn topics_that_wait_for_one_endpoint_share_one_exchange() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(2).await;
        topic(&broker, "u", &[1]);
        let slow = Fault::on(Rpc::Telemetry).node(1).delay_reply(secs(2));
        broker.fault(slow);
        let client = client(&broker);
        let _consumer = client.start(consumer_of(&["t", "u"])).await.unwrap();
        let record = broker.record();
        assert_eq!(count(&record, 1, Rpc::Telemetry), 1);
        assert_eq!(log.commits().len(), 2);
    });
}

#[test]
fn q42_each_topic_is_asked_for_once_and_one_that_came_is_not_asked_for_again() {
    virtually(async {
        let broker = cluster(2).await;
        topic(&broker, "u", &[1]);
        let busy = Fault::on(Rpc::QueryRoute).topic("u").times(2);
        broker.fault(busy.status(Code::InternalServerError, "busy"));
        let start = tokio::time::Instant::now();
        let client = client(&broker);
        let _consumer = client.start(consumer_of(&["t", "u"])).await.unwrap();
        let record = broker.record();
        assert_eq!((queries_of(&record, "t"), queries_of(&record, "u")), (1, 3));
        assert!(start.elapsed() >= millis(50), "tries have a pause");
    });
}

#[test]
fn while_a_gate_is_open_committed_topics_are_answered() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(3).await;
        topic(&broker, "t", &[1]);
        topic(&broker, "u", &[1]);
        let config = config(&broker).settings_timeout(secs(20)).build().unwrap();
        let client = rocketmq_actors::Client::new(config);
        let _consumer = client.start(consumer_of(&["t", "u"])).await.unwrap();
        broker.fault(Fault::on(Rpc::Telemetry).node(2).always().hang());
        route(&broker, "u", &[1, 2]);
        broker
            .wait_for(|record| count(record, 2, Rpc::Telemetry) == 1)
            .await;
        // The gate of `u` is open now, for twenty seconds.
        let asked = |topic| assignments_of(&broker.record(), topic);
        let before = (asked("t"), asked("u"));
        tokio::time::sleep(secs(16)).await;
        assert_eq!((asked("t"), asked("u")), (before.0 + 3, before.1 + 3));
        assert_eq!(log.commits().len(), 2, "it still is open");
        tokio::time::sleep(secs(5)).await;
        assert_eq!(
            log.commits().len(),
            2,
            "without node 2 the route is as before"
        );
    });
}
