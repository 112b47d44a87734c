//! Connections: HTTP/2 limits, reuse, sends without a server.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use rocketmq_actors::{Connector, ErrorKind, Message, ProducerSpec};
use rocketmq_embedded::Record;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

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

#[test]
fn n123_no_ping_of_our_own_is_sent_in_ten_idle_minutes() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let pings = Arc::new(AtomicUsize::new(0));
        let (pipes, seen) = (broker.connector(), pings.clone());
        let connector = Connector::new(move |host: String, port| {
            let (inner, seen) = (pipes.connect(&host, port), seen.clone());
            async move {
                let (ours, theirs) = tokio::io::duplex(64 * 1024);
                tokio::spawn(pass_and_count(theirs, inner?, seen));
                Ok::<_, std::io::Error>(ours)
            }
        });
        let config = config(&broker).connector(connector).build().unwrap();
        let _consumer = rocketmq_actors::Client::new(config)
            .start(consumer())
            .await
            .unwrap();
        tokio::time::sleep(secs(600)).await;
        assert!(broker.record().count(Rpc::Heartbeat) >= 50);
        assert_eq!(pings.load(Ordering::Relaxed), 0);
    });
}

/// Passes all bytes on, and counts the PING frames of the client that are no answers.
async fn pass_and_count(
    client: tokio::io::DuplexStream,
    server: impl AsyncRead + AsyncWrite,
    pings: Arc<AtomicUsize>,
) -> std::io::Result<()> {
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let upstream = async {
        let mut preface = [0; 24];
        from_client.read_exact(&mut preface).await?;
        to_server.write_all(&preface).await?;
        loop {
            let mut head = [0; 9];
            from_client.read_exact(&mut head).await?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut body = vec![0; usize::try_from(length).unwrap()];
            from_client.read_exact(&mut body).await?;
            if head[3] == 6 && head[4] & 1 == 0 {
                pings.fetch_add(1, Ordering::Relaxed);
            }
            to_server.write_all(&head).await?;
            to_server.write_all(&body).await?;
        }
    };
    tokio::select! {
        ended = upstream => ended,
        ended = tokio::io::copy(&mut from_server, &mut to_client) => ended.map(drop),
    }
}
