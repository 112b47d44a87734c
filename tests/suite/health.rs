//! The health of members and trees: what a probe sees, and when.

use std::time::Duration;

use rocketmq_actors::{
    ChildRef, ChildSpec, ChildState, Delivery, Endpoints, Filter, Health, MemberRef, Place,
    ProducerSpec, PushConsumer, PushConsumerSpec, Reason, Topology,
};
use rocketmq_embedded::{EmbeddedBroker, Fault, Rpc, TopicConfig, proto as pb};
use tokio::{sync::watch, time::Instant};

use super::harness::*;

fn idle() -> PushConsumerSpec {
    PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(|_: Delivery| async {})
        .build()
        .unwrap()
}

async fn two_nodes() -> Checked {
    let broker = broker(|builder| builder.nodes(2)).await;
    broker.create_topic("t", TopicConfig::normal(2));
    broker
}

fn endpoint(broker: &EmbeddedBroker, node: usize) -> Endpoints {
    broker.node_endpoints(node).parse().unwrap()
}

async fn until(
    health: &mut watch::Receiver<Health>,
    wanted: impl FnMut(&Health) -> bool,
) -> Health {
    health.wait_for(wanted).await.unwrap().clone()
}

#[test]
fn a_consumer_is_ready_until_it_is_shut_down() {
    virtually(async {
        let broker = two_nodes().await;
        let consumer = client(&broker).start(idle()).await.unwrap();
        let mut health = consumer.health();
        let now = health.borrow_and_update().clone();
        assert!(now.live && now.ready, "{now:?}");
        assert_eq!(now.reasons, []);
        tokio::time::sleep(secs(3600)).await;
        assert!(!health.has_changed().unwrap(), "an idle hour is a good one");
        let (_, seen) = tokio::join!(consumer.shutdown(secs(5)), until(&mut health, |h| !h.ready));
        assert!(seen.live, "{seen:?}");
        assert_eq!(seen.reasons, [Reason::Draining]);
        let end = until(&mut health, |health| !health.live).await;
        assert_eq!(end.reasons, [Reason::Stopped]);
    });
}

#[test]
fn a_server_that_is_gone_is_a_reason_and_all_of_them_take_readiness_away() {
    virtually(async {
        let broker = two_nodes().await;
        let consumer = client(&broker).start(idle()).await.unwrap();
        let mut health = consumer.health();
        let gone = |node| Reason::NoSession {
            endpoint: endpoint(&broker, node),
        };
        broker.stop_node(1);
        let one = until(&mut health, |health| !health.reasons.is_empty()).await;
        assert!(one.live && one.ready, "{one:?}");
        assert_eq!(one.reasons, [gone(1)]);
        broker.stop_node(0);
        let both = until(&mut health, |health| !health.ready).await;
        assert!(both.live && both.reasons.contains(&gone(0)), "{both:?}");
        consumer.shutdown(Duration::ZERO).await;
    });
}

#[test]
fn a_consumer_that_receives_nothing_is_not_ready_after_its_limit_and_again_when_it_does() {
    virtually(async {
        let broker = two_nodes().await;
        let consumer = client(&broker).start(idle()).await.unwrap();
        tokio::time::sleep(secs(100)).await;
        let mut health = consumer.health();
        let begun = Instant::now();
        let refusing = Fault::on(Rpc::ReceiveMessage).status(pb::Code::InternalServerError, "no");
        broker.fault(refusing.always());
        let deaf = until(&mut health, |health| !health.ready).await;
        assert_eq!(deaf.reasons, [Reason::NotReceiving { within: secs(60) }]);
        // A poll that was under way may still have ended well.
        let after = begun.elapsed();
        assert!((secs(39)..=secs(81)).contains(&after), "{after:?}");
        broker.clear_faults();
        let well = until(&mut health, |health| health.ready).await;
        assert_eq!(well.reasons, []);
        consumer.shutdown(secs(5)).await;
    });
}

#[test]
fn a_full_cache_is_no_failure_to_receive() {
    virtually(async {
        let broker = two_nodes().await;
        store_numbered(&broker, "t", 10).await;
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .max_cached_messages(1)
            .handler(|_: Delivery| tokio::time::sleep(secs(600)))
            .build()
            .unwrap();
        let consumer = client(&broker).start(spec).await.unwrap();
        let health = consumer.health();
        tokio::time::sleep(secs(500)).await;
        assert!(health.borrow().ready, "{:?}", health.borrow());
        consumer.shutdown(Duration::ZERO).await;
    });
}

#[test]
fn a_producer_that_gave_up_is_not_live() {
    virtually(async {
        let broker = two_nodes().await;
        let spec = ProducerSpec::builder().topic("t").build().unwrap();
        let producer = client(&broker).start(spec).await.unwrap();
        let mut health = producer.health();
        assert!(health.borrow().ready);
        let crashing = async {
            loop {
                producer.crash("producer");
                tokio::time::sleep(secs(1)).await;
            }
        };
        let end = tokio::select! {
            end = until(&mut health, |health| !health.live) => end,
            () = crashing => unreachable!(),
        };
        let [Reason::GaveUp { error }] = &end.reasons[..] else {
            panic!("{end:?}");
        };
        assert!(error.contains("panicked"), "{error}");
    });
}

struct Idle;

impl actix::Actor for Idle {
    type Context = actix::Context<Self>;
}

#[derive(actix::Message)]
#[rtype(result = "()")]
struct Crash;

impl actix::Handler<Crash> for Idle {
    type Result = ();

    fn handle(&mut self, _: Crash, _: &mut Self::Context) {
        panic!("boom");
    }
}

#[test]
fn the_health_of_a_tree_names_who_is_down_and_what_is_amiss_in_its_members() {
    virtually(async {
        let broker = two_nodes().await;
        let (idler, billing) = (ChildRef::new("idler"), MemberRef::<PushConsumer>::new("in"));
        let app = Topology::named("app")
            .place(Place::Here)
            .child(ChildSpec::actor(&idler, || Idle))
            .child(ChildSpec::member(&billing, &client(&broker), idle()));
        let app = app.start().await.unwrap();
        let mut health = app.health();
        let up = until(&mut health, |health| health.ready).await;
        assert!(up.live && up.reasons.is_empty(), "{up:?}");

        broker.stop_node(1);
        let degraded = until(&mut health, |health| !health.reasons.is_empty()).await;
        let gone = Reason::NoSession {
            endpoint: endpoint(&broker, 1),
        };
        let expected = Reason::Member {
            path: "app/in".into(),
            reason: Box::new(gone),
        };
        assert!(degraded.ready, "{degraded:?}");
        assert_eq!(degraded.reasons, [expected]);

        idler.addr().unwrap().do_send(Crash);
        let down = until(&mut health, |health| !health.ready).await;
        let [Reason::Child { path, state }, _] = &down.reasons[..] else {
            panic!("{down:?}");
        };
        assert_eq!(&**path, "app/idler");
        assert!(matches!(
            state,
            ChildState::Down(_) | ChildState::Restarting { .. }
        ));
        until(&mut health, |health| health.ready).await;
        app.stop(secs(5)).await;
        let end = until(&mut health, |health| !health.live).await;
        assert_eq!(end.reasons, [Reason::Stopped]);
    });
}
