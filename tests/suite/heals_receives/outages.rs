//! However a server fails, the requests it gets meanwhile are few, and work goes on soon after.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use rocketmq_actors::{Client, Connector};
use rocketmq_embedded::{Close, EmbeddedBroker, Fault, Rpc, TopicConfig, proto as pb};

use super::*;

/// Ten minutes.
const OUTAGE: u64 = 600;

/// A consumer over two nodes with a queue each, and how often it tried to connect.
async fn two_nodes() -> (Checked, PushConsumer, Tally, Arc<AtomicUsize>) {
    let broker = broker(|builder| builder.nodes(2)).await;
    broker.create_topic("t", TopicConfig::normal(1));
    let connects = Arc::new(AtomicUsize::new(0));
    let (counter, connector) = (connects.clone(), broker.connector());
    let counted = Connector::new(move |host: String, port| {
        counter.fetch_add(1, Ordering::AcqRel);
        let connected = connector.connect(&host, port);
        async move { connected }
    });
    let client = Client::new(config(&broker).connector(counted).build().unwrap());
    let handled = Tally::default();
    let consumer = client
        .start(counting(&handled).build().unwrap())
        .await
        .unwrap();
    within(secs(10), || {
        broker.live(0).parked_polls + broker.live(1).parked_polls == 2
    })
    .await;
    (broker, consumer, handled, connects)
}

/// What begins an outage of all nodes, and what ends it.
struct Outage {
    what: &'static str,
    begin: fn(&EmbeddedBroker),
    end: fn(&EmbeddedBroker),
}

fn each_node(broker: &EmbeddedBroker, act: impl Fn(usize)) {
    (0..broker.nodes()).for_each(act);
}

fn failing(fault: Fault) -> impl Fn(&EmbeddedBroker) {
    move |broker| {
        broker.fault(fault.clone());
    }
}

const OUTAGES: [Outage; 9] = [
    Outage {
        what: "unavailable",
        begin: |broker| {
            failing(
                Fault::on(Rpc::ReceiveMessage)
                    .always()
                    .grpc(tonic::Code::Unavailable, "no"),
            )(broker)
        },
        end: EmbeddedBroker::clear_faults,
    },
    Outage {
        what: "throttled",
        begin: |broker| {
            let slower = Fault::on(Rpc::ReceiveMessage).always();
            failing(slower.status(pb::Code::TooManyRequests, "slower"))(broker);
        },
        end: EmbeddedBroker::clear_faults,
    },
    Outage {
        what: "throttled by gRPC",
        begin: |broker| {
            let slower = Fault::on(Rpc::ReceiveMessage).always();
            failing(slower.grpc(tonic::Code::ResourceExhausted, "slower"))(broker);
        },
        end: EmbeddedBroker::clear_faults,
    },
    Outage {
        what: "server errors",
        begin: |broker| {
            let no = Fault::on(Rpc::ReceiveMessage).always();
            failing(no.status(pb::Code::InternalServerError, "no"))(broker);
        },
        end: EmbeddedBroker::clear_faults,
    },
    Outage {
        what: "empty at once",
        begin: |broker| {
            let empty = Fault::on(Rpc::ReceiveMessage).always();
            failing(empty.status(pb::Code::MessageNotFound, "no new message"))(broker);
        },
        end: EmbeddedBroker::clear_faults,
    },
    Outage {
        what: "ends without a word",
        begin: |broker| failing(Fault::on(Rpc::ReceiveMessage).always().end())(broker),
        end: EmbeddedBroker::clear_faults,
    },
    Outage {
        what: "resets every poll",
        begin: |broker| failing(Fault::on(Rpc::ReceiveMessage).always().reset())(broker),
        end: EmbeddedBroker::clear_faults,
    },
    Outage {
        what: "refused connections",
        begin: |broker| {
            each_node(broker, |node| {
                broker.refuse_connections(node, true);
                broker.reset_connections(node);
            });
        },
        end: |broker| each_node(broker, |node| broker.refuse_connections(node, false)),
    },
    Outage {
        what: "a black hole",
        begin: |broker| each_node(broker, |node| broker.black_hole(node, true)),
        end: |broker| each_node(broker, |node| broker.black_hole(node, false)),
    },
];

#[test]
fn q6_q11_traffic_of_an_outage_is_bounded_and_work_goes_on_after_it() {
    for Outage { what, begin, end } in OUTAGES {
        virtually(async {
            let (broker, consumer, handled, connects) = two_nodes().await;
            begin(&broker);
            // What was under way ends by the outage.
            each_node(&broker, |node| {
                broker.close_telemetry(node, consumer.client_id(), Close::End);
            });
            let (before, dialled) = (broker.record().next_seq(), connects.load(Ordering::Acquire));
            tokio::time::sleep(secs(OUTAGE)).await;
            let record = broker.record();
            let count = |rpc| record.since(before).filter(|call| call.rpc == rpc).count() as u64;
            let receives = count(Rpc::ReceiveMessage);
            assert!(
                receives <= 2 * OUTAGE,
                "{what}: {receives} receives of two queues"
            );
            let dialled = (connects.load(Ordering::Acquire) - dialled) as u64;
            // An endpoint has two connections, which are lost together.
            let most = 2 * (OUTAGE + OUTAGE / 20);
            assert!(dialled <= most, "{what}: {dialled} connects to two nodes");
            let telemetry = count(Rpc::Telemetry);
            assert!(
                telemetry <= 2 * OUTAGE,
                "{what}: {telemetry} commands to two nodes"
            );
            assert!(count(Rpc::QueryRoute) <= 2 * OUTAGE / 30 + 40, "{what}");
            assert!(count(Rpc::QueryAssignment) <= OUTAGE / 5 + 10, "{what}");
            end(&broker);
            for node in 0..2 {
                let id = format!("m{node}");
                store(&broker, node, vec![message("t", &id, b"body")]).await;
            }
            within(secs(40), || handled.ids() == 2).await;
            consumer.shutdown(secs(5)).await;
        });
    }
}
