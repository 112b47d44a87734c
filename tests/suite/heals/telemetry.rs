//! The telemetry stream: lost in every way, opened again.

use rocketmq_actors::ProducerSpec;
use rocketmq_embedded::{Close, EmbeddedBroker, Fault, proto as pb};

use super::*;

fn ends() -> [Close; 3] {
    [
        Close::End,
        Close::Error(tonic::Code::Unavailable, "bye".into()),
        Close::Reset,
    ]
}

async fn one_node() -> Checked {
    let broker = broker(|builder| builder).await;
    broker.create_topic("t", TopicConfig::normal(1));
    broker
}

fn assert_bounded(broker: &EmbeddedBroker) {
    let opened = times(&broker.record(), 0, Rpc::Telemetry);
    let apart: Vec<_> = opened.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(apart.iter().all(|gap| *gap >= secs(1)), "{apart:?}");
}

#[test]
fn n17_twenty_ends_of_each_kind_leave_one_stream_opened_at_most_once_a_second() {
    for how in ends() {
        virtually(async {
            let broker = one_node().await;
            let consumer = client(&broker).start(consumer()).await.unwrap();
            for end in 1..=20 {
                assert!(broker.close_telemetry(0, consumer.client_id(), how.clone()));
                let ended = Instant::now();
                broker
                    .wait_for(|record| times(record, 0, Rpc::Telemetry).len() > end)
                    .await;
                assert!(ended.elapsed() <= millis(1_100), "{:?}", ended.elapsed());
                // What is broken at once, and what had lived for a while.
                tokio::time::sleep(millis(if end % 2 == 0 { 20 } else { 3_000 })).await;
            }
            tokio::time::sleep(secs(5)).await;
            let live = broker.live(0);
            assert_eq!(live.telemetry_streams, 1, "{how:?}");
            assert_eq!(live.telemetry_streams_opened, 21, "{how:?}");
            assert_bounded(&broker);
            store(&broker, 0, vec![message("t", "m", b"m")]).await;
            broker.wait_for(|_| broker.acks().len() == 1).await;
        });
    }
}

#[test]
fn n17_a_stream_lost_while_the_route_waits_for_its_settings_is_opened_again() {
    let faults: [fn(Fault) -> Fault; 3] = [
        Fault::end,
        |fault| fault.grpc(tonic::Code::Unavailable, "bye"),
        Fault::reset,
    ];
    for fault in faults {
        virtually(async {
            let broker = one_node().await;
            broker.fault(fault(Fault::on(Rpc::Telemetry)));
            let _consumer = client(&broker).start(consumer()).await.unwrap();
            broker
                .wait_for(|record| record.count(Rpc::ReceiveMessage) > 0)
                .await;
            assert_eq!(broker.record().count(Rpc::Telemetry), 2);
            assert_eq!(broker.live(0).telemetry_streams, 1);
            assert_bounded(&broker);
        });
    }
}

#[test]
fn n17_a_server_that_ends_each_stream_after_its_answer_stops_nothing() {
    virtually(async {
        let broker = one_node().await;
        let answered = Fault::on(Rpc::Telemetry).always().after_work().end();
        let consumer = client(&broker).start(consumer()).await.unwrap();
        broker.fault(answered);
        assert!(broker.close_telemetry(0, consumer.client_id(), Close::End));
        let start = Instant::now();
        for n in 0..60 {
            let id = format!("m{n}");
            store(&broker, 0, vec![message("t", &id, b"m")]).await;
            let stored = Instant::now();
            broker.wait_for(|_| broker.acks().len() == n + 1).await;
            assert!(stored.elapsed() <= millis(100), "{:?}", stored.elapsed());
            tokio::time::sleep(secs(1)).await;
        }
        let opened = broker.live(0).telemetry_streams_opened;
        let most = usize::try_from(start.elapsed().as_secs()).unwrap() + 2;
        assert!((20..=most).contains(&opened), "{opened} opens in a minute");
        assert_bounded(&broker);
    });
}

#[test]
fn n15_after_a_restart_of_the_server_consuming_goes_on_within_seconds() {
    virtually(async {
        let broker = one_node().await;
        let _consumer = client(&broker).start(consumer()).await.unwrap();
        for outage in [0, 3, 20, 90] {
            tokio::time::sleep(secs(15)).await;
            broker.stop_node(0);
            tokio::time::sleep(secs(outage)).await;
            broker.start_node(0).await.unwrap();
            let served = Instant::now();
            let before = broker.acks().len();
            let id = format!("after {outage}");
            broker.put(0, vec![message("t", &id, b"m")]).unwrap();
            broker.wait_for(|_| broker.acks().len() > before).await;
            assert!(served.elapsed() <= secs(3), "{:?}", served.elapsed());
        }
        assert_bounded(&broker);
    });
}

#[test]
fn n20_every_command_to_every_kind_of_member_harms_nobody() {
    use pb::telemetry_command::Command;
    let commands = [
        None,
        Some(Command::Settings(pb::Settings::default())),
        Some(Command::PrintThreadStackTraceCommand(Default::default())),
        Some(Command::VerifyMessageCommand(Default::default())),
        Some(Command::RecoverOrphanedTransactionCommand(
            Default::default(),
        )),
        Some(Command::NotifyUnsubscribeLiteCommand(Default::default())),
        Some(Command::ThreadStackTrace(Default::default())),
        Some(Command::VerifyMessageResult(Default::default())),
    ];
    virtually(async {
        let broker = one_node().await;
        let consumer = client(&broker).start(consumer()).await.unwrap();
        let spec = ProducerSpec::builder().topic("t").build().unwrap();
        let producer = client(&broker).start(spec).await.unwrap();
        for id in [consumer.client_id(), producer.client_id()] {
            for command in &commands {
                let command = pb::TelemetryCommand {
                    status: None,
                    command: command.clone(),
                };
                assert!(broker.push_command_on(0, id, command));
            }
        }
        tokio::time::sleep(secs(5)).await;
        let live = broker.live(0);
        assert_eq!(
            (live.telemetry_streams, live.telemetry_streams_opened),
            (2, 2)
        );
        assert!(consumer.health().borrow().ready && producer.health().borrow().ready);
        store(&broker, 0, vec![message("t", "m", b"m")]).await;
        broker.wait_for(|_| broker.acks().len() == 1).await;
    });
}

#[test]
fn n21_the_first_command_after_a_recovered_stream_is_answered_once() {
    use pb::telemetry_command::Command;
    virtually(async {
        for how in ends() {
            let broker = one_node().await;
            let consumer = client(&broker).start(consumer()).await.unwrap();
            assert!(broker.close_telemetry(0, consumer.client_id(), how));
            broker
                .wait_for(|_| broker.live(0).telemetry_streams_opened == 2)
                .await;
            tokio::time::sleep(millis(100)).await;
            let asked = pb::VerifyMessageCommand {
                nonce: "once".into(),
                message: None,
            };
            let command = pb::TelemetryCommand {
                status: None,
                command: Some(Command::VerifyMessageCommand(asked)),
            };
            assert!(broker.push_command_on(0, consumer.client_id(), command));
            tokio::time::sleep(secs(5)).await;
            let record = broker.record();
            let answers = record.of(Rpc::Telemetry).filter(|call| {
                let rocketmq_embedded::RequestBody::Telemetry(said) = &call.request else {
                    return false;
                };
                matches!(&said.command, Some(Command::VerifyMessageResult(said)) if said.nonce == "once")
            });
            assert_eq!(answers.count(), 1);
        }
    });
}

#[test]
fn n27_the_reconnect_command_makes_new_connections_and_loses_nothing() {
    use pb::telemetry_command::Command;
    virtually(async {
        let broker = one_node().await;
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(|_: Delivery| tokio::time::sleep(secs(2)))
            .build()
            .unwrap();
        let consumer = client(&broker).start(spec).await.unwrap();
        store(&broker, 0, vec![message("t", "m", b"m")]).await;
        broker.wait_for(|_| broker.deliveries().len() == 1).await;
        let connection =
            |record: &Record| record.of(Rpc::Telemetry).next_back().unwrap().connection;
        let before = connection(&broker.record());
        let command = pb::TelemetryCommand {
            status: None,
            command: Some(Command::ReconnectEndpointsCommand(Default::default())),
        };
        assert!(broker.push_command_on(0, consumer.client_id(), command));
        broker.wait_for(|_| broker.acks().len() == 1).await;
        tokio::time::sleep(secs(5)).await;
        assert_ne!(connection(&broker.record()), before);
        assert_eq!(broker.live(0).telemetry_streams, 1);
        let polls = broker.record();
        let cut = polls
            .of(Rpc::ReceiveMessage)
            .filter(|poll| poll.outcome() == Some(&rocketmq_embedded::Outcome::Cancelled));
        assert_eq!(cut.count(), 0, "polls under way finish");
        assert_eq!(broker.deliveries().len(), 1, "no second delivery");
    });
}

#[test]
fn n28_health_says_within_seconds_that_a_stream_does_not_recover() {
    virtually(async {
        let broker = one_node().await;
        let consumer = client(&broker).start(consumer()).await.unwrap();
        let mut health = consumer.health();
        broker.fault(
            Fault::on(Rpc::Telemetry)
                .always()
                .grpc(tonic::Code::Unavailable, "no"),
        );
        broker.reset_connections(0);
        let broke = Instant::now();
        health.wait_for(|health| !health.ready).await.unwrap();
        assert!(broke.elapsed() <= secs(5), "{:?}", broke.elapsed());
        broker.clear_faults();
        health.wait_for(|health| health.ready).await.unwrap();
    });
}

#[test]
fn n30_streams_that_close_at_any_moment_of_a_short_life_leave_nothing() {
    for seed in 0..60 {
        virtually(async {
            let broker = one_node().await;
            let config = config(&broker).seed(seed).build().unwrap();
            let consumer = rocketmq_actors::Client::new(config)
                .start(consumer())
                .await
                .unwrap();
            let mut rng = fastrand::Rng::with_seed(seed);
            for _ in 0..rng.usize(1..6) {
                tokio::time::sleep(millis(rng.u64(0..1_500))).await;
                let how = ends()[rng.usize(0..3)].clone();
                // There is none while it is being opened again.
                broker.close_telemetry(0, consumer.client_id(), how);
            }
            tokio::time::sleep(millis(rng.u64(0..1_200))).await;
            let grace = secs(1);
            let start = Instant::now();
            consumer.shutdown(grace).await;
            assert!(
                start.elapsed() <= secs(2),
                "{:?} by seed {seed}",
                start.elapsed()
            );
            tokio::time::sleep(secs(2)).await;
            assert_eq!(broker.live(0).telemetry_streams, 0, "seed {seed}");
            assert_bounded(&broker);
        });
    }
}
