//! Connections: HTTP/2 limits, reuse, sends without a server.

use rocketmq_actors::{ErrorKind, Message, ProducerSpec};
use rocketmq_embedded::Record;

use super::*;

fn longest(record: &Record, rpc: Rpc) -> std::time::Duration {
    let took = record
        .of(rpc)
        .filter_map(|call| Some(call.ended_at()? - call.at));
    took.max().unwrap()
}

#[test]
fn n122_with_four_streams_a_connection_eight_polls_hold_up_no_heartbeat_and_no_acknowledgement() {
    virtually(async {
        let broker = broker(|builder| builder.max_concurrent_streams(4)).await;
        eight_queues(&broker);
        let _consumer = client(&broker).start(consumer()).await.unwrap();
        tokio::time::sleep(secs(2)).await;
        for n in 0..60 {
            let before = broker.deliveries().len();
            let id = format!("m{n}");
            broker.put(0, vec![message("t", &id, b"m")]).unwrap();
            broker
                .wait_for(|_| broker.deliveries().len() > before)
                .await;
            let delivered = Instant::now();
            broker.wait_for(|_| broker.acks().len() > before).await;
            assert!(delivered.elapsed() <= secs(1), "{:?}", delivered.elapsed());
        }
        let record = broker.record();
        assert!(longest(&record, Rpc::Heartbeat) <= secs(1));
        let beats = times(&record, 0, Rpc::Heartbeat);
        assert!(beats.windows(2).all(|pair| pair[1] - pair[0] <= secs(11)));
    });
}

#[test]
fn a_send_with_every_server_down_says_why_none_can_be_reached() {
    virtually(async {
        let broker = broker(|builder| builder.nodes(2)).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let spec = ProducerSpec::builder().topic("t").build().unwrap();
        let producer = client(&broker).start(spec).await.unwrap();
        tokio::time::sleep(secs(5)).await;
        for node in 0..2 {
            broker.stop_node(node);
        }
        tokio::time::sleep(secs(5)).await;
        let message = Message::builder("t").body("m").build().unwrap();
        let error = producer.send(message).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
        assert!(error.to_string().contains("refused"), "{error}");
        assert!(error.is_definite());
    });
}
