//! Nothing but route queries and telemetry reaches an endpoint before its settings were applied.

use rocketmq_embedded::{Fault, Reply, RequestBody};

use super::*;

#[test]
fn route_queries_go_to_the_access_point_and_nothing_else_does() {
    virtually(async {
        let broker = cluster(3).await;
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        tokio::time::sleep(secs(101)).await;
        let record = broker.record();
        assert!(at(&record, 0).all(|call| call.rpc == Rpc::QueryRoute));
        assert_eq!(
            count(&record, 0, Rpc::QueryRoute),
            5,
            "0, 10, 40, 70, 100 s"
        );
        for node in [1, 2] {
            assert_eq!(count(&record, node, Rpc::QueryRoute), 0);
            assert_settings_first(&record, node);
        }
    });
}

#[test]
fn nothing_is_used_before_all_settings_were_answered() {
    virtually(async {
        let broker = cluster(3).await;
        let slow = Fault::on(Rpc::Telemetry).node(2).delay_reply(secs(2));
        broker.fault(slow);
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        receiving(&broker, &[1, 2]).await;
        let record = broker.record();
        for node in [1, 2] {
            assert_settings_first(&record, node);
        }
        let early = record
            .of(Rpc::ReceiveMessage)
            .chain(record.of(Rpc::QueryAssignment))
            .find(|call| call.elapsed < secs(2));
        assert!(early.is_none(), "the route was not committed: {early:?}");
    });
}

#[test]
fn the_first_receive_already_goes_by_the_servers_settings() {
    virtually(async {
        let broker = cluster(3).await;
        let changed = Fault::on(Rpc::Telemetry).always().mutate(|reply| {
            if let Reply::Telemetry(pb::TelemetryCommand {
                command: Some(pb::telemetry_command::Command::Settings(settings)),
                ..
            }) = reply
                && let Some(pb::settings::PubSub::Subscription(subscription)) =
                    &mut settings.pub_sub
            {
                subscription.receive_batch_size = Some(5);
            }
        });
        broker.fault(changed);
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        receiving(&broker, &[1, 2]).await;
        for call in broker.record().of(Rpc::ReceiveMessage) {
            let RequestBody::ReceiveMessage(request) = &call.request else {
                panic!("{call:?}");
            };
            assert_eq!(request.batch_size, 5);
        }
    });
}

#[test]
fn an_endpoint_that_a_later_route_adds_is_prepared_before_its_first_use() {
    virtually(async {
        let broker = cluster(3).await;
        topic(&broker, "t", &[1]);
        let _consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        receiving(&broker, &[1]).await;
        assert_eq!(at(&broker.record(), 2).count(), 0);
        let slow = Fault::on(Rpc::Telemetry).node(2).delay_reply(secs(2));
        broker.fault(slow);
        topic(&broker, "t", &[1, 2]);
        receiving(&broker, &[2]).await;
        assert_settings_first(&broker.record(), 2);
    });
}
