//! Settings: lost, late, odd.

use rocketmq_embedded::{Fault, Reply, proto as pb};

use super::*;

/// What a server may leave out of its settings.
const PARTS: [fn(&mut pb::Settings); 5] = [
    |settings| settings.metric = None,
    |settings| settings.backoff_policy = None,
    |settings| settings.pub_sub = None,
    |settings| settings.request_timeout = None,
    |settings| settings.client_type = None,
];

#[test]
fn n23_q9_whatever_parts_of_the_settings_are_missing_the_consumer_consumes() {
    for subset in 0..1_u32 << PARTS.len() {
        virtually(async {
            let broker = broker(|builder| builder).await;
            broker.create_topic("t", TopicConfig::normal(1));
            let fault = Fault::on(Rpc::Telemetry).always().mutate(move |reply| {
                if let Reply::Telemetry(command) = reply
                    && let Some(pb::telemetry_command::Command::Settings(settings)) =
                        &mut command.command
                {
                    let missing = (0..).zip(PARTS).filter(|(n, _)| subset & (1 << n) != 0);
                    missing.for_each(|(_, remove)| remove(settings));
                }
            });
            broker.fault(fault);
            let _consumer = client(&broker).start(consumer()).await.unwrap();
            store(&broker, 0, vec![message("t", "m", b"m")]).await;
            let stored = Instant::now();
            broker.wait_for(|_| broker.acks().len() == 1).await;
            assert!(stored.elapsed() <= secs(2), "without parts {subset:#b}");
        });
    }
}

#[test]
fn n16_a_receive_that_says_settings_are_lost_waits_for_them_and_they_are_sent_once() {
    for (code, text) in [
        (pb::Code::UnrecognizedClientType, "who are you"),
        (
            pb::Code::InternalServerError,
            "Cannot invoke method because \"settings\" is null",
        ),
    ] {
        virtually(async {
            let broker = broker(|builder| builder).await;
            eight_queues(&broker);
            // All eight polls are under way when the first is answered.
            let lost = Fault::on(Rpc::ReceiveMessage).times(8).delay(secs(2));
            broker.fault(lost.status(code, text));
            let _consumer = client(&broker).start(consumer()).await.unwrap();
            tokio::time::sleep(secs(5)).await;
            let record = broker.record();
            let settings = times(&record, 0, Rpc::Telemetry);
            assert_eq!(settings.len(), 2, "once for all queues");
            let polls = times(&record, 0, Rpc::ReceiveMessage);
            assert_eq!(polls.len(), 16);
            assert!(polls[8..].iter().all(|at| *at >= settings[1]));
        });
    }
}
