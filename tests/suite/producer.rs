//! A send ends with a receipt or an honest error, within its budget, whatever the servers do.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures::future::join_all;
use rocketmq_actors::{
    Client, ClientConfig, Error, ErrorKind, Message, Producer, ProducerBuilder, ProducerSpec,
    Result, SendMessage, SendReceipt, Tls, WhenFull,
};
use rocketmq_embedded::{EmbeddedBroker, Fault, Reply, RequestBody, Rpc, TopicConfig, proto as pb};
use tokio::time::Instant;

use super::harness::*;

fn message(topic: &str, body: &str) -> Message {
    Message::builder(topic)
        .body(body.to_owned())
        .build()
        .unwrap()
}

fn spec() -> ProducerBuilder {
    ProducerSpec::builder()
}

async fn start(broker: &EmbeddedBroker, builder: ProducerBuilder) -> Producer {
    let spec = builder.build().unwrap();
    client(broker).start(spec).await.unwrap()
}

/// The topic `t` with two queues on each of so many nodes.
async fn with_topic(nodes: usize) -> Checked {
    let broker = broker(|builder| builder.nodes(nodes)).await;
    broker.create_topic("t", TopicConfig::normal(2));
    broker
}

/// Which node every SendMessage went to.
fn sends(broker: &EmbeddedBroker) -> Vec<usize> {
    let record = broker.record();
    record.of(Rpc::SendMessage).map(|call| call.node).collect()
}

/// The message id of every SendMessage.
fn sent_ids(broker: &EmbeddedBroker) -> Vec<String> {
    let record = broker.record();
    let id = |call: &rocketmq_embedded::Call| match &call.request {
        RequestBody::SendMessage(request) => {
            let properties = request.messages[0].system_properties.as_ref().unwrap();
            properties.message_id.clone()
        }
        other => panic!("not a send: {other:?}"),
    };
    record.of(Rpc::SendMessage).map(id).collect()
}

fn refused(sent: Result<SendReceipt>) -> Error {
    sent.expect_err("must fail")
}

#[test]
fn a_sent_message_is_stored_as_the_receipt_says() {
    virtually(async {
        let broker = with_topic(1).await;
        let producer = start(&broker, spec().topic("t")).await;
        let sent = Message::builder("t")
            .body("body")
            .tag("tag")
            .key("k1")
            .property("p", "v");
        let receipt = producer.send(sent.build().unwrap()).await.unwrap();
        let stored = broker.messages("t").pop().unwrap();
        assert_eq!(receipt.message_id(), stored.message_id);
        assert_eq!(receipt.offset(), Some(stored.offset));
        assert_eq!(receipt.topic(), "t");
        assert_eq!(receipt.broker_name(), "broker-0");
        assert_eq!(receipt.endpoints().to_string(), broker.endpoints());
        assert_eq!(receipt.recall_handle(), None);
        assert_eq!(
            (stored.body.as_ref(), stored.tag.as_deref()),
            (&b"body"[..], Some("tag"))
        );
        assert_eq!(stored.keys, ["k1"]);
        assert_eq!(stored.properties["p"], "v");
        let report = producer.shutdown(secs(1)).await;
        assert!(report.in_time && report.cut_off == 0, "{report:?}");
        let stats = producer.stats();
        assert_eq!(
            (stats.sent, stats.failed, stats.in_flight_messages),
            (1, 0, 0)
        );
        assert_eq!((stats.actors, stats.tasks), (0, 0), "{stats:?}");
    });
}

#[test]
fn many_messages_have_their_results_in_order_within_the_bound_in_flight() {
    virtually(async {
        let broker = with_topic(2).await;
        let slow = Fault::on(Rpc::SendMessage)
            .always()
            .delay_reply(millis(100));
        broker.fault(slow);
        let producer = start(&broker, spec().topic("t").max_in_flight(50)).await;
        let messages = (0..1000).map(|number| message("t", &number.to_string()));
        let began = Instant::now();
        let results = producer.send_all(messages).await;
        assert_eq!(began.elapsed(), secs(2), "20 rounds of 50");
        let stored = broker.messages("t");
        assert_eq!((results.len(), stored.len()), (1000, 1000));
        for (number, receipt) in results.into_iter().enumerate() {
            let receipt = receipt.unwrap();
            let of = |message: &&rocketmq_embedded::StoredMessage| {
                message.message_id == receipt.message_id()
            };
            let body = stored.iter().find(of).unwrap().body.clone();
            assert_eq!(body, number.to_string());
        }
    });
}

#[test]
fn many_messages_at_once_do_not_wait_for_each_other_at_the_server() {
    virtually(async {
        let broker = with_topic(1).await;
        let slow = Fault::on(Rpc::SendMessage).always().delay_reply(secs(1));
        broker.fault(slow);
        let producer = start(&broker, spec().topic("t")).await;
        let began = Instant::now();
        let all = producer.send_all((0..1024).map(|_| message("t", "x")));
        let (results, in_flight) = tokio::join!(all, async {
            tokio::time::sleep(millis(500)).await;
            producer.stats().in_flight_messages
        });
        assert_eq!(in_flight, 256, "the bound of the producer is 1024");
        assert_eq!(began.elapsed(), secs(4), "4 rounds of 256");
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(producer.stats().retries, 0);
    });
}

#[test]
fn an_unknown_topic_is_one_clear_error_at_start_and_at_send() {
    virtually(async {
        let broker = with_topic(1).await;
        let declared = spec().topic("nowhere").build().unwrap();
        let error = client(&broker).start(declared).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let producer = start(&broker, spec()).await;
        assert!(
            broker.record().of(Rpc::Telemetry).next().is_none(),
            "a start without topics contacts nothing"
        );
        let error = refused(producer.send(message("nowhere", "x")).await);
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.server_code(), Some(pb::Code::TopicNotFound.into()));
        assert!(error.is_definite());
        assert_eq!(producer.stats().topics, 0, "and is not kept");
        producer.send(message("t", "x")).await.unwrap();
    });
}

#[test]
fn a_body_over_the_servers_limit_never_leaves() {
    virtually(async {
        let broker = with_topic(1).await;
        let smaller = Fault::on(Rpc::Telemetry).always().mutate(|reply| {
            let Reply::Telemetry(command) = reply else {
                return;
            };
            let Some(pb::telemetry_command::Command::Settings(settings)) = &mut command.command
            else {
                return;
            };
            if let Some(pb::settings::PubSub::Publishing(publishing)) = &mut settings.pub_sub {
                publishing.max_body_size = 10;
            }
        });
        broker.fault(smaller);
        let producer = start(&broker, spec().topic("t")).await;
        let error = refused(producer.send(message("t", "eleven bytes")).await);
        assert!(error.kind() == ErrorKind::TooLarge && error.is_definite());
        producer.send(message("t", "ten bytes!")).await.unwrap();
        assert_eq!(sends(&broker).len(), 1);
    });
}

#[test]
fn a_type_the_topic_does_not_take_is_refused_here_with_the_types_it_takes() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("f", TopicConfig::fifo(2));
        let producer = start(&broker, spec().topic("f")).await;
        let error = refused(producer.send(message("f", "x")).await);
        assert!(error.kind() == ErrorKind::TypeConflict && error.is_definite());
        assert!(error.to_string().contains("FIFO"), "{error}");
        assert!(sends(&broker).is_empty());
        let grouped = Message::builder("f").body("x").group("g").build().unwrap();
        producer.send(grouped).await.unwrap();
    });
}

#[test]
fn field_49_a_dead_broker_leaves_enough_of_the_budget_for_a_living_one_and_rejoins() {
    virtually(async {
        let broker = with_topic(2).await;
        let producer = start(&broker, spec().topic("t")).await;
        broker.black_hole(1, true);
        let began = Instant::now();
        let all = join_all((0..20).map(|_| producer.send(message("t", "x")))).await;
        for receipt in all {
            assert_eq!(receipt.unwrap().broker_name(), "broker-0");
        }
        assert_eq!(began.elapsed(), secs(3), "one request time-out");
        let began = Instant::now();
        for _ in 0..10 {
            producer.send(message("t", "y")).await.unwrap();
        }
        assert!(began.elapsed() < secs(1), "it is isolated");
        broker.black_hole(1, false);
        tokio::time::sleep(secs(60)).await;
        let mut brokers = Vec::new();
        for _ in 0..4 {
            let receipt = producer.send(message("t", "z")).await.unwrap();
            brokers.push(receipt.broker_name().to_owned());
        }
        brokers.sort();
        brokers.dedup();
        assert_eq!(brokers, ["broker-0", "broker-1"], "it rejoined");
    });
}

#[test]
fn an_endpoint_in_trouble_is_isolated_until_its_next_good_heartbeat() {
    virtually(async {
        let broker = with_topic(2).await;
        let producer = start(&broker, spec().topic("t")).await;
        let sick = Fault::on(Rpc::SendMessage)
            .node(1)
            .always()
            .status(pb::Code::InternalServerError, "sick");
        let sick = broker.fault(sick);
        for _ in 0..9 {
            producer.send(message("t", "x")).await.unwrap();
        }
        assert_eq!(sick.hits(), 1, "the others went to the living one at once");
        assert_eq!(producer.stats().retries, 1);
        sick.clear();
        tokio::time::sleep(secs(11)).await;
        for _ in 0..4 {
            producer.send(message("t", "x")).await.unwrap();
        }
        assert!(sends(&broker)[11..].contains(&1));
    });
}

#[test]
fn a_result_that_is_no_success_is_none_and_its_outcome_unknown() {
    virtually(async {
        let broker = with_topic(1).await;
        let producer = start(&broker, spec().topic("t")).await;
        let unsafe_entry = Fault::on(Rpc::SendMessage).always().mutate(|reply| {
            if let Reply::SendMessage(reply) = reply {
                let status = reply.entries[0].status.as_mut().unwrap();
                status.code = pb::Code::MasterPersistenceTimeout.into();
            }
        });
        let fault = broker.fault(unsafe_entry);
        let error = refused(producer.send(message("t", "x")).await);
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert_eq!(error.server_code(), Some(50401));
        assert!(!error.is_definite(), "it is stored, in truth");
        assert_eq!(fault.hits(), 3);
        fault.clear();
        let none = Fault::on(Rpc::SendMessage).always().mutate(|reply| {
            if let Reply::SendMessage(reply) = reply {
                reply.entries.clear();
            }
        });
        let fault = broker.fault(none);
        let error = refused(producer.send(message("t", "x")).await);
        assert!(error.kind() == ErrorKind::Protocol && !error.is_definite());
        assert_eq!(fault.hits(), 1, "never again after it may be stored");
    });
}

#[test]
fn an_unreachable_server_is_one_error_within_the_budget() {
    virtually(async {
        let broker = with_topic(1).await;
        let config = config_at(&broker, "10.9.9.9:8081").build().unwrap();
        let producer = Client::new(config)
            .start(spec().build().unwrap())
            .await
            .unwrap();
        let began = Instant::now();
        let error = refused(producer.send(message("t", "x")).await);
        assert!(error.kind() == ErrorKind::Unreachable && error.is_definite());
        assert_eq!(error.peer(), Some("10.9.9.9:8081"));
        assert!(began.elapsed() < secs(9));
    });
}

#[test]
fn a_server_that_dies_or_falls_silent_costs_no_more_than_the_budget() {
    virtually(async {
        for silent in [true, false] {
            let broker = with_topic(1).await;
            let producer = start(&broker, spec().topic("t").send_timeout(secs(5))).await;
            if silent {
                broker.black_hole(0, true);
            } else {
                broker.stop_node(0);
            }
            for _ in 0..3 {
                let began = Instant::now();
                let error = refused(producer.send(message("t", "x")).await);
                assert!(began.elapsed() <= secs(5), "{:?}", began.elapsed());
                assert!(error.is_retryable(), "{error}");
                tokio::time::sleep(secs(20)).await;
            }
        }
    });
}

#[test]
fn field_51_beyond_the_bound_sends_wait_or_are_refused_as_chosen() {
    virtually(async {
        let broker = with_topic(1).await;
        let slow = Fault::on(Rpc::SendMessage).always().delay_reply(secs(1));
        broker.fault(slow);
        for (when_full, stored, elapsed) in
            [(WhenFull::Wait, 6, secs(3)), (WhenFull::Refuse, 2, secs(1))]
        {
            let builder = spec().topic("t").max_in_flight(2).when_full(when_full);
            let producer = start(&broker, builder).await;
            let began = Instant::now();
            let all = join_all((0..6).map(|_| producer.send(message("t", "x")))).await;
            assert_eq!(began.elapsed(), elapsed);
            let (sent, full): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
            assert_eq!(sent.len(), stored);
            for error in full.into_iter().map(refused) {
                assert!(error.kind() == ErrorKind::Full && error.is_definite());
            }
            let stats = producer.stats();
            assert_eq!((stats.in_flight_messages, stats.in_flight_bytes), (0, 0));
        }
    });
}

#[test]
fn a_dropped_send_gives_its_room_back() {
    virtually(async {
        let broker = with_topic(1).await;
        let fault = broker.fault(Fault::on(Rpc::SendMessage).always().hang());
        let producer = start(&broker, spec().topic("t").max_in_flight(1)).await;
        let held = tokio::time::timeout(secs(1), producer.send(message("t", "x"))).await;
        assert!(held.is_err(), "it hangs");
        assert_eq!(producer.stats().in_flight_messages, 0);
        fault.clear();
        producer.send(message("t", "y")).await.unwrap();
    });
}

#[test]
fn field_50_a_closed_producer_refuses_and_what_is_cut_off_is_unknown() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.fault(Fault::on(Rpc::SendMessage).always().hang());
        let producer = start(&broker, spec().topic("t").max_in_flight(1)).await;
        let send = |body: &'static str| {
            let producer = producer.clone();
            tokio::task::spawn_local(async move { producer.send(message("t", body)).await })
        };
        let (on_wire, waiting) = (send("on the wire"), send("waiting"));
        broker
            .wait_for(|record| record.count(Rpc::SendMessage) == 1)
            .await;
        let began = Instant::now();
        let report = producer.shutdown(secs(1)).await;
        assert!(began.elapsed() <= secs(2));
        assert_eq!(
            (report.finished, report.cut_off, report.in_time),
            (0, 1, false)
        );
        let cut = refused(on_wire.await.unwrap());
        assert!(
            cut.kind() == ErrorKind::Closed && !cut.is_definite(),
            "{cut}"
        );
        for closed in [
            waiting.await.unwrap(),
            producer.send(message("t", "late")).await,
        ] {
            let closed = refused(closed);
            assert!(
                closed.kind() == ErrorKind::Closed && closed.is_definite(),
                "{closed}"
            );
        }
        let all = producer
            .send_all([message("t", "1"), message("t", "2")])
            .await;
        assert!(
            all.into_iter()
                .all(|sent| refused(sent).kind() == ErrorKind::Closed)
        );
        assert_eq!(
            producer.shutdown(secs(9)).await,
            report,
            "the same report again"
        );
        assert!(broker.clients(0).is_empty(), "it took its leave");
    });
}

#[test]
fn field_50_a_shutdown_waits_for_what_is_in_flight() {
    virtually(async {
        let broker = with_topic(1).await;
        broker.fault(Fault::on(Rpc::SendMessage).always().delay_reply(secs(2)));
        let producer = start(&broker, spec().topic("t")).await;
        let all = producer.send_all((0..3).map(|_| message("t", "x")));
        let (sent, report) = tokio::join!(all, async {
            tokio::time::sleep(secs(1)).await;
            producer.shutdown(secs(5)).await
        });
        assert!(sent.iter().all(Result::is_ok));
        assert_eq!(
            (report.finished, report.cut_off, report.in_time),
            (3, 0, true)
        );
    });
}

#[test]
fn a_producer_that_is_just_dropped_takes_its_leave() {
    virtually(async {
        let broker = with_topic(1).await;
        drop(start(&broker, spec().topic("t")).await);
        broker
            .wait_for(|record| record.count(Rpc::NotifyClientTermination) == 1)
            .await;
    });
}

#[test]
fn n11_declared_and_later_used_topics_are_in_the_settings() {
    virtually(async {
        let broker = broker(|builder| builder.nodes(2)).await;
        for topic in ["one", "two", "three"] {
            broker.create_topic(topic, TopicConfig::normal(1));
        }
        let producer = start(&broker, spec().topics(["one", "two"])).await;
        let id = producer.client_id().to_owned();
        let told = |node: usize| match broker.settings(node, &id).unwrap().pub_sub {
            Some(pb::settings::PubSub::Publishing(publishing)) => {
                let names = publishing.topics.into_iter().map(|topic| topic.name);
                names.collect::<Vec<_>>()
            }
            other => panic!("not of a producer: {other:?}"),
        };
        assert_eq!(told(0), ["one", "two"]);
        producer.send(message("three", "x")).await.unwrap();
        let all = ["one", "three", "two"];
        // Long before the settings would be sent again anyway.
        let resent = broker.wait_for(|_| (0..2).all(|node| told(node) == all));
        tokio::time::timeout(secs(1), resent).await.unwrap();
    });
}

#[test]
fn a_lost_reply_is_followed_by_the_same_message_id() {
    virtually(async {
        let broker = with_topic(1).await;
        let producer = start(&broker, spec().topic("t")).await;
        broker.fault(Fault::on(Rpc::SendMessage).lose_reply());
        let receipt = producer.send(message("t", "x")).await.unwrap();
        let id = receipt.message_id();
        assert_eq!(sent_ids(&broker), [id, id]);
        assert_eq!(broker.messages("t").len(), 2, "twice, and to be recognised");
        broker.fault(Fault::on(Rpc::SendMessage).times(3).lose_reply());
        let error = refused(producer.send(message("t", "y")).await);
        assert!(!error.is_definite(), "{error}");
    });
}

#[test]
fn field_57_throttling_backs_off_by_the_servers_policy_and_uses_up_no_attempt() {
    virtually(async {
        let broker = with_topic(1).await;
        let producer = start(&broker, spec().topic("t")).await;
        let busy = Fault::on(Rpc::SendMessage)
            .times(5)
            .status(pb::Code::TooManyRequests, "flow limit");
        broker.fault(busy);
        let began = Instant::now();
        producer.send(message("t", "x")).await.unwrap();
        // 10 ms doubled each time, as the broker's settings say.
        let policy: Duration = [10, 20, 40, 80, 160].map(millis).iter().sum();
        assert!(began.elapsed() >= policy && began.elapsed() < policy + millis(50));
        let busy = Fault::on(Rpc::SendMessage)
            .always()
            .status(pb::Code::TooManyRequests, "flow limit");
        broker.fault(busy);
        let began = Instant::now();
        let error = refused(producer.send(message("t", "x")).await);
        assert!(error.kind() == ErrorKind::Throttled && error.is_definite());
        assert!(began.elapsed() <= secs(9));
    });
}

#[test]
fn doubts_of_a_server_count_only_before_the_first_success() {
    virtually(async {
        let broker = with_topic(1).await;
        let producer = start(&broker, spec().topic("t")).await;
        for code in [
            pb::Code::TopicNotFound,
            pb::Code::MessagePropertyConflictWithType,
        ] {
            let doubt = || Fault::on(Rpc::SendMessage).times(4).status(code, "who?");
            let fresh = start(&broker, spec().topic("t")).await;
            let first = broker.fault(doubt());
            assert!(refused(fresh.send(message("t", "x")).await).is_definite());
            assert_eq!(first.hits(), 1);
            broker.clear_faults();
            producer.send(message("t", "x")).await.unwrap();
            let later = broker.fault(doubt());
            producer.send(message("t", "x")).await.unwrap();
            assert_eq!(later.hits(), 4);
        }
    });
}

#[test]
fn a_refusal_by_the_server_is_final_and_isolates_nobody() {
    virtually(async {
        let broker = with_topic(2).await;
        let producer = start(&broker, spec().topic("t")).await;
        for (code, kind) in [
            (pb::Code::Forbidden, ErrorKind::Forbidden),
            (pb::Code::Unauthorized, ErrorKind::Unauthorized),
            (pb::Code::MessageBodyTooLarge, ErrorKind::TooLarge),
            (pb::Code::IllegalMessageTag, ErrorKind::InvalidArgument),
        ] {
            let fault = broker.fault(Fault::on(Rpc::SendMessage).status(code, "no"));
            let error = refused(producer.send(message("t", "x")).await);
            assert_eq!((error.kind(), error.is_definite()), (kind, true));
            assert_eq!(fault.hits(), 1);
        }
        for _ in 0..2 {
            producer.send(message("t", "x")).await.unwrap();
        }
        let mut nodes = sends(&broker)[4..].to_vec();
        nodes.sort_unstable();
        assert_eq!(nodes, [0, 1], "both are still used in turn");
    });
}

#[test]
fn nothing_is_sent_to_an_endpoint_whose_settings_are_lost_until_they_are_back() {
    virtually(async {
        let broker = with_topic(1).await;
        let producer = start(&broker, spec().topic("t")).await;
        broker.forget_settings(0, producer.client_id());
        let lost = Fault::on(Rpc::SendMessage).status(pb::Code::UnrecognizedClientType, "who?");
        broker.fault(lost);
        let before = broker.record().next_seq();
        producer.send(message("t", "x")).await.unwrap();
        let record = broker.record();
        let told = |call: &&rocketmq_embedded::Call| call.rpc != Rpc::Heartbeat;
        let calls: Vec<_> = record
            .since(before)
            .filter(told)
            .map(|call| call.rpc)
            .collect();
        assert_eq!(calls, [Rpc::SendMessage, Rpc::Telemetry, Rpc::SendMessage]);
    });
}

#[test]
fn field_56_every_send_ends_while_every_actor_crashes() {
    virtually(async {
        let broker = with_topic(2).await;
        let producer = start(&broker, spec().topic("t")).await;
        for actor in ["producer", "routes", "session"] {
            let sending = (0..200).map(|number| {
                let producer = producer.clone();
                async move {
                    tokio::time::sleep(millis(number * 5)).await;
                    producer.send(message("t", "x")).await
                }
            });
            let crash = async {
                tokio::time::sleep(millis(500)).await;
                producer.crash(actor);
            };
            let (sent, ()) = tokio::join!(join_all(sending), crash);
            assert!(sent.iter().all(Result::is_ok), "{actor}: {sent:?}");
        }
        assert!(producer.stats().restarts >= 3);
        broker.create_topic("new", TopicConfig::normal(1));
        producer.send(message("new", "x")).await.unwrap();
    });
}

#[test]
fn an_actor_sends_by_a_message_also_after_the_producers_actor_crashed() {
    virtually(async {
        let broker = with_topic(1).await;
        let producer = start(&broker, spec().topic("t")).await;
        let recipient = producer.recipient();
        let send = || {
            recipient.send(SendMessage {
                message: message("t", "x"),
            })
        };
        send().await.unwrap().unwrap();
        producer.crash("producer");
        let receipt = send().await.unwrap().unwrap();
        assert_eq!(receipt.topic(), "t");
        assert_eq!(broker.messages("t").len(), 2);
    });
}

#[test]
fn a_producer_and_its_futures_can_be_used_from_any_thread() {
    fn moves<T: Send>(_: &T) {}
    virtually(async {
        let broker = with_topic(1).await;
        let producer = Arc::new(start(&broker, spec()).await);
        moves(&producer);
        let send = producer.send(message("t", "x"));
        moves(&send);
        send.await.unwrap();
        let all = producer.send_all([message("t", "x")]);
        moves(&all);
        assert_eq!(all.await.len(), 1);
    });
}

#[test]
fn after_a_part_gave_up_sends_fail_with_its_error() {
    virtually(async {
        let broker = with_topic(1).await;
        let producer = start(&broker, spec().topic("t")).await;
        let crashes = async {
            loop {
                producer.crash("producer");
                tokio::time::sleep(millis(100)).await;
            }
        };
        let failed = tokio::select! {
            () = crashes => unreachable!("it never ends"),
            failed = producer.failed() => failed,
        };
        assert_eq!(failed.kind(), ErrorKind::GaveUp);
        let error = refused(producer.send(message("t", "x")).await);
        assert!(
            error.kind() == ErrorKind::GaveUp && error.is_definite(),
            "{error}"
        );
        assert!(producer.shutdown(secs(1)).await.in_time);
    });
}

#[test]
fn a_request_that_had_no_time_isolates_nobody() {
    virtually(async {
        let broker = with_topic(2).await;
        let hurried = spec().topic("t").send_timeout(millis(300)).max_attempts(1);
        let producer = start(&broker, hurried).await;
        broker.fault(Fault::on(Rpc::SendMessage).hang());
        let error = refused(producer.send(message("t", "x")).await);
        assert!(error.kind() == ErrorKind::Timeout && !error.is_definite());
        for _ in 0..4 {
            producer.send(message("t", "x")).await.unwrap();
        }
        let nodes = sends(&broker);
        assert!(nodes.contains(&0) && nodes.contains(&1), "{nodes:?}");
        assert_eq!(nodes[1..].iter().filter(|node| **node == 0).count(), 2);
    });
}

#[test]
fn a_group_goes_to_one_queue_also_when_it_is_retried() {
    virtually(async {
        let broker = broker(|builder| builder.nodes(2)).await;
        broker.create_topic("f", TopicConfig::fifo(4));
        let producer = start(&broker, spec().topic("f")).await;
        let send = || {
            let grouped = Message::builder("f").body("x").group("g");
            producer.send(grouped.build().unwrap())
        };
        let home = send().await.unwrap();
        broker.fault(Fault::on(Rpc::SendMessage).status(pb::Code::InternalServerError, "sick"));
        for _ in 0..3 {
            let receipt = send().await.unwrap();
            assert_eq!(receipt.broker_name(), home.broker_name());
            assert_eq!(receipt.queue_id(), home.queue_id());
        }
        let nodes = sends(&broker);
        assert!(nodes.iter().all(|node| *node == nodes[0]), "{nodes:?}");
    });
}

/// One of the ways a send goes wrong.
fn mishap(rng: &mut fastrand::Rng) -> Fault {
    let fault = Fault::on(Rpc::SendMessage)
        .skip(rng.u64(..20))
        .times(rng.u64(1..10));
    match rng.u8(..9) {
        0 => fault.lose_reply(),
        1 => fault.hang(),
        2 => fault.after_work().hang(),
        3 => fault.reset(),
        4 => fault.status(pb::Code::TooManyRequests, "flow limit"),
        5 => fault.status(pb::Code::InternalServerError, "sick"),
        6 => fault.status(pb::Code::Forbidden, "no writable queue"),
        7 => fault.delay_reply(millis(rng.u64(..5000))),
        _ => fault.mutate(|reply| {
            if let Reply::SendMessage(reply) = reply {
                let status = reply.entries[0].status.as_mut().unwrap();
                status.code = pb::Code::SlavePersistenceTimeout.into();
            }
        }),
    }
}

/// What may happen to the producer meanwhile.
async fn upheaval(broker: &EmbeddedBroker, producer: &Producer, rng: &mut fastrand::Rng) {
    for _ in 0..rng.u8(..6) {
        tokio::time::sleep(millis(rng.u64(..3000))).await;
        match rng.u8(..7) {
            0 => producer.crash("producer"),
            1 => producer.crash("routes"),
            2 => producer.crash("session"),
            3 => broker.black_hole(1, rng.bool()),
            4 => broker.reset_connections(rng.usize(..2)),
            5 => {
                broker.stop_node(0);
                tokio::time::sleep(millis(rng.u64(..3000))).await;
                broker.start_node(0).await.unwrap();
            }
            _ => {
                producer.shutdown(millis(rng.u64(..3000))).await;
            }
        }
    }
}

#[test]
fn field_56_every_send_ends_in_time_and_definite_means_definite() {
    for seed in 0..40 {
        virtually(async {
            let mut rng = fastrand::Rng::with_seed(seed);
            let broker = with_topic(2).await;
            let producer = start(&broker, spec().topic("t").max_in_flight(20)).await;
            for _ in 0..rng.u8(..8) {
                broker.fault(mishap(&mut rng));
            }
            let pauses: Vec<_> = (0..60).map(|_| millis(rng.u64(..6000))).collect();
            let sending = pauses.into_iter().enumerate().map(|(number, pause)| {
                let producer = producer.clone();
                async move {
                    tokio::time::sleep(pause).await;
                    let began = Instant::now();
                    let sent = producer.send(message("t", &number.to_string())).await;
                    let took = began.elapsed();
                    assert!(took <= secs(9), "seed {seed}: {took:?} for {sent:?}");
                    (number.to_string(), sent)
                }
            });
            let (results, ()) =
                tokio::join!(join_all(sending), upheaval(&broker, &producer, &mut rng));
            let stored: HashSet<_> = broker
                .messages("t")
                .into_iter()
                .map(|message| (message.message_id, message.body))
                .collect();
            let bodies: HashSet<_> = stored.iter().map(|(_, body)| body.clone()).collect();
            for (body, sent) in results {
                match sent {
                    Ok(receipt) => {
                        let pair = (receipt.message_id().to_owned(), body.into());
                        assert!(stored.contains(&pair), "seed {seed}: lost {pair:?}");
                    }
                    Err(error) if error.is_definite() => {
                        let kept = bodies.contains(body.as_bytes());
                        assert!(!kept, "seed {seed}: {body} is stored: {error}");
                    }
                    Err(_) => {}
                }
            }
            let stats = producer.stats();
            assert_eq!((stats.in_flight_messages, stats.in_flight_bytes), (0, 0));
        });
    }
}

#[test]
fn a_producer_on_threads_of_its_own_serves_many_threads_over_sockets() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let broker = EmbeddedBroker::start().await.unwrap();
        broker.create_topic("t", TopicConfig::normal(4));
        let config = ClientConfig::builder(broker.endpoints()).tls(Tls::Off);
        let client = Client::new(config.build().unwrap());
        let spec = spec().topic("t").build().unwrap();
        let producer = client.start(spec).await.unwrap();
        let senders = (0..4).map(|_| {
            let producer = producer.clone();
            tokio::spawn(async move {
                let messages = (0..250).map(|_| message("t", "x"));
                producer.send_all(messages).await
            })
        });
        for sent in join_all(senders).await {
            assert!(sent.unwrap().iter().all(Result::is_ok));
        }
        assert_eq!(broker.messages("t").len(), 1000);
        let to_actor = producer.recipient().send(SendMessage {
            message: message("t", "x"),
        });
        to_actor.await.unwrap().unwrap();
        assert!(producer.shutdown(secs(5)).await.in_time);
        assert!(broker.clients(0).is_empty());
    });
}
