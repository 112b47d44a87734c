//! What went wrong for others who ran actors in production, each item with its number in the
//! collection of field reports.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use actix::{Actor, AsyncContext, Context, Handler, SyncContext, fut::wrap_future};
use futures::StreamExt;
use rocketmq_actors::{
    Backoff as RestartBackoff, ChildRef, ChildSpec, Client, ClientConfig, Deliver, Delivery,
    DeliveryHandler, EventKind, Exit, Filter, Message, Outcome, Place, ProducerSpec, PushConsumer,
    PushConsumerSpec, Restart, Text, Tls, Topology,
};
use rocketmq_embedded::{Backoff, EmbeddedBroker, GroupConfig, Rpc, TopicConfig};

use super::harness::*;

/// Blocks its thread, and dies by the first sight of poison.
struct Blocking(Tally);

impl Actor for Blocking {
    type Context = SyncContext<Self>;
}

impl Handler<Deliver<String>> for Blocking {
    type Result = Outcome;

    fn handle(&mut self, order: Deliver<String>, _: &mut Self::Context) -> Outcome {
        let times = self.0.add(&order.payload);
        std::thread::sleep(millis(1));
        let poison = ["m3", "m4", "m5"].contains(&order.payload.as_str());
        assert!(!poison || times > 1, "poison");
        Outcome::Ack
    }
}

#[tokio::test]
async fn n85_a_sync_pool_whose_threads_die_is_made_whole_and_fails_no_other_delivery() {
    let broker = EmbeddedBroker::start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let soon = Backoff::Custom(vec![millis(50)]);
    broker.create_group("g", GroupConfig::default().backoff(soon));
    let config = ClientConfig::builder(broker.endpoints()).tls(Tls::Off);
    let client = Client::new(config.build().unwrap());
    let producer = client
        .start(ProducerSpec::builder().topic("t").build().unwrap())
        .await
        .unwrap();
    let seen = Tally::default();
    let counts = seen.clone();
    let pool = DeliveryHandler::sync_pool(2, Text, move || Blocking(counts.clone()));
    let spec = PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(pool)
        .build()
        .unwrap();
    let consumer = client.start(spec).await.unwrap();
    let lost = consumer
        .events()
        .filter(|event| std::future::ready(event.kind == EventKind::HandlerThreadLost));
    let message = |n| Message::builder("t").body(format!("m{n}")).build().unwrap();
    let sent = producer.send_all((0..60).map(message)).await;
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    broker.wait_for(|_| broker.acks().len() == 60).await;
    assert_eq!((seen.ids(), seen.total()), (60, 63));
    assert_eq!(
        lost.take(3).count().await,
        3,
        "more threads died than there were"
    );
    assert_eq!(consumer.stats().failed, 3, "{:?}", consumer.stats());
    consumer.shutdown(secs(5)).await;
}

#[test]
fn n82_a_shutdown_by_a_handler_does_not_wait_for_that_handler() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        store_numbered(&broker, "t", 8).await;
        let own = Arc::new(OnceLock::<PushConsumer>::new());
        let (handle, reports) = (own.clone(), Tally::default());
        let reported = reports.clone();
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .concurrency(4)
            .handler(move |delivery: Delivery| {
                let (handle, reported) = (handle.clone(), reported.clone());
                async move {
                    tokio::time::sleep(secs(2)).await;
                    if ["m1", "m2"].contains(&delivery.message_id()) {
                        let report = handle.get().unwrap().shutdown(secs(60)).await;
                        assert!(report.in_time && report.settled >= 2, "{report:?}");
                        reported.add(delivery.message_id());
                    }
                }
            })
            .build()
            .unwrap();
        let consumer = client(&broker).start(spec).await.unwrap();
        own.set(consumer.clone()).unwrap();
        broker
            .wait_for(|record| record.count(Rpc::NotifyClientTermination) == 1)
            .await;
        let begun = tokio::time::Instant::now();
        let report = consumer.shutdown(secs(60)).await;
        assert!(report.in_time && begun.elapsed() < secs(2), "{report:?}");
        assert_eq!(report.abandoned, 0, "{report:?}");
        assert_eq!(reports.ids(), 2, "both finished after their shutdown");
        let acked = broker.acks().len();
        assert!(acked >= 4, "what the callers handled is settled: {acked}");
        let stats = consumer.stats();
        assert_eq!((stats.tasks, stats.actors), (0, 0), "{stats:?}");
    });
}

/// Does what it is told, and counts since its last start.
struct Obedient {
    panics_when_started: Arc<AtomicBool>,
    handled: usize,
}

#[derive(Debug, Clone, Copy, actix::Message)]
#[rtype(result = "usize")]
enum Do {
    Count,
    Panic,
    PanicInTimer,
    PanicInFuture,
    PanicInStarted,
}

impl Actor for Obedient {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        assert!(
            !self.panics_when_started.swap(false, Ordering::Relaxed),
            "in started"
        );
    }
}

impl Handler<Do> for Obedient {
    type Result = usize;

    fn handle(&mut self, order: Do, ctx: &mut Self::Context) -> usize {
        match order {
            Do::Count => {}
            Do::Panic => panic!("in a handler"),
            Do::PanicInTimer => {
                ctx.run_later(millis(1), |_, _| panic!("in a timer"));
            }
            Do::PanicInFuture => {
                ctx.spawn(wrap_future(async { panic!("in a future") }));
            }
            Do::PanicInStarted => {
                self.panics_when_started.store(true, Ordering::Relaxed);
                panic!("in a handler, and in started next");
            }
        }
        self.handled += 1;
        self.handled
    }
}

fn obedient(reference: &ChildRef<Obedient>) -> ChildSpec {
    let panics_when_started = Arc::new(AtomicBool::new(false));
    ChildSpec::actor(reference, move || Obedient {
        panics_when_started: panics_when_started.clone(),
        handled: 0,
    })
}

fn app() -> Topology {
    Topology::named("app").place(Place::Here)
}

#[test]
fn n84_a_panic_anywhere_in_an_actor_is_a_restart_behind_the_same_address() {
    virtually(async {
        let orders = [
            (Do::Panic, 1),
            (Do::PanicInTimer, 1),
            (Do::PanicInFuture, 1),
            (Do::PanicInStarted, 2),
        ];
        for (order, restarts) in orders {
            let worker = ChildRef::new("worker");
            let app = app().child(obedient(&worker)).start().await.unwrap();
            let addr = worker.addr().unwrap();
            assert_eq!(addr.send(Do::Count).await.unwrap(), 1);
            addr.do_send(order);
            tokio::time::sleep(secs(5)).await;
            let counted = addr.send(Do::Count).await.unwrap();
            assert_eq!(counted, 1, "{order:?}: fresh state behind the address");
            assert_eq!(app.tree().children[0].restarts, restarts, "{order:?}");
            assert!(app.stop(secs(1)).await.in_time);
        }
    });
}

#[test]
fn n90_requests_wait_out_a_restart_in_their_order() {
    virtually(async {
        let worker = ChildRef::new("worker");
        let backoff = RestartBackoff::new(secs(1), secs(1)).jitter(0.0);
        let child = obedient(&worker).backoff(backoff);
        let app = app().child(child).start().await.unwrap();
        let addr = worker.addr().unwrap();
        let begun = tokio::time::Instant::now();
        addr.do_send(Do::Panic);
        let asked = (0..100).map(|_| addr.send(Do::Count));
        let answers = futures::future::join_all(asked).await;
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers, (1..=100).collect::<Vec<_>>());
        assert!(begun.elapsed() >= secs(1), "{:?}", begun.elapsed());
        app.stop(secs(1)).await;
    });
}

#[test]
fn n89_stop_is_stop_for_every_kind_of_restart() {
    virtually(async {
        for kind in [Restart::Permanent, Restart::Transient, Restart::Temporary] {
            let worker = ChildRef::new("worker");
            let child = obedient(&worker).restart(kind);
            let app = app().start().await.unwrap();
            app.add(child).await.unwrap();
            assert_eq!(app.remove("worker").await.unwrap(), Exit::Shutdown);
            tokio::time::sleep(secs(60)).await;
            assert!(!worker.addr().unwrap().connected(), "{kind:?}");
            app.stop(secs(1)).await;
        }
    });
}

/// Takes its time, so that an endless backlog waits before it.
struct Slow;

impl Actor for Slow {
    type Context = Context<Self>;
}

impl Handler<Deliver> for Slow {
    type Result = actix::ResponseFuture<Outcome>;

    fn handle(&mut self, _: Deliver, _: &mut Self::Context) -> Self::Result {
        Box::pin(async {
            tokio::time::sleep(secs(1)).await;
            Outcome::Ack
        })
    }
}

#[test]
fn n87_a_slow_actor_before_an_endless_backlog_holds_no_more_than_the_limits_say() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(2));
        store_numbered(&broker, "t", 500).await;
        let slow = Slow.start();
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .concurrency(3)
            .max_cached_messages(10)
            .handler(slow.recipient::<Deliver>())
            .build()
            .unwrap();
        let consumer = client(&broker).start(spec).await.unwrap();
        for _ in 0..100 {
            tokio::time::sleep(millis(500)).await;
            let stats = consumer.stats();
            assert!(stats.cached_messages <= 10 + 8, "{stats:?}");
        }
        let acked = broker.acks().len();
        assert!((100..=153).contains(&acked), "three a second: {acked}");
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn n95_the_end_of_the_system_under_a_busy_consumer_is_no_panic_and_loses_nothing() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let broker = runtime.block_on(EmbeddedBroker::start()).unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let config = ClientConfig::builder(broker.endpoints()).tls(Tls::Off);
    let config = config.build().unwrap();
    let consume = |stuck: bool, seen: &Tally| {
        let seen = seen.clone();
        PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(move |delivery: Delivery| {
                let seen = seen.clone();
                async move {
                    seen.add(&String::from_utf8_lossy(delivery.body()));
                    if stuck {
                        std::future::pending::<()>().await;
                    }
                }
            })
            .build()
            .unwrap()
    };
    let first = Tally::default();
    let (config_then, seen) = (config.clone(), first.clone());
    let busy = consume(true, &seen);
    let busy = std::thread::spawn(move || {
        actix::System::new().block_on(async move {
            let client = Client::new(config_then);
            let spec = ProducerSpec::builder().topic("t").build().unwrap();
            let producer = client.start(spec).await.unwrap();
            let _consumer = client.start(busy).await.unwrap();
            let message = |n| Message::builder("t").body(format!("m{n}")).build().unwrap();
            producer.send_all((0..10).map(message)).await;
            while seen.ids() < 10 {
                tokio::time::sleep(millis(10)).await;
            }
            actix::System::current().stop();
        });
    });
    busy.join().unwrap();
    let again = Tally::default();
    runtime.block_on(async {
        let client = Client::new(config);
        let consumer = client.start(consume(false, &again)).await.unwrap();
        broker.wait_for(|_| broker.acks().len() == 10).await;
        assert_eq!((first.ids(), again.ids()), (10, 10));
        consumer.shutdown(secs(5)).await;
    });
}
