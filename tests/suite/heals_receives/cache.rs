//! The cache drains into new receives at once, and never holds more than its limit allows.

use std::sync::{Arc, Mutex};

use rocketmq_actors::Delivery;
use tokio::time::Instant;

use super::*;

#[test]
fn n37_a_cache_that_drains_wakes_its_receives_at_once() {
    virtually(async {
        let broker = broker(|builder| builder.nodes(16)).await;
        broker.create_topic("t", TopicConfig::normal(1));
        for node in 0..16 {
            let of = |n| message("t", &format!("m{node}-{n}"), b"body");
            store(&broker, node, (0..30).map(of).collect()).await;
        }
        let handled = Tally::default();
        let builder = counting(&handled).max_cached_messages(8);
        let started = Instant::now();
        let consumer = start(&broker, builder).await;
        within(secs(60), || handled.ids() == 480).await;
        // With a pause of a second for each full cache it would be a minute.
        assert!(started.elapsed() < secs(5), "{:?}", started.elapsed());
        assert_eq!(handled.total(), 480);
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn n38_never_more_is_cached_than_the_limit_and_one_for_each_receive() {
    for seed in 0..6 {
        virtually(async {
            let broker = broker(|builder| builder.nodes(4)).await;
            broker.create_topic("t", TopicConfig::normal(1));
            let mut rng = fastrand::Rng::with_seed(seed);
            for node in 0..4 {
                let of = |n: usize| message("t", &format!("m{node}-{n}"), &vec![b'x'; 1 + n * 20]);
                store(&broker, node, (0..50_usize).map(of).collect()).await;
            }
            let (count, bytes) = (rng.usize(1..12), rng.usize(500..4_000));
            let delays = Arc::new(Mutex::new(rng.fork()));
            let handled = Tally::default();
            let tally = handled.clone();
            let builder = spec().handler(move |delivery: Delivery| {
                let takes = millis(delays.lock().unwrap().u64(0..400));
                let tally = tally.clone();
                async move {
                    tokio::time::sleep(takes).await;
                    tally.add(delivery.message_id());
                }
            });
            let builder = builder.max_cached_messages(count).max_cached_bytes(bytes);
            let consumer = start(&broker, builder).await;
            // A receive of four for each queue at most, each with a message of up to 1000 bytes.
            let receives = 4 * 4;
            within(secs(3600), || {
                let stats = consumer.stats();
                assert!(
                    stats.cached_messages <= count + receives,
                    "{seed}: {stats:?}"
                );
                assert!(
                    stats.cached_bytes <= bytes + receives * 1_000,
                    "{seed}: {stats:?}"
                );
                if rng.u8(..100) == 0 {
                    broker.reset_connections(rng.usize(..4));
                }
                handled.ids() == 200
            })
            .await;
            consumer.shutdown(secs(5)).await;
        });
    }
}
