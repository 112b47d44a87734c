//! How long the proof holds that settings were applied.

use rocketmq_embedded::{Close, Fault};

use super::{log::Log, *};

#[test]
fn a_session_that_dies_between_its_answer_and_the_commit_is_asked_again() {
    virtually(async {
        let log = Log::start();
        let broker = cluster(3).await;
        let telemetry = |node| Fault::on(Rpc::Telemetry).node(node);
        broker.fault(telemetry(2).delay_reply(secs(2)));
        broker.fault(telemetry(1).skip(1).delay_reply(secs(2)));
        let client = client(&broker);
        let starting = client.start(consumer_of(&["t"]));
        let dying = async {
            tokio::time::sleep(secs(1)).await;
            broker.reset_connections(1);
            tokio::time::sleep(millis(1_500)).await;
            assert!(log.commits().is_empty(), "node 2 passed, node 1 died");
        };
        let (consumer, ()) = tokio::join!(starting, dying);
        let _consumer = consumer.unwrap();
        assert_eq!(log.commits(), ["t 4 0"]);
        receiving(&broker, &[1, 2]).await;
        let record = broker.record();
        let again = at(&record, 1)
            .filter(|call| call.rpc == Rpc::Telemetry)
            .nth(1);
        let again = again.unwrap().ended_at().unwrap();
        let first = record.of(Rpc::ReceiveMessage).next().unwrap();
        assert!(first.at >= again, "{first:?}");
    });
}

#[test]
fn a_stream_that_ends_after_its_settings_does_not_stop_anything() {
    for how in [
        Close::End,
        Close::Error(tonic::Code::Internal, "bye".into()),
    ] {
        virtually(async {
            let broker = cluster(2).await;
            let consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
            receiving(&broker, &[1]).await;
            broker.fault(Fault::on(Rpc::Telemetry).always().hang());
            assert!(broker.close_telemetry(1, consumer.client_id(), how));
            let messages = |n| vec![message("t", &format!("m{n}"), b"m")];
            for n in 0..5 {
                store(&broker, 1, messages(n)).await;
                broker.wait_for(|_| broker.acks().len() == n + 1).await;
                tokio::time::sleep(secs(2)).await;
            }
            let record = broker.record();
            let unanswered = at(&record, 1).filter(|call| call.rpc == Rpc::Telemetry);
            assert!(unanswered.count() >= 2, "it is opened again meanwhile");
        });
    }
}

#[test]
fn after_a_lost_connection_an_acknowledgement_waits_for_the_settings() {
    virtually(async {
        let broker = cluster(2).await;
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(|_: Delivery| tokio::time::sleep(secs(2)))
            .build()
            .unwrap();
        store(&broker, 1, vec![message("t", "m", b"m")]).await;
        let _consumer = client(&broker).start(spec).await.unwrap();
        broker.wait_for(|_| broker.deliveries().len() == 1).await;
        tokio::time::sleep(secs(1)).await;
        broker.fault(Fault::on(Rpc::Telemetry).delay_reply(secs(2)));
        broker.reset_connections(1);
        broker.wait_for(|_| broker.acks().len() == 1).await;
        let record = broker.record();
        let settings = at(&record, 1)
            .rfind(|call| call.rpc == Rpc::Telemetry)
            .unwrap();
        let ack = record.of(Rpc::AckMessage).next().unwrap();
        assert!(ack.at >= settings.ended_at().unwrap());
        assert!(ack.at >= settings.at + secs(2), "it had to wait");
    });
}

#[test]
fn a_server_that_lost_the_settings_gets_them_before_anything_else() {
    virtually(async {
        let broker = cluster(2).await;
        let consumer = client(&broker).start(consumer_of(&["t"])).await.unwrap();
        receiving(&broker, &[1]).await;
        let before = count(&broker.record(), 1, Rpc::Telemetry);
        assert!(broker.forget_settings(1, consumer.client_id()));
        broker
            .wait_for(|record| count(record, 1, Rpc::Telemetry) > before)
            .await;
        store(&broker, 1, vec![message("t", "m", b"m")]).await;
        broker.wait_for(|_| broker.acks().len() == 1).await;
        // That nothing else came first is checked by every broker at its end.
    });
}

#[test]
fn settings_asked_for_again_on_an_old_stream_have_their_whole_time() {
    virtually(async {
        let broker = cluster(2).await;
        let config = config(&broker).settings_timeout(secs(12)).build().unwrap();
        let client = rocketmq_actors::Client::new(config);
        let consumer = client.start(consumer_of(&["t"])).await.unwrap();
        tokio::time::sleep(secs(5)).await;
        // The heartbeat at 10 s finds it out; the answer comes at 16 s, 12 s being over.
        assert!(broker.forget_settings(1, consumer.client_id()));
        broker.fault(Fault::on(Rpc::Telemetry).delay(secs(6)));
        tokio::time::sleep(secs(20)).await;
        assert_eq!(count(&broker.record(), 1, Rpc::Telemetry), 2);
        assert_eq!(broker.live(1).telemetry_streams_opened, 1);
    });
}
