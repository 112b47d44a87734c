//! What a look at the tree shows, and what can be done to topologies within topologies.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use actix::{
    Actor, ActorFutureExt, Context, Handler, ResponseActFuture, ResponseFuture, WrapFuture,
};
use rocketmq_actors::{
    ChildRef, ChildSpec, ChildState, Deliver, Delivery, Details, ErrorKind, Exit, Filter,
    MemberRef, Message, Outcome, Place, Producer, ProducerSpec, PushConsumerSpec, StopReport,
    Topology, TopologyHandle, TreeNode,
};
use rocketmq_embedded::TopicConfig;

use super::harness::*;

async fn with_topic() -> Checked {
    let broker = broker(|builder| builder).await;
    broker.create_topic("t", TopicConfig::normal(2));
    broker
}

fn app() -> Topology {
    Topology::named("app").place(Place::Here)
}

/// Never comes to an end of what it handles.
struct Stuck;

impl Actor for Stuck {
    type Context = Context<Self>;
}

impl Handler<Deliver> for Stuck {
    type Result = ResponseFuture<Outcome>;

    fn handle(&mut self, _: Deliver, _: &mut Self::Context) -> Self::Result {
        Box::pin(std::future::pending())
    }
}

fn figures<T>(node: &TreeNode, of: impl Fn(&Details) -> Option<T>) -> T {
    of(&node.details).unwrap_or_else(|| panic!("{node:#?}"))
}

#[test]
fn the_tree_shows_the_actors_of_a_consumer_and_what_waits_where() {
    virtually(async {
        let broker = with_topic().await;
        store_numbered(&broker, "t", 20).await;
        let stuck = ChildRef::new("stuck");
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .concurrency(3)
            .handler(stuck.deliver())
            .build()
            .unwrap();
        let app = app()
            .child(ChildSpec::actor(&stuck, || Stuck))
            .child(ChildSpec::member("in", &client(&broker), spec));
        let app = app.start().await.unwrap();
        broker.wait_for(|_| broker.deliveries().len() == 20).await;
        tokio::time::sleep(secs(1)).await;
        let tree = app.tree();
        let stuck = figures(tree.find("app/stuck").unwrap(), |details| match details {
            Details::Actor(actor) => Some(actor.deliveries),
            _ => None,
        });
        assert_eq!(stuck, 3, "those that have a permit");

        let consumer = tree.find("app/in").unwrap();
        let held = figures(consumer, |details| match details {
            Details::Consumer(consumer) => Some(consumer.clone()),
            _ => None,
        });
        assert_eq!((held.handlers, held.concurrency), (3, 3));
        assert_eq!((held.cached_messages, held.max_cached_messages), (20, 4096));
        assert_eq!((held.unsettled, &*held.group), (20, "g"));
        assert!(held.receives >= 1 && held.paused.is_empty(), "{held:?}");

        let (mut waiting, mut queues, mut sessions) = (0, 0, 0);
        let mut handed_out = BTreeSet::new();
        for node in &consumer.children {
            assert_eq!(node.state, ChildState::Running, "{tree}");
            match &node.details {
                Details::Queue(queue) => {
                    queues += 1;
                    waiting += queue.waiting;
                    assert!(queue.assigned && queue.receive_loops >= 1, "{queue:?}");
                    assert_eq!(&*queue.topic, "t");
                    assert!(queue.received >= queue.handed_out, "{queue:?}");
                    handed_out.insert(queue.handed_out);
                }
                Details::Session(session) => {
                    sessions += 1;
                    assert!(session.ready);
                }
                _ => {}
            }
        }
        assert_eq!((waiting, queues, sessions), (17, 1, 1), "{tree}");
        assert!(!handed_out.contains(&None), "{tree}");
        assert!(tree.find("app/in/routes").is_some(), "{tree}");
        let text = tree.to_string();
        for line in [
            "├─ stuck: running, deliveries 3",
            "handlers 3/3, cached 20/4096",
            "waiting 17",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        app.stop(secs(60)).await;
        assert_eq!(app.tree().to_string(), "app: stopped: shut down");
    });
}

#[test]
fn the_tree_shows_what_a_producer_has_in_flight_and_restarts_of_its_actors() {
    virtually(async {
        let broker = with_topic().await;
        let spec = ProducerSpec::builder().topic("t").max_in_flight(10).build();
        let out = MemberRef::<Producer>::new("out");
        let child = ChildSpec::member(&out, &client(&broker), spec.unwrap());
        let app = app().child(child).start().await.unwrap();
        let producer = out.ready().await;
        broker.black_hole(0, true);
        let sending = producer.clone();
        let sends = tokio::task::spawn_local(async move {
            let message = |n| Message::builder("t").body(format!("m{n}")).build().unwrap();
            sending.send_all((0..4).map(message)).await
        });
        tokio::time::sleep(millis(100)).await;
        let in_flight = |node: &TreeNode| {
            figures(node, |details| match details {
                Details::Producer(producer) => Some(producer.clone()),
                _ => None,
            })
        };
        let held = in_flight(app.tree().find("app/out").unwrap());
        assert_eq!(
            (held.in_flight_messages, held.max_in_flight_messages),
            (4, 10)
        );
        assert_eq!((held.in_flight_bytes, held.topics), (8, 1));
        assert_eq!(
            in_flight(&producer.tree()),
            held,
            "the same from its handle"
        );
        broker.black_hole(0, false);
        sends.await.unwrap();
        producer.crash("producer");
        tokio::time::sleep(secs(1)).await;
        let tree = app.tree();
        assert_eq!(tree.find("app/out/producer").unwrap().restarts, 1, "{tree}");
        drop(producer);
        app.stop(secs(5)).await;
    });
}

#[test]
fn a_consumer_without_a_topology_shows_its_tree_too() {
    virtually(async {
        let broker = with_topic().await;
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(|_: Delivery| async {})
            .build()
            .unwrap();
        let consumer = client(&broker).start(spec).await.unwrap();
        tokio::time::sleep(secs(1)).await;
        consumer.pause();
        let tree = consumer.tree();
        assert_eq!(
            (&*tree.path, &tree.state),
            ("consumer g", &ChildState::Running)
        );
        assert!(tree.to_string().contains(", paused t"), "{tree}");
        let broken = tree.find("consumer g/consumer").unwrap();
        assert_eq!(
            (broken.state.clone(), broken.restarts),
            (ChildState::Running, 0)
        );
        consumer.shutdown(secs(5)).await;
        assert_eq!(consumer.tree().state, ChildState::Stopped(Exit::Shutdown));
    });
}

#[test]
fn children_come_and_go_in_topologies_within_topologies() {
    virtually(async {
        let refs = ["a", "late"].map(ChildRef::<Stuck>::new);
        let child = |at: usize| ChildSpec::actor(&refs[at], || Stuck);
        let inner = Topology::named("inner").child(child(0));
        let outer = Topology::named("outer").child(ChildSpec::topology(inner));
        let app = app()
            .child(ChildSpec::topology(outer))
            .start()
            .await
            .unwrap();
        let late = child(1);
        app.add_to("outer/inner", late.clone()).await.unwrap();
        let state = |app: &TopologyHandle, path: &str| app.tree().find(path).map(|n| n.restarts);
        assert_eq!(state(&app, "app/outer/inner/late"), Some(0));
        let taken = app.add_to("outer/inner", late.clone()).await.unwrap_err();
        assert!(
            taken.to_string().contains("app/outer/inner/late"),
            "{taken}"
        );
        let unknown = app.add_to("outer/none", late.clone()).await.unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::NotFound, "{unknown}");
        assert!(app.restart("outer/inner/late"));
        assert!(!app.restart("outer/none/late"));
        while state(&app, "app/outer/inner/late") != Some(1) {
            tokio::time::sleep(millis(10)).await;
        }
        let there_from_the_start = app.remove("outer/inner/a").await.unwrap_err();
        assert_eq!(there_from_the_start.kind(), ErrorKind::InvalidArgument);
        assert_eq!(
            app.remove("outer/inner/late").await.unwrap(),
            Exit::Shutdown
        );
        assert_eq!(state(&app, "app/outer/inner/late"), None);
        let gone = app.remove("outer/inner/late").await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound, "{gone}");
        assert!(app.health().borrow().ready);
        assert!(app.stop(secs(5)).await.in_time);
    });
}

/// Where a handler leaves what it was told, and finds the topology that it stops.
#[derive(Clone, Default)]
struct Stopping {
    app: Arc<Mutex<Option<TopologyHandle>>>,
    told: Arc<Mutex<Option<StopReport>>>,
}

impl Stopping {
    async fn stop(self) {
        let app = loop {
            let app = self.app.lock().unwrap().clone();
            if let Some(app) = app {
                break app;
            }
            tokio::time::sleep(millis(10)).await;
        };
        let report = app.stop(secs(60)).await;
        *self.told.lock().unwrap() = Some(report);
    }
}

#[test]
fn a_handler_that_stops_its_own_topology_does_not_wait_for_itself() {
    virtually(async {
        let broker = with_topic().await;
        store_numbered(&broker, "t", 1).await;
        let stopping = Stopping::default();
        let stops = stopping.clone();
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(move |_: Delivery| stops.clone().stop())
            .build()
            .unwrap();
        let child = ChildSpec::member("in", &client(&broker), spec);
        let app = app().child(child).start().await.unwrap();
        *stopping.app.lock().unwrap() = Some(app.clone());
        broker.wait_for(|_| broker.acks().len() == 1).await;
        let begun = tokio::time::Instant::now();
        let report = app.stop(secs(60)).await;
        assert!(report.in_time && !report.under_way, "{report:?}");
        assert!(begun.elapsed() < secs(3), "{:?}", begun.elapsed());
        let told = stopping.told.lock().unwrap().clone().unwrap();
        assert!(told.under_way && !told.in_time, "{told:?}");
    });
}

/// Stops its own topology when it is delivered something.
struct Stopper(Stopping);

impl Actor for Stopper {
    type Context = Context<Self>;
}

impl Handler<Deliver> for Stopper {
    type Result = ResponseActFuture<Self, Outcome>;

    fn handle(&mut self, _: Deliver, _: &mut Self::Context) -> Self::Result {
        let stopped = self.0.clone().stop().into_actor(self);
        Box::pin(stopped.map(|(), _, _| Outcome::Ack))
    }
}

#[test]
fn an_actor_that_stops_its_own_topology_does_not_wait_for_itself() {
    virtually(async {
        let broker = with_topic().await;
        store_numbered(&broker, "t", 1).await;
        let (stopping, stopper) = (Stopping::default(), ChildRef::new("stopper"));
        let stops = stopping.clone();
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(stopper.deliver())
            .build()
            .unwrap();
        let app = app()
            .child(ChildSpec::actor(&stopper, move || Stopper(stops.clone())))
            .child(ChildSpec::member("in", &client(&broker), spec));
        let app = app.start().await.unwrap();
        *stopping.app.lock().unwrap() = Some(app.clone());
        broker.wait_for(|_| broker.acks().len() == 1).await;
        let begun = tokio::time::Instant::now();
        let report = app.stop(secs(60)).await;
        assert!(report.in_time, "{report:?}");
        assert!(begun.elapsed() < secs(3), "{:?}", begun.elapsed());
        assert!(stopping.told.lock().unwrap().clone().unwrap().under_way);
    });
}
