//! Routes and assignments that change, and topics that go.

use rocketmq_embedded::{Fault, proto::Code};

use super::*;

#[test]
fn n10_a_topic_that_is_gone_is_asked_for_slowly_and_taken_up_when_it_is_back() {
    for code in [Code::TopicNotFound, Code::Forbidden] {
        virtually(async {
            let broker = broker(|builder| builder).await;
            broker.create_topic("t", TopicConfig::normal(1));
            broker.create_topic("u", TopicConfig::normal(1));
            let spec = PushConsumerSpec::builder("g")
                .subscribe("t", Filter::any())
                .subscribe("u", Filter::any())
                .handler(|_: Delivery| async {})
                .build()
                .unwrap();
            let _consumer = client(&broker).start(spec).await.unwrap();
            tokio::time::sleep(secs(5)).await;
            let gone = Fault::on(Rpc::ReceiveMessage).topic("t").always();
            let gone = broker.fault(gone.status(code, "gone"));
            store(&broker, 0, vec![message("t", "wake", b"m")]).await;
            tokio::time::sleep(secs(60)).await;
            let from = Instant::now();
            let mark = broker.record().next_seq();
            tokio::time::sleep(secs(60)).await;
            let record = broker.record();
            let polls = record
                .since(mark)
                .filter(|call| call.rpc == Rpc::ReceiveMessage);
            let polls = polls.count();
            assert!(
                (20..=64).contains(&polls),
                "{polls} polls of both in a minute"
            );
            assert!(from.elapsed() >= secs(60));
            let before = broker.acks().len();
            store(&broker, 0, vec![message("u", "m", b"m")]).await;
            let stored = Instant::now();
            broker.wait_for(|_| broker.acks().len() > before).await;
            assert!(stored.elapsed() <= millis(100), "others are unharmed");
            gone.clear();
            store(&broker, 0, vec![message("t", "back", b"m")]).await;
            let back = Instant::now();
            broker.wait_for(|_| broker.acks().len() >= before + 2).await;
            assert!(back.elapsed() <= secs(3), "{:?}", back.elapsed());
        });
    }
}

#[test]
fn n8_n125_assignments_of_any_size_start_and_stop_exactly_the_difference() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        eight_queues(&broker);
        let consumer = client(&broker).start(consumer()).await.unwrap();
        for ids in [
            vec![0],
            vec![0, 1],
            vec![1, 0, 5],
            vec![],
            vec![7, 3],
            vec![3, 4, 2, 7, 1],
        ] {
            broker.set_assignment("t", "g", assignments(&broker, &ids));
            tokio::time::sleep(secs(40)).await;
            let mark = broker.record().next_seq();
            tokio::time::sleep(secs(40)).await;
            let polled: std::collections::BTreeSet<_> = broker
                .record()
                .since(mark)
                .filter_map(|call| match &call.request {
                    rocketmq_embedded::RequestBody::ReceiveMessage(request) => {
                        Some(request.message_queue.as_ref().unwrap().id)
                    }
                    _ => None,
                })
                .collect();
            assert_eq!(polled, ids.iter().copied().collect(), "assigned {ids:?}");
        }
        consumer.shutdown(secs(1)).await;
    });
}
