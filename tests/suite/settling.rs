//! Every delivery is settled as decided, or goes back, whatever happens in between.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rocketmq_actors::{Delivery, Outcome};
use rocketmq_embedded::{Fault, RequestBody, Rpc, TopicConfig, proto as pb};
use tokio::time::Instant;

use super::{
    harness::*,
    heals_receives::{ordered, spec, start},
};

#[test]
fn an_acknowledged_message_is_not_taken_back_by_a_crash_before_the_reply() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        store_numbered(&broker, "t", 20).await;
        broker.fault(Fault::on(Rpc::AckMessage).times(1).delay_reply(secs(2)));
        let handled = Tally::default();
        let tally = handled.clone();
        let consumer = start(
            &broker,
            spec().handler(move |delivery: Delivery| {
                tally.add(delivery.message_id());
                async {}
            }),
        )
        .await;
        broker.wait_for(|_| !broker.acks().is_empty()).await;
        consumer.crash("queue");
        tokio::time::sleep(secs(120)).await;
        assert_eq!(
            (handled.ids(), handled.total()),
            (20, 20),
            "none comes again"
        );
        assert_eq!(broker.inspect("t", "g").acked, 20);
        assert_eq!(broker.record().count(Rpc::ChangeInvisibleDuration), 0);
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn a_shutdown_that_cuts_off_an_ack_does_not_take_it_back() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        store_numbered(&broker, "t", 5).await;
        broker.fault(Fault::on(Rpc::AckMessage).times(1).delay_reply(secs(2)));
        let consumer = start(&broker, spec().handler(|_: Delivery| async {})).await;
        broker.wait_for(|_| !broker.acks().is_empty()).await;
        let report = consumer.shutdown(millis(100)).await;
        assert_eq!(report.handed_back, 0, "{report:?}");
        tokio::time::sleep(secs(120)).await;
        assert_eq!(broker.inspect("t", "g").ready, 0, "nothing comes again");
    });
}

#[test]
fn a_small_cache_and_slow_handlers_hide_no_message() {
    virtually(async {
        let broker = broker(|builder| builder.nodes(2)).await;
        broker.create_topic("t", TopicConfig::normal(4));
        store_numbered(&broker, "t", 60).await;
        let handled = Tally::default();
        let tally = handled.clone();
        let builder = spec().max_cached_messages(4).concurrency(4);
        let consumer = start(
            &broker,
            builder.handler(move |delivery: Delivery| {
                let tally = tally.clone();
                async move {
                    tokio::time::sleep(secs(60)).await;
                    tally.add(delivery.message_id());
                }
            }),
        )
        .await;
        let started = Instant::now();
        let most = async {
            let mut most = 0;
            loop {
                most = most.max(consumer.stats().cached_messages);
                if handled.ids() == 60 {
                    return most;
                }
                tokio::time::sleep(millis(500)).await;
            }
        };
        let most = most.await;
        // 60 messages, four at a time, a minute each.
        assert!(started.elapsed() < secs(25 * 60), "{:?}", started.elapsed());
        assert!(most <= 4 + 8, "the limit and one for each receive: {most}");
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn a_queue_that_comes_back_is_consumed_while_an_old_handler_still_runs() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        store_numbered(&broker, "t", 1).await;
        let (handled, stuck) = (Tally::default(), Arc::new(AtomicBool::new(true)));
        let tally = handled.clone();
        let consumer = start(
            &broker,
            spec().handler(move |delivery: Delivery| {
                let (tally, first) = (tally.clone(), stuck.swap(false, Ordering::AcqRel));
                async move {
                    if first {
                        std::future::pending::<()>().await;
                    }
                    tally.add(delivery.message_id());
                }
            }),
        )
        .await;
        broker.wait_for(|_| broker.deliveries().len() == 1).await;
        broker.set_assignment("t", "g", Vec::new());
        tokio::time::sleep(secs(20)).await;
        assert_eq!(consumer.stats().queues, 0);
        broker.clear_assignment("t", "g");
        store(&broker, 0, vec![message("t", "new", b"new")]).await;
        tokio::time::sleep(secs(20)).await;
        assert_eq!(handled.of("new"), 1);
        let report = consumer.shutdown(secs(1)).await;
        assert!(!report.in_time && report.handed_back == 1, "{report:?}");
        let stats = consumer.stats();
        assert_eq!(
            (stats.actors, stats.tasks, stats.cached_messages),
            (0, 0, 0),
            "{stats:?}"
        );
    });
}

#[test]
fn an_ordered_message_that_waits_for_its_next_attempt_holds_up_no_shutdown() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        ordered(&broker).await;
        let later = |_: Delivery| async { Outcome::RetryAfter(secs(3600)) };
        let consumer = start(&broker, spec().handler(later)).await;
        broker.wait_for(|_| broker.deliveries().len() == 4).await;
        tokio::time::sleep(secs(1)).await;
        let started = Instant::now();
        let report = consumer.shutdown(secs(60)).await;
        assert!(report.in_time && started.elapsed() < secs(3), "{report:?}");
        assert_eq!((report.handed_back, report.abandoned), (4, 0), "{report:?}");
    });
}

#[test]
fn a_damaged_message_of_an_ordered_queue_is_dead_lettered_before_its_successors() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        ordered(&broker).await;
        broker.fault(Fault::on(Rpc::ReceiveMessage).times(1).mutate(|reply| {
            if let rocketmq_embedded::Reply::ReceiveMessage(reply) = reply
                && let Some(pb::receive_message_response::Content::Message(message)) =
                    &mut reply.content
                && let Some(system) = &mut message.system_properties
                && system.message_id == "m1"
                && let Some(digest) = &mut system.body_digest
            {
                digest.checksum = "0".repeat(32);
            }
        }));
        let handled = Arc::new(std::sync::Mutex::new(Vec::new()));
        let order = handled.clone();
        let seen = broker.clone();
        let consumer = start(
            &broker,
            spec().handler(move |delivery: Delivery| {
                let dead = seen.dead_letters("g").len();
                order
                    .lock()
                    .unwrap()
                    .push((delivery.message_id().to_owned(), dead));
                async {}
            }),
        )
        .await;
        broker
            .wait_for(|_| broker.acks().len() + broker.dead_letters("g").len() >= 4)
            .await;
        let expected = [("m0", 0), ("m2", 1), ("m3", 1)].map(|(id, dead)| (id.to_owned(), dead));
        assert_eq!(*handled.lock().unwrap(), expected);
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn failed_acks_are_retried_by_their_handle_and_hold_up_nobody() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        store_numbered(&broker, "t", 40).await;
        let failing = Fault::on(Rpc::AckMessage).times(3);
        broker.fault(failing.status(pb::Code::InternalServerError, "not now"));
        let consumer = start(&broker, spec().handler(|_: Delivery| async {})).await;
        broker
            .wait_for(|_| broker.inspect("t", "g").acked == 40)
            .await;
        consumer.shutdown(secs(5)).await;
        let stats = consumer.stats();
        assert_eq!(
            (stats.acked, stats.expired, stats.unsettled),
            (40, 0, 0),
            "{stats:?}"
        );
        let record = broker.record();
        let most = record.of(Rpc::AckMessage).map(|call| match &call.request {
            RequestBody::AckMessage(request) => request.entries.len(),
            other => panic!("{other:?}"),
        });
        assert!(most.max().unwrap() > 1, "acks were batched");
        assert!(
            record.count(Rpc::AckMessage) < 20,
            "{}",
            record.count(Rpc::AckMessage)
        );
    });
}
