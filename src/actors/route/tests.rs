//! The route actor with sessions over the embedded broker, in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::Mutex;

use futures::future::join_all;
use rocketmq_embedded::{EmbeddedBroker, Fault, Rpc, TopicConfig};
use tokio::task::LocalSet;

use super::*;
use crate::{
    ClientConfig, Connector, Tls,
    client::Host,
    member::{Role, get_route},
    rpc::user_agent,
};

fn virtually(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let limit = Duration::from_secs(24 * 3600);
        tokio::time::timeout(limit, test).await.expect("it hangs");
    });
}

/// A producer that sends nothing.
#[derive(Debug)]
struct Silent;

impl Role for Silent {
    fn topics(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    fn settings(&self) -> pb::Settings {
        pb::Settings {
            client_type: Some(pb::ClientType::Producer as i32),
            user_agent: Some(user_agent()),
            pub_sub: Some(pb::settings::PubSub::Publishing(pb::Publishing::default())),
            ..Default::default()
        }
    }

    fn apply(&self, _: &pb::Settings) -> bool {
        true
    }

    fn heartbeat(&self) -> pb::HeartbeatRequest {
        pb::HeartbeatRequest {
            client_type: pb::ClientType::Producer as i32,
            ..Default::default()
        }
    }

    fn termination(&self) -> pb::NotifyClientTerminationRequest {
        pb::NotifyClientTerminationRequest::default()
    }
}

/// Keeps what is published, and whether the cache had it by then.
struct Watcher {
    member: Arc<Member>,
    seen: Published,
}

type Published = Arc<Mutex<Vec<(String, bool)>>>;

impl Actor for Watcher {
    type Context = Context<Self>;
}

impl Handler<RouteUpdated> for Watcher {
    type Result = ();

    fn handle(&mut self, message: RouteUpdated, _: &mut Context<Self>) {
        let cached = self.member.routes.load().get(&message.route.topic);
        let cached = cached.is_some_and(|route| Arc::ptr_eq(&route, &message.route));
        let topic = message.route.topic.to_string();
        self.seen.lock().unwrap().push((topic, cached));
    }
}

struct Scene {
    broker: EmbeddedBroker,
    member: Arc<Member>,
    routes: Addr<RouteActor>,
    published: Published,
}

impl Scene {
    async fn new(topics: &[&str]) -> Self {
        let broker = EmbeddedBroker::builder().in_memory().start().await.unwrap();
        for topic in topics {
            broker.create_topic(*topic, TopicConfig::normal(2));
        }
        let pipes = broker.connector();
        let config = ClientConfig::builder(broker.endpoints())
            .tls(Tls::Off)
            .on_this_thread(true)
            .seed(7)
            .connector(Connector::new(move |host: String, port| {
                let connected = pipes.connect(&host, port);
                async move { connected }
            }))
            .build()
            .unwrap();
        let host = Arc::new(Host::start(&config).await.unwrap());
        let path = "producer".to_owned();
        let member = Member::new(
            path,
            crate::topology::Events::new(),
            &Arc::new(config),
            &host,
            Arc::new(Silent),
        )
        .unwrap();
        let published = Published::default();
        let watcher = Watcher {
            member: member.clone(),
            seen: published.clone(),
        };
        member.subscribe(watcher.start().recipient());
        let routes = RouteActor::start(&member);
        Self {
            broker,
            member,
            routes,
            published,
        }
    }

    async fn get(&self, topic: &str) -> Result<Arc<Route>> {
        get_route(&self.routes, &topic.into()).await
    }

    fn queries(&self) -> usize {
        self.broker.record().count(Rpc::QueryRoute)
    }

    fn published(&self) -> Vec<(String, bool)> {
        self.published.lock().unwrap().clone()
    }
}

async fn sleep(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[test]
fn callers_of_a_topic_in_flight_share_one_fetch_and_its_gate() {
    virtually(async {
        let scene = Scene::new(&["t"]).await;
        let second = Duration::from_secs(1);
        let fault = |rpc| Fault::on(rpc).delay_reply(second);
        scene.broker.fault(fault(Rpc::QueryRoute));
        scene.broker.fault(fault(Rpc::Telemetry));
        let callers = (0..200).map(|n| {
            let scene = &scene;
            async move {
                // Half of them come while the fetch is under way, half while the gate is open.
                sleep(n * 10).await;
                scene.get("t").await
            }
        });
        let answers = join_all(callers).await;
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(scene.queries(), 1);
        assert_eq!(scene.broker.record().count(Rpc::Telemetry), 1);
        assert_eq!(scene.published().len(), 1);
    });
}

#[test]
fn all_callers_get_the_error_and_the_next_try_works() {
    virtually(async {
        let scene = Scene::new(&["t"]).await;
        let refusal = Fault::on(Rpc::Telemetry).grpc(tonic::Code::InvalidArgument, "no");
        scene.broker.fault(refusal);
        let answers = join_all((0..10).map(|_| scene.get("t"))).await;
        for answer in answers {
            assert_eq!(answer.unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        assert!(scene.member.routes.load().get("t").is_none());
        assert!(scene.published().is_empty());
        assert!(scene.get("t").await.is_ok(), "the session is not poisoned");
    });
}

#[test]
fn a_commit_is_published_after_the_cache_has_it_and_an_unchanged_route_is_not() {
    virtually(async {
        let scene = Scene::new(&["t"]).await;
        scene.get("t").await.unwrap();
        let once = [("t".to_owned(), true)];
        for _ in 0..5 {
            scene.broker.set_route("t", |queues| queues.reverse());
            scene.routes.send(RefreshRoutes).await.unwrap();
            sleep(100).await;
        }
        assert_eq!(
            (scene.queries(), scene.published().as_slice()),
            (6, &once[..])
        );
        scene.broker.set_route("t", |queues| queues.truncate(1));
        scene.routes.send(RefreshRoutes).await.unwrap();
        sleep(100).await;
        assert_eq!(scene.published().len(), 2);
        assert!(scene.published().iter().all(|(_, cached)| *cached));
    });
}

#[test]
fn a_committed_topic_is_answered_at_once_while_another_waits_at_the_gate() {
    virtually(async {
        let scene = Scene::new(&["t", "u"]).await;
        scene.get("t").await.unwrap();
        scene.broker.set_route("u", |queues| {
            for queue in queues {
                let broker = queue.broker.as_mut().unwrap();
                broker.endpoints.as_mut().unwrap().addresses[0].host = "10.9.9.9".into();
            }
        });
        let slow = Fault::on(Rpc::QueryRoute).topic("u");
        scene.broker.fault(slow.delay_reply(Duration::from_secs(2)));
        let waits = async { assert!(scene.get("u").await.is_err()) };
        let answered = async {
            sleep(500).await;
            let before = Instant::now();
            scene.get("t").await.unwrap();
            assert_eq!(before.elapsed(), Duration::ZERO);
        };
        tokio::join!(waits, answered);
    });
}

#[test]
fn an_answer_to_a_route_actor_that_restarted_meanwhile_does_not_stop_later_ones() {
    virtually(async {
        let scene = Scene::new(&["t"]).await;
        scene.get("t").await.unwrap();
        for _ in 0..5 {
            scene.routes.send(RefreshRoutes).await.unwrap();
            sleep(100).await;
        }
        let route = scene.member.routes.load().get("t").unwrap();
        let queues = route.queues.iter().map(|queue| (*queue.proto).clone());
        scene.member.crash("routes");
        // It waits in the mailbox until the actor is back.
        scene.routes.do_send(RouteFetched {
            topic: "t".into(),
            fetch: 6,
            answer: Ok(queues.collect()),
        });
        sleep(5_000).await;
        scene.broker.set_route("t", |queues| queues.truncate(1));
        scene.routes.send(RefreshRoutes).await.unwrap();
        sleep(100).await;
        let route = scene.member.routes.load().get("t").unwrap();
        assert_eq!(route.queues.len(), 1);
        assert_eq!(scene.member.restarts(), 1);
    });
}
