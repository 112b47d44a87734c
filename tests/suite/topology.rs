//! Consumers and producers in the application's own tree, with its actors as handlers.

use std::{collections::HashSet, time::Duration};

use actix::{Actor, AsyncContext, Context, Handler, ResponseFuture};
use futures::StreamExt;
use rocketmq_actors::{
    ChildRef, ChildSpec, ChildState, Client, ClientConfig, Deliver, Delivery, ErrorKind, EventKind,
    Exit, Filter, MemberRef, MemberReport, Message, Outcome, Place, Producer, ProducerSpec,
    PushConsumer, PushConsumerSpec, Strategy, Text, Tls, Topology, TopologyHandle,
};
use rocketmq_embedded::{EmbeddedBroker, Rpc, TopicConfig};

use super::harness::*;

/// Counts the orders it is given, and panics at some.
struct Ledger {
    seen: Tally,
    /// Panics when it sees this one for the first time.
    poison: &'static str,
}

impl Ledger {
    fn child(reference: &ChildRef<Self>, seen: &Tally, poison: &'static str) -> ChildSpec {
        let seen = seen.clone();
        ChildSpec::actor(reference, move || Self {
            seen: seen.clone(),
            poison,
        })
    }
}

impl Actor for Ledger {
    type Context = Context<Self>;
}

impl Handler<Deliver<String>> for Ledger {
    type Result = Outcome;

    fn handle(&mut self, order: Deliver<String>, _: &mut Self::Context) -> Outcome {
        let times = self.seen.add(&order.payload);
        assert!(order.payload != self.poison || times > 1, "poison");
        Outcome::Ack
    }
}

fn orders(ledger: &ChildRef<Ledger>) -> PushConsumerSpec {
    PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .concurrency(4)
        .max_cached_messages(16)
        .handler(ledger.deliver_as(Text))
        .build()
        .unwrap()
}

fn app() -> Topology {
    Topology::named("app").place(Place::Here)
}

async fn with_topic() -> Checked {
    let broker = broker(|builder| builder).await;
    broker.create_topic("t", TopicConfig::normal(2));
    broker
}

#[test]
fn an_actor_and_its_consumer_live_in_one_tree() {
    virtually(async {
        let broker = with_topic().await;
        store_numbered(&broker, "t", 100).await;
        let (ledger, seen) = (ChildRef::new("ledger"), Tally::default());
        let orders = ChildSpec::member("billing", &client(&broker), orders(&ledger));
        let app = app()
            .strategy(Strategy::RestForOne)
            .child(Ledger::child(&ledger, &seen, ""))
            .child(orders);
        let app = app.start().await.unwrap();
        broker.wait_for(|_| broker.acks().len() == 100).await;
        assert_eq!((seen.ids(), seen.total()), (100, 100));
        let children: Vec<_> = app
            .tree()
            .children
            .into_iter()
            .map(|child| (child.path.to_string(), child.state))
            .collect();
        let up = |path: &str| (path.to_owned(), ChildState::Running);
        assert_eq!(children, [up("app/ledger"), up("app/billing")]);

        let report = app.stop(secs(60)).await;
        assert!(report.in_time, "{report:?}");
        let MemberReport::Consumer(consumer) = &report.members["app/billing"] else {
            panic!("{report:?}");
        };
        assert!(consumer.in_time && consumer.abandoned == 0, "{consumer:?}");
        assert_eq!(broker.record().count(Rpc::NotifyClientTermination), 1);
        assert_eq!(broker.live(0).telemetry_streams, 0);
    });
}

#[test]
fn deliveries_wait_for_an_actor_that_is_not_there_yet_within_the_limits() {
    virtually(async {
        let broker = with_topic().await;
        store_numbered(&broker, "t", 100).await;
        let (ledger, seen) = (ChildRef::new("ledger"), Tally::default());
        let late = Ledger::child(&ledger, &seen, "");
        let orders = ChildSpec::member("billing", &client(&broker), orders(&ledger));
        let app = app().child(orders).start().await.unwrap();
        tokio::time::sleep(secs(20)).await;
        let waiting = broker.deliveries().len();
        assert!((1..=16 + 8).contains(&waiting), "{waiting}");
        app.add(late).await.unwrap();
        broker.wait_for(|_| broker.acks().len() == 100).await;
        assert_eq!((seen.ids(), seen.total()), (100, 100));
        app.stop(secs(60)).await;
    });
}

#[test]
fn a_crash_of_the_actor_is_a_failed_delivery_and_loses_nothing() {
    virtually(async {
        let broker = with_topic().await;
        store_numbered(&broker, "t", 100).await;
        let (ledger, seen) = (ChildRef::new("ledger"), Tally::default());
        let app = app()
            .child(Ledger::child(&ledger, &seen, "m42"))
            .child(ChildSpec::member(
                "billing",
                &client(&broker),
                orders(&ledger),
            ));
        let app = app.start().await.unwrap();
        let addr = ledger.addr().unwrap();
        broker.wait_for(|_| broker.acks().len() == 100).await;
        assert_eq!((seen.ids(), seen.of("m42")), (100, 2));
        assert_eq!(seen.total(), 101, "no other was handled twice");
        assert_eq!(ledger.addr().unwrap(), addr);
        let restarts: Vec<_> = app
            .tree()
            .children
            .iter()
            .map(|child| child.restarts)
            .collect();
        assert_eq!(restarts, [1, 0]);
        app.stop(secs(60)).await;
    });
}

#[test]
fn a_consumer_that_is_restarted_with_its_actor_does_not_wait_for_it() {
    virtually(async {
        let broker = with_topic().await;
        store_numbered(&broker, "t", 100).await;
        let (ledger, seen) = (ChildRef::new("ledger"), Tally::default());
        let app = app()
            .strategy(Strategy::RestForOne)
            .child(Ledger::child(&ledger, &seen, "m42"))
            .child(ChildSpec::member(
                "billing",
                &client(&broker),
                orders(&ledger),
            ));
        let app = app.start().await.unwrap();
        let begun = tokio::time::Instant::now();
        let restarts = |app: &TopologyHandle| -> Vec<_> {
            let tree = app.tree();
            tree.children.iter().map(|child| child.restarts).collect()
        };
        while restarts(&app) != [1, 1] {
            tokio::time::sleep(millis(50)).await;
        }
        assert!(begun.elapsed() < secs(4), "{:?}", begun.elapsed());
        broker.wait_for(|_| broker.acks().len() == 100).await;
        assert_eq!(seen.ids(), 100);
        assert!(app.stop(secs(60)).await.in_time);
    });
}

#[test]
fn a_member_that_cannot_start_is_named_and_those_before_it_are_stopped() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        let ledger = ChildRef::new("ledger");
        let inner = Topology::named("inner").child(ChildSpec::member(
            "billing",
            &client(&broker),
            orders(&ledger),
        ));
        let app = app()
            .child(Ledger::child(&ledger, &Tally::default(), ""))
            .child(ChildSpec::topology(inner));
        let error = app.start().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        let text = error.to_string();
        assert!(
            text.contains("app: inner did not start: failed: billing did not start"),
            "{text}"
        );
        assert!(!ledger.addr().unwrap().connected());
        let left = broker.live(0);
        assert_eq!(left.telemetry_streams, 0);
    });
}

#[test]
fn a_tree_that_cannot_work_is_refused_before_anything_starts() {
    virtually(async {
        let broker = with_topic().await;
        let ledger = ChildRef::<Ledger>::new("ledger");
        let orders = ChildSpec::member("billing", &client(&broker), orders(&ledger));
        let refusal = |topology: Topology| async move {
            let error = topology.start().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            error.to_string()
        };
        let text = refusal(app().child(orders.clone())).await;
        assert!(
            text.contains("app/billing: its handler is the child ledger, which is in no topology"),
            "{text}"
        );
        let inner = Topology::named("in/ner");
        let text = refusal(app().child(ChildSpec::topology(inner))).await;
        assert!(text.contains("in/ner"), "{text}");
        let placed = Ledger::child(&ledger, &Tally::default(), "");
        let text = refusal(app().child(placed.clone()).child(placed)).await;
        assert!(text.contains("two children are named ledger"), "{text}");
        assert_eq!(broker.record().calls().count(), 0);
        let spec = PushConsumerSpec::builder("").subscribe("t", Filter::any());
        let error = spec.handler(|_: Delivery| async {}).build().unwrap_err();
        assert!(error.to_string().contains("group"), "{error}");
    });
}

#[test]
fn a_member_that_gave_up_is_started_anew() {
    virtually(async {
        let broker = with_topic().await;
        let (ledger, seen) = (ChildRef::new("ledger"), Tally::default());
        let billing = MemberRef::<PushConsumer>::new("billing");
        let app = app()
            .child(Ledger::child(&ledger, &seen, ""))
            .child(ChildSpec::member(
                &billing,
                &client(&broker),
                orders(&ledger),
            ));
        let app = app.start().await.unwrap();
        let first = billing.ready().await;
        let mut events = app.events().filter(|event| {
            let restarts = matches!(event.kind, EventKind::Restarting { .. });
            std::future::ready(restarts && &*event.path == "app/billing")
        });
        let crashing = async {
            loop {
                first.crash("consumer");
                tokio::time::sleep(secs(1)).await;
            }
        };
        let event = tokio::select! {
            event = events.next() => event.unwrap(),
            () = crashing => unreachable!(),
        };
        assert_eq!(&*event.path, "app/billing");
        let EventKind::Restarting {
            cause: Exit::Failed(cause),
            attempt: 1,
            ..
        } = &event.kind
        else {
            panic!("{event:?}");
        };
        assert!(cause.contains("gave up"), "{cause}");
        assert!(billing.get().is_none(), "it is down");
        let second = billing.ready().await;
        assert_ne!(first.client_id(), second.client_id());
        store_numbered(&broker, "t", 10).await;
        broker.wait_for(|_| broker.acks().len() == 10).await;
        let stats = first.stats();
        assert_eq!((stats.actors, stats.tasks), (0, 0), "{stats:?}");
        app.stop(secs(60)).await;
    });
}

#[test]
fn running_handlers_finish_within_the_time_that_a_stop_gives() {
    virtually(async {
        let broker = with_topic().await;
        store_numbered(&broker, "t", 4).await;
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(|_: Delivery| tokio::time::sleep(secs(10)))
            .build()
            .unwrap();
        let billing = MemberRef::new("billing");
        let child = ChildSpec::member(&billing, &client(&broker), spec);
        let app = app().child(child).start().await.unwrap();
        broker.wait_for(|_| broker.deliveries().len() == 4).await;
        assert!(billing.get().is_some());
        let meanwhile = async {
            tokio::time::sleep(secs(2)).await;
            assert!(billing.get().is_none(), "nobody finds what is going down");
        };
        let (report, ()) = tokio::join!(app.stop(secs(60)), meanwhile);
        assert!(report.in_time);
        assert_eq!(broker.acks().len(), 4, "{report:?}");
    });
}

/// Sends what it is given on to another topic, by the producer of its tree.
struct Forwarder {
    out: MemberRef<Producer>,
}

impl Actor for Forwarder {
    type Context = Context<Self>;
}

impl Handler<Deliver> for Forwarder {
    type Result = ResponseFuture<Outcome>;

    fn handle(&mut self, order: Deliver, ctx: &mut Self::Context) -> Self::Result {
        assert!(ctx.address().connected());
        let out = self.out.clone();
        Box::pin(async move {
            let message = Message::builder("out").body(order.payload).build();
            let sent = async { out.ready().await.send(message?).await };
            match sent.await {
                Ok(_) => Outcome::Ack,
                Err(_) => Outcome::Retry,
            }
        })
    }
}

fn pipeline(client: &Client) -> Topology {
    let out = MemberRef::<Producer>::new("out");
    let forwarder = ChildRef::<Forwarder>::new("forwarder");
    let producer = ProducerSpec::builder().topic("out").build().unwrap();
    let input = PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(forwarder.deliver())
        .build()
        .unwrap();
    let make = {
        let out = out.clone();
        move || Forwarder { out: out.clone() }
    };
    Topology::named("app")
        .strategy(Strategy::RestForOne)
        .child(ChildSpec::member(&out, client, producer))
        .child(ChildSpec::actor(&forwarder, make))
        .child(ChildSpec::member("in", client, input))
}

#[test]
fn a_consumer_an_actor_and_a_producer_make_a_pipeline() {
    virtually(async {
        let broker = with_topic().await;
        broker.create_topic("out", TopicConfig::normal(2));
        store_numbered(&broker, "t", 50).await;
        let app = pipeline(&client(&broker)).place(Place::Here);
        let app = app.start().await.unwrap();
        broker.wait_for(|_| broker.acks().len() == 50).await;
        let report = app.stop(secs(60)).await;
        let paths: HashSet<_> = report.members.keys().map(|path| &**path).collect();
        assert_eq!(paths, HashSet::from(["app/in", "app/out"]));
        assert_eq!(broker.messages("out").len(), 50);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_works_from_a_plain_tokio_main() {
    let broker = EmbeddedBroker::start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(2));
    broker.create_topic("out", TopicConfig::normal(2));
    let config = ClientConfig::builder(broker.endpoints()).tls(Tls::Off);
    let client = Client::new(config.build().unwrap());
    let app = tokio::spawn(pipeline(&client).start())
        .await
        .unwrap()
        .unwrap();
    let spec = ProducerSpec::builder().topic("t").build().unwrap();
    let producer = client.start(spec).await.unwrap();
    for n in 0..20 {
        let body = format!("m{n}");
        let message = Message::builder("t").body(body).build().unwrap();
        producer.send(message).await.unwrap();
    }
    broker.wait_for(|_| broker.acks().len() == 20).await;
    assert!(
        app.tree()
            .children
            .iter()
            .all(|child| child.state == ChildState::Running)
    );
    producer.shutdown(Duration::from_secs(5)).await;
    let stopped = tokio::spawn(async move { app.stop(Duration::from_secs(30)).await });
    assert!(stopped.await.unwrap().in_time);
    assert_eq!(broker.messages("out").len(), 20);
}
