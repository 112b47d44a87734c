//! It works wherever it is started.

use std::{
    error::Error,
    fs::File,
    process::Command,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use futures::executor::block_on;
use rocketmq_actors::{
    ChildSpec, Client, ClientConfig, Delivery, ErrorKind, Filter, MemberRef, Message, Producer,
    ProducerSpec, PushConsumerSpec, Tls, Topology,
};
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};

const LONG: Duration = Duration::from_secs(30);

/// A broker on real sockets with a topic `t`, and the runtime it lives on.
fn broker() -> (tokio::runtime::Runtime, EmbeddedBroker) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let broker = runtime.block_on(EmbeddedBroker::start()).unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    (runtime, broker)
}

fn client(broker: &EmbeddedBroker) -> Client {
    let config = ClientConfig::builder(broker.endpoints()).tls(Tls::Off);
    Client::new(config.build().unwrap())
}

fn order() -> Message {
    Message::builder("t").body("order").build().unwrap()
}

/// What a consumer handles is told here.
fn consumer_spec(told: mpsc::Sender<String>) -> PushConsumerSpec {
    PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(move |delivery: Delivery| {
            let told = told.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                told.send(delivery.message_id().to_owned()).unwrap();
            }
        })
        .build()
        .unwrap()
}

fn producer_spec() -> ProducerSpec {
    ProducerSpec::builder().topic("t").build().unwrap()
}

/// Starts, sends, handles and shuts down, all in one future that anything can run.
async fn work(client: Client) {
    let (told, handled) = mpsc::channel();
    let consumer = client.start(consumer_spec(told)).await.unwrap();
    let producer = client.start(producer_spec()).await.unwrap();
    let receipt = producer.send(order()).await.unwrap();
    let others = producer.send_all([order(), order()]).await;
    assert!(others.iter().all(Result::is_ok));
    let ids: Vec<_> = (0..3)
        .map(|_| handled.recv_timeout(LONG).unwrap())
        .collect();
    assert!(ids.contains(&receipt.message_id().to_owned()));
    let mut health = consumer.health();
    health.wait_for(|health| health.ready).await.unwrap();
    assert!(consumer.shutdown(LONG).await.in_time);
    producer.shutdown(LONG).await;
}

async fn topology(client: Client) {
    let (told, handled) = mpsc::channel();
    let out = MemberRef::<Producer>::new("out");
    let app = Topology::named("app")
        .child(ChildSpec::member(&out, &client, producer_spec()))
        .child(ChildSpec::member("in", &client, consumer_spec(told)));
    let app = app.start().await.unwrap();
    out.ready().await.send(order()).await.unwrap();
    handled.recv_timeout(LONG).unwrap();
    assert!(app.stop(LONG).await.in_time);
}

#[test]
fn n96_from_a_bare_thread_without_any_runtime() {
    let (_runtime, broker) = broker();
    let client = client(&broker);
    thread::spawn(move || block_on(work(client)))
        .join()
        .unwrap();
}

#[test]
fn n96_a_topology_from_a_bare_thread_without_any_runtime() {
    let (_runtime, broker) = broker();
    let client = client(&broker);
    thread::spawn(move || block_on(topology(client)))
        .join()
        .unwrap();
}

#[test]
fn n96_from_a_plain_tokio_runtime() {
    let (_runtime, broker) = broker();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(work(client(&broker)));
    runtime.block_on(topology(client(&broker)));
}

#[test]
fn from_within_actix_and_from_a_system_within_a_system() {
    let (_runtime, broker) = broker();
    let (outer, inner) = (client(&broker), client(&broker));
    actix::System::new().block_on(async move {
        work(outer).await;
        let nested = thread::spawn(move || actix::System::new().block_on(work(inner)));
        nested.join().unwrap();
    });
}

/// Set for the process whose files run out.
const EXHAUST: &str = "EXHAUST_FILES";

#[test]
fn n97_files_that_run_out_are_an_error_and_a_later_start_works() {
    if std::env::var_os(EXHAUST).is_some() {
        return exhausted();
    }
    // Limits are those of a process, so it is another one that has them.
    let name = "embedding::n97_files_that_run_out_are_an_error_and_a_later_start_works";
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 128; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(EXHAUST, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    let ran = String::from_utf8_lossy(&output.stdout);
    assert!(ran.contains("1 passed"), "{ran}");
}

fn exhausted() {
    let (_runtime, broker) = broker();
    let client = client(&broker);
    for free in 0..3 {
        let mut files: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        files.truncate(files.len() - free);
        let error = block_on(client.start(producer_spec())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Server, "{error}");
        assert!(error.source().is_some(), "{error}");
    }
    block_on(async {
        let producer = client.start(producer_spec()).await.unwrap();
        producer.send(order()).await.unwrap();
        producer.shutdown(LONG).await;
    });
}

#[test]
fn two_clients_of_one_process_live_and_end_each_for_itself() {
    let (_runtime, broker) = broker();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (told, _) = mpsc::channel();
        let first = client(&broker).start(producer_spec()).await.unwrap();
        let second = client(&broker).start(producer_spec()).await.unwrap();
        assert_ne!(first.client_id(), second.client_id());
        let gone = client(&broker).start(consumer_spec(told)).await.unwrap();
        drop(gone);
        first.shutdown(LONG).await;
        let began = Instant::now();
        second.send(order()).await.unwrap();
        assert!(began.elapsed() < LONG);
        second.shutdown(LONG).await;
    });
}
