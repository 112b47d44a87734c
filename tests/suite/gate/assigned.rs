//! Endpoints that turn up elsewhere than in a route pass the same gate.

use rocketmq_embedded::{Fault, proto::Code};

use super::*;

/// The route names node 1, the assignment node 2 as well.
async fn node_2_is_assigned_only() -> Checked {
    let broker = cluster(3).await;
    route(&broker, "t", &[1]);
    broker
}

#[test]
fn q47_an_endpoint_only_an_assignment_names_is_prepared_before_its_first_use() {
    virtually(async {
        let broker = node_2_is_assigned_only().await;
        let slow = Fault::on(Rpc::Telemetry).node(2).delay_reply(secs(2));
        broker.fault(slow);
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        receiving(&broker, &[1]).await;
        let other = broker.record();
        assert!(at(&other, 2).all(|call| call.rpc == Rpc::Telemetry));
        receiving(&broker, &[2]).await;
        assert_settings_first(&broker.record(), 2);
        store(&broker, 2, vec![message("t", "m", b"m")]).await;
        broker.wait_for(|_| broker.acks().len() == 1).await;
    });
}

#[test]
fn an_assigned_endpoint_that_refuses_the_settings_is_not_used_until_it_takes_them() {
    virtually(async {
        let broker = node_2_is_assigned_only().await;
        let refusal = Fault::on(Rpc::Telemetry).node(2).always();
        let refusal = broker.fault(refusal.status(Code::BadRequest, "no"));
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        tokio::time::sleep(secs(30)).await;
        assert!(at(&broker.record(), 2).all(|call| call.rpc == Rpc::Telemetry));
        refusal.clear();
        receiving(&broker, &[2]).await;
    });
}

#[test]
fn an_assigned_endpoint_keeps_its_session_until_it_is_assigned_no_more() {
    virtually(async {
        let broker = node_2_is_assigned_only().await;
        let consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        receiving(&broker, &[2]).await;
        let beats = || count(&broker.record(), 2, Rpc::Heartbeat);
        tokio::time::sleep(secs(100)).await;
        assert!(beats() >= 10, "over refreshes of the route: {}", beats());
        consumer.crash("routes");
        let before = beats();
        tokio::time::sleep(secs(100)).await;
        assert!(beats() >= before + 9, "and a restart of the route actor");
        assign(&broker, "t", &[1]);
        tokio::time::sleep(secs(30)).await;
        let before = beats();
        tokio::time::sleep(secs(60)).await;
        assert_eq!(beats(), before, "nobody needs it any more");
    });
}

#[test]
fn a_session_that_restarted_passes_the_gate_again() {
    virtually(async {
        let broker = cluster(3).await;
        let consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        receiving(&broker, &[1, 2]).await;
        tokio::time::sleep(secs(1)).await;
        let mark = broker.record().next_seq();
        broker.fault(Fault::on(Rpc::Telemetry).times(2).delay_reply(secs(2)));
        consumer.crash("session");
        broker
            .wait_for(|record| record.since(mark).count() == 2)
            .await;
        // The receives under way end now; nothing follows before the settings are answered.
        let messages = |node| vec![message("t", &format!("m{node}"), b"m")];
        store(&broker, 1, messages(1)).await;
        store(&broker, 2, messages(2)).await;
        broker.wait_for(|_| broker.acks().len() == 2).await;
        let record = broker.record();
        for node in [1, 2] {
            let ours = |call: &&Call| call.client_id == consumer.client_id() && call.node == node;
            let mut calls = record.since(mark).filter(ours);
            let settings = calls.next().unwrap();
            assert_eq!(settings.rpc, Rpc::Telemetry, "{settings:?}");
            let answered = settings.ended_at().unwrap();
            let early = calls.find(|call| call.at < answered);
            assert!(early.is_none(), "{early:?}");
        }
    });
}

#[test]
fn an_acknowledgement_to_an_endpoint_whose_session_retired_waits_for_a_new_one() {
    virtually(async {
        let broker = node_2_is_assigned_only().await;
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(|_: Delivery| tokio::time::sleep(secs(20)))
            .build()
            .unwrap();
        store(&broker, 2, vec![message("t", "m", b"m")]).await;
        let _consumer = client(&broker).start(spec).await.unwrap();
        broker.wait_for(|_| broker.deliveries().len() == 1).await;
        assign(&broker, "t", &[1]);
        tokio::time::sleep(secs(10)).await;
        let mark = broker.record().next_seq();
        broker.stop_node(2);
        broker.start_node(2).await.unwrap();
        let acked = |record: &Record| {
            let mut acks = record
                .since(mark)
                .filter(|call| call.rpc == Rpc::AckMessage);
            acks.any(|ack| ack.outcome().is_some())
        };
        broker.wait_for(acked).await;
        let record = broker.record();
        let mut calls = record.since(mark).filter(|call| call.node == 2);
        let settings = calls.next().unwrap();
        assert_eq!(settings.rpc, Rpc::Telemetry);
        let answered = settings.ended_at().unwrap();
        assert!(calls.all(|call| call.at >= answered), "{record:?}");
    });
}
