//! It works wherever it is started.

use std::{
    error::Error,
    fs::File,
    net::SocketAddr,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use actix::{Actor, Context, Handler};
use actix_web::{App, HttpResponse, HttpServer, web};
use futures::{StreamExt, executor::block_on};
use rocketmq_actors::{
    ChildRef, ChildSpec, Client, ClientConfig, Delivery, ErrorKind, EventKind, Filter, MemberRef,
    Message, Place, Producer, ProducerSpec, PushConsumer, PushConsumerSpec, Strategy, Tls,
    Topology,
};
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

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

/// The consumer that a request starts.
type Running = web::Data<tokio::sync::Mutex<Option<PushConsumer>>>;

async fn start_consumer(
    client: web::Data<Client>,
    told: web::Data<mpsc::Sender<String>>,
    running: Running,
) -> HttpResponse {
    match client.start(consumer_spec((**told).clone())).await {
        Ok(consumer) => {
            *running.lock().await = Some(consumer);
            HttpResponse::Created().finish()
        }
        Err(error) => HttpResponse::BadGateway().body(error.to_string()),
    }
}

/// One HTTP request, and the status of its answer.
async fn post(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("POST {path} HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_consumer_is_started_by_a_request_to_actix_web_and_outlives_its_worker() {
    let (_runtime, broker) = broker();
    let client = client(&broker);
    let (told, handled) = mpsc::channel::<String>();
    actix::System::new().block_on(async move {
        let running = Running::default();
        let producer = client.start(producer_spec()).await.unwrap();
        let (client, shared) = (web::Data::new(client), running.clone());
        let told = web::Data::new(told);
        let server = HttpServer::new(move || {
            App::new()
                .app_data(client.clone())
                .app_data(told.clone())
                .app_data(shared.clone())
                .route("/consumer", web::post().to(start_consumer))
        });
        let server = server.workers(2).bind(("127.0.0.1", 0)).unwrap();
        let address = server.addrs()[0];
        let server = server.run();
        let handle = server.handle();
        let serving = actix::spawn(server);
        assert_eq!(post(address, "/consumer").await, "HTTP/1.0 201 Created");
        producer.send(order()).await.unwrap();
        handled.recv_timeout(LONG).unwrap();
        // The worker that started it is gone; the consumer is not.
        handle.stop(true).await;
        serving.await.unwrap().unwrap();
        producer.send(order()).await.unwrap();
        handled.recv_timeout(LONG).unwrap();
        let consumer = running.lock().await.take().unwrap();
        assert!(consumer.shutdown(LONG).await.in_time);
        producer.shutdown(LONG).await;
    });
}

/// Counts how often it was made.
struct Part(Arc<AtomicUsize>);

impl Actor for Part {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

#[derive(actix::Message)]
#[rtype(result = "()")]
struct Break;

impl Handler<Break> for Part {
    type Result = ();

    fn handle(&mut self, _: Break, _: &mut Self::Context) {
        std::panic::resume_unwind(Box::new("broken"));
    }
}

#[tokio::test]
async fn strategies_reach_over_arbiters() {
    for (strategy, expected) in [
        (Strategy::OneForOne, [1, 2, 1]),
        (Strategy::RestForOne, [1, 2, 2]),
        (Strategy::OneForAll, [2, 2, 2]),
    ] {
        let parts = ["a", "b", "c"].map(|name| (ChildRef::new(name), Arc::default()));
        let mut app = Topology::named("app").strategy(strategy);
        for (part, made) in &parts {
            let made: Arc<AtomicUsize> = Arc::clone(made);
            let child = ChildSpec::actor(part, move || Part(made.clone()));
            app = app.child(child.place(Place::Own));
        }
        let app = app.start().await.unwrap();
        let mut events = app.events();
        parts[1].0.ready().await.do_send(Break);
        let mut left: usize = expected.iter().sum::<usize>() - 3;
        while left > 0 {
            let event = tokio::time::timeout(LONG, events.next())
                .await
                .unwrap()
                .unwrap();
            left -= usize::from(matches!(event.kind, EventKind::Started { generation: 2.. }));
        }
        let made = parts
            .each_ref()
            .map(|(_, made)| made.load(Ordering::Acquire));
        assert_eq!(made, expected, "{strategy:?}");
        app.stop(LONG).await;
    }
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
