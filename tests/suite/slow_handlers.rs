//! Handlers that take too long, or block their thread, are named.

use std::sync::mpsc;

use actix::{Actor, Context, Handler};
use futures::{Stream, StreamExt};
use rocketmq_actors::{
    ChildRef, ChildSpec, Client, ClientConfig, Deliver, Delivery, Event, EventKind, Exit, Filter,
    Intervals, Liveness, Message, Outcome, Ping, Place, ProducerSpec, PushConsumer,
    PushConsumerSpec, Reason, Tls, Topology,
};
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use tracing::level_filters::LevelFilter;

use super::{harness::*, log::Log};

async fn first(
    events: &mut (impl Stream<Item = Event> + Unpin),
    is: impl Fn(&EventKind) -> bool,
) -> Event {
    loop {
        let event = events.next().await.unwrap();
        if is(&event.kind) {
            return event;
        }
    }
}

#[test]
fn a_handler_that_runs_for_too_long_is_named_once() {
    virtually(async {
        let log = Log::start(LevelFilter::WARN);
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .slow_handler_after(secs(10))
            .handler(|delivery: Delivery| async move {
                if delivery.message_id() == "m1" {
                    tokio::time::sleep(secs(100)).await;
                }
            })
            .build()
            .unwrap();
        let app = Topology::named("app").place(Place::Here);
        let app = app.child(ChildSpec::member("in", &client(&broker), spec));
        let app = app.start().await.unwrap();
        let slow = app.events().filter_map(|event| {
            let slow = match event.kind {
                EventKind::HandlerSlow {
                    message_id,
                    elapsed,
                    handler,
                    ..
                } => Some((event.path.to_string(), message_id, elapsed, handler)),
                _ => None,
            };
            std::future::ready(slow)
        });
        let slow = slow.take_until(tokio::time::sleep(secs(200)));
        store_numbered(&broker, "t", 3).await;
        let slow: Vec<_> = slow.collect().await;
        let [(path, message_id, elapsed, None)] = &slow[..] else {
            panic!("{slow:?}");
        };
        assert_eq!((&**path, &**message_id), ("app/in", "m1"));
        assert!(
            (millis(10_000)..=millis(11_300)).contains(elapsed),
            "{elapsed:?}"
        );
        let lines = log.lines("a handler is slow");
        assert!(lines.len() == 1 && lines[0].contains("app/in"), "{lines:?}");
        assert!(lines[0].contains("m1"), "{lines:?}");
        assert_eq!(broker.acks().len(), 3, "it went on all the same");
        app.stop(secs(5)).await;
    });
}

/// Takes its time for each delivery.
struct Slow;

impl Actor for Slow {
    type Context = Context<Self>;
}

impl Handler<Deliver> for Slow {
    type Result = actix::ResponseFuture<Outcome>;

    fn handle(&mut self, _: Deliver, _: &mut Self::Context) -> Self::Result {
        Box::pin(async {
            tokio::time::sleep(secs(70)).await;
            Outcome::Ack
        })
    }
}

#[test]
fn an_actor_that_takes_too_long_is_named_with_its_consumer() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let slow = ChildRef::new("slow");
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(slow.deliver())
            .build()
            .unwrap();
        let app = Topology::named("app")
            .place(Place::Here)
            .child(ChildSpec::actor(&slow, || Slow))
            .child(ChildSpec::member("in", &client(&broker), spec));
        let app = app.start().await.unwrap();
        let mut events = app.events();
        store_numbered(&broker, "t", 1).await;
        let event = first(&mut events, |kind| {
            matches!(kind, EventKind::HandlerSlow { .. })
        })
        .await;
        let EventKind::HandlerSlow { handler, .. } = event.kind else {
            unreachable!()
        };
        assert_eq!((&*event.path, handler.as_deref()), ("app/in", Some("slow")));
        broker.wait_for(|_| broker.acks().len() == 1).await;
        app.stop(secs(5)).await;
    });
}

async fn on_its_own_threads() -> (EmbeddedBroker, Client) {
    let broker = EmbeddedBroker::start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let mut intervals = Intervals::default();
    intervals.blocked_after = millis(250);
    let config = ClientConfig::builder(broker.endpoints()).tls(Tls::Off);
    let client = Client::new(config.intervals(intervals).build().unwrap());
    (broker, client)
}

async fn consumer(
    client: &Client,
    group: &str,
    blocked: Option<mpsc::Receiver<()>>,
) -> PushConsumer {
    let blocked = std::sync::Mutex::new(blocked);
    let spec = PushConsumerSpec::builder(group)
        .subscribe("t", Filter::any())
        .handler(move |_: Delivery| {
            let blocked = blocked.lock().unwrap().take();
            async move {
                if let Some(blocked) = blocked {
                    // Ends when the test has seen enough.
                    let _ = blocked.recv();
                }
            }
        })
        .build()
        .unwrap();
    client.start(spec).await.unwrap()
}

#[tokio::test]
async fn a_handler_that_blocks_its_thread_is_named_from_another_one() {
    let (_broker, client) = on_its_own_threads().await;
    let (free, blocked) = mpsc::channel();
    let guilty = consumer(&client, "g", Some(blocked)).await;
    let victim = consumer(&client, "h", None).await;
    let (mut events, mut health) = (guilty.events(), guilty.health());
    let mut others = victim.events();
    let producer = ProducerSpec::builder().topic("t").build().unwrap();
    let producer = client.start(producer).await.unwrap();
    let message = Message::builder("t").body("m").build().unwrap();
    let id = producer
        .send(message)
        .await
        .unwrap()
        .message_id()
        .to_owned();
    let is_blocked = |kind: &EventKind| matches!(kind, EventKind::ThreadBlocked { .. });
    let event = first(&mut events, is_blocked).await;
    assert_eq!(&*event.path, "consumer g");
    let EventKind::ThreadBlocked {
        topic,
        message_id,
        silent,
    } = event.kind
    else {
        unreachable!()
    };
    assert_eq!(
        (topic.as_deref(), message_id.as_deref()),
        (Some("t"), Some(&*id))
    );
    assert!(silent >= millis(250), "{silent:?}");
    let now = health
        .wait_for(|health| !health.ready)
        .await
        .unwrap()
        .clone();
    let reason = Reason::ThreadBlocked {
        message_id: Some(id),
    };
    assert!(now.live && now.reasons.contains(&reason), "{now:?}");
    let event = first(&mut others, is_blocked).await;
    let EventKind::ThreadBlocked {
        message_id: None, ..
    } = event.kind
    else {
        panic!("{event:?}");
    };
    free.send(()).unwrap();
    health.wait_for(|health| health.ready).await.unwrap();
    assert!(health.borrow().reasons.is_empty());
    producer.shutdown(secs(5)).await;
    guilty.shutdown(secs(5)).await;
    victim.shutdown(secs(5)).await;
}

/// Blocks its thread until it is freed.
struct Blocking(Option<mpsc::Receiver<()>>);

impl Actor for Blocking {
    type Context = Context<Self>;
}

impl Handler<Ping> for Blocking {
    type Result = ();

    fn handle(&mut self, _: Ping, _: &mut Self::Context) {
        if let Some(blocked) = self.0.take() {
            let _ = blocked.recv();
        }
    }
}

#[tokio::test]
async fn an_actor_that_blocks_its_own_thread_is_named_while_it_does() {
    let (free, blocked) = mpsc::channel();
    let blocked = std::sync::Mutex::new(Some(blocked));
    let blocking = ChildRef::new("blocking");
    let liveness = Liveness {
        every: millis(20),
        within: millis(100),
    };
    let child = ChildSpec::actor(&blocking, move || Blocking(blocked.lock().unwrap().take()))
        .place(Place::Own)
        .liveness(&blocking, liveness);
    let app = Topology::named("app").child(child).start().await.unwrap();
    let (mut events, mut health) = (app.events(), app.health());
    let silent = |kind: &EventKind| matches!(kind, EventKind::Unresponsive { .. });
    let event = first(&mut events, silent).await;
    assert_eq!(&*event.path, "app/blocking");
    let now = health
        .wait_for(|health| !health.ready)
        .await
        .unwrap()
        .clone();
    let reason = Reason::Unresponsive {
        path: "app/blocking".into(),
    };
    assert_eq!(now.reasons, [reason]);
    free.send(()).unwrap();
    let next = first(&mut events, |kind| {
        matches!(kind, EventKind::Restarting { .. })
    })
    .await;
    let EventKind::Restarting { cause, .. } = next.kind else {
        unreachable!()
    };
    assert_eq!(cause, Exit::Unresponsive);
    health.wait_for(|health| health.ready).await.unwrap();
    assert!(app.stop(secs(5)).await.in_time);
}
