//! What members and trees report, to streams and to actors.

use std::sync::{Arc, Mutex};

use actix::{Actor, Context, Handler};
use futures::{Stream, StreamExt};
use rocketmq_actors::{
    ChildSpec, Delivery, Event, EventKind, Exit, Filter, MemberReport, Outcome, Place,
    PushConsumerSpec, Topology,
};
use rocketmq_embedded::TopicConfig;

use super::harness::*;

/// Dead-letters everything.
fn hopeless() -> PushConsumerSpec {
    PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(|_: Delivery| async { Outcome::dead_letter("no use") })
        .build()
        .unwrap()
}

async fn two_nodes() -> Checked {
    let broker = broker(|builder| builder.nodes(2)).await;
    broker.create_topic("t", TopicConfig::normal(2));
    broker
}

async fn first<T>(
    events: &mut (impl Stream<Item = Event> + Unpin),
    pick: impl Fn(EventKind) -> Option<T>,
) -> (String, T) {
    loop {
        let Event { path, kind } = events.next().await.unwrap();
        if let Some(picked) = pick(kind) {
            return (path.to_string(), picked);
        }
    }
}

/// A listener that keeps what it hears.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<Event>>>);

impl Actor for Listener {
    type Context = Context<Self>;
}

impl Handler<Event> for Listener {
    type Result = ();

    fn handle(&mut self, event: Event, _: &mut Self::Context) {
        self.0.lock().unwrap().push(event);
    }
}

#[test]
fn a_consumer_tells_its_life_from_the_first_assignment_to_the_drain() {
    virtually(async {
        let broker = two_nodes().await;
        store_numbered(&broker, "t", 1).await;
        let consumer = client(&broker).start(hopeless()).await.unwrap();
        let (mut events, heard) = (consumer.events(), Listener::default());
        consumer.events_to(heard.clone().start().recipient());
        let assigned = |kind| match kind {
            EventKind::AssignmentChanged { gained, lost, .. } => Some((gained, lost)),
            _ => None,
        };
        let (path, change) = first(&mut events, assigned).await;
        assert_eq!((&*path, change), ("consumer g", (2, 0)));
        let dead = |kind| match kind {
            EventKind::DeadLettered { message_id, .. } => Some(message_id),
            _ => None,
        };
        assert_eq!(first(&mut events, dead).await.1, "m0");
        broker.stop_node(1);
        let down = |kind| match kind {
            EventKind::SessionDown { endpoint, .. } => Some(endpoint.to_string()),
            _ => None,
        };
        assert_eq!(first(&mut events, down).await.1, broker.node_endpoints(1));
        let report = consumer.shutdown(secs(5)).await;
        let drained = |kind| match kind {
            EventKind::Drained { report } => Some(report),
            _ => None,
        };
        let told = first(&mut events, drained).await.1;
        assert_eq!(told, MemberReport::Consumer(report));
        tokio::time::sleep(secs(1)).await;
        let heard = heard.0.lock().unwrap();
        let last = heard.iter().rfind(|event| &*event.path == "consumer g");
        assert!(matches!(last.unwrap().kind, EventKind::Drained { .. }));
    });
}

#[test]
fn an_endpoint_that_does_not_answer_is_reported_as_quarantined() {
    virtually(async {
        let broker = two_nodes().await;
        broker.set_route("t", |queues| queues.truncate(2));
        let consumer = client(&broker).start(hopeless()).await.unwrap();
        let mut events = consumer.events();
        broker.black_hole(1, true);
        broker.clear_route("t");
        let gone = |kind| match kind {
            EventKind::Quarantined { endpoint } => Some(endpoint.to_string()),
            _ => None,
        };
        assert_eq!(first(&mut events, gone).await.1, broker.node_endpoints(1));
        consumer.shutdown(secs(1)).await;
    });
}

#[test]
fn a_tree_tells_the_events_of_its_members_under_their_path() {
    virtually(async {
        let broker = two_nodes().await;
        let heard = Listener::default();
        let app = Topology::named("app")
            .place(Place::Here)
            .events_to(heard.clone().start().recipient())
            .child(ChildSpec::member("in", &client(&broker), hopeless()));
        let app = app.start().await.unwrap();
        store_numbered(&broker, "t", 1).await;
        broker
            .wait_for(|_| broker.dead_letters("g").len() == 1)
            .await;
        app.stop(secs(5)).await;
        tokio::time::sleep(secs(1)).await;
        let heard = heard.0.lock().unwrap();
        let has = |path: &str, is: fn(&EventKind) -> bool| {
            let found = heard
                .iter()
                .any(|event| &*event.path == path && is(&event.kind));
            assert!(found, "{path}: {heard:#?}");
        };
        has("app", |kind| matches!(kind, EventKind::Started { .. }));
        has("app/in", |kind| matches!(kind, EventKind::Started { .. }));
        has("app/in/consumer", |kind| {
            matches!(kind, EventKind::Started { generation: 1 })
        });
        has("app/in", |kind| matches!(kind, EventKind::SessionUp { .. }));
        has(
            "app/in",
            |kind| matches!(kind, EventKind::RouteCommitted { topic, queues: 4 } if &**topic == "t"),
        );
        has("app/in", |kind| {
            matches!(kind, EventKind::AssignmentChanged { gained: 2, .. })
        });
        has("app/in", |kind| {
            matches!(kind, EventKind::DeadLettered { .. })
        });
        has("app/in", |kind| matches!(kind, EventKind::Drained { .. }));
        has("app/in/consumer", |kind| {
            matches!(kind, EventKind::Stopped { .. })
        });
        has("app", |kind| matches!(kind, EventKind::Stopped { .. }));
    });
}

#[test]
fn a_crash_tells_its_cause_and_the_attempt_and_the_last_one_that_it_gave_up() {
    virtually(async {
        let broker = two_nodes().await;
        let consumer = client(&broker).start(hopeless()).await.unwrap();
        let mut events = consumer.events();
        for expected in 1..=2 {
            consumer.crash("consumer");
            let restarting = |kind| match kind {
                EventKind::Restarting { cause, attempt, .. } => Some((cause, attempt)),
                _ => None,
            };
            let (path, told) = first(&mut events, restarting).await;
            assert_eq!(path, "consumer g/consumer");
            assert_eq!(
                told,
                (Exit::Panicked("injected panic".to_owned()), expected)
            );
            let started = |kind| match kind {
                EventKind::Started { generation } => Some(generation),
                _ => None,
            };
            let (path, generation) = first(&mut events, started).await;
            assert_eq!(path, "consumer g/consumer");
            assert_eq!(generation, u64::from(expected) + 1);
        }
        let crashing = async {
            loop {
                consumer.crash("consumer");
                tokio::time::sleep(secs(1)).await;
            }
        };
        let gave_up = |kind| match kind {
            EventKind::GaveUp { cause } => Some(cause),
            _ => None,
        };
        let (path, cause) = tokio::select! {
            told = first(&mut events, gave_up) => told,
            () = crashing => unreachable!(),
        };
        assert_eq!(path, "consumer g/consumer");
        assert_eq!(cause, Exit::Panicked("injected panic".to_owned()));
    });
}

#[test]
fn a_server_that_comes_back_is_told_of_again() {
    virtually(async {
        let broker = two_nodes().await;
        let consumer = client(&broker).start(hopeless()).await.unwrap();
        let mut events = consumer.events();
        let session = |up: bool| {
            move |kind| match kind {
                EventKind::SessionUp { endpoint } if up => Some(endpoint.to_string()),
                EventKind::SessionDown { endpoint, .. } if !up => Some(endpoint.to_string()),
                _ => None,
            }
        };
        broker.stop_node(1);
        let node = broker.node_endpoints(1);
        assert_eq!(first(&mut events, session(false)).await.1, node);
        broker.start_node(1).await.unwrap();
        assert_eq!(first(&mut events, session(true)).await.1, node);
        consumer.shutdown(secs(1)).await;
    });
}
