//! Messages flow through consumer, actor and producer while all of them crash at random: each has
//! its effect, and nothing is left behind.
//!
//! `CHAOS_MESSAGES` sets how many; 1,500 by default.

use std::collections::BTreeSet;

use actix::{Actor, Context, Handler, ResponseFuture};
use rocketmq_actors::{
    ChildRef, ChildSpec, Deliver, Filter, Intensity, MemberRef, Message, Outcome, Place, Producer,
    ProducerSpec, PushConsumer, PushConsumerSpec, Topology, TopologyHandle,
};
use rocketmq_embedded::TopicConfig;

use super::harness::*;

const CONCURRENCY: usize = 8;

struct Stage(MemberRef<Producer>);

impl Actor for Stage {
    type Context = Context<Self>;
}

impl Handler<Deliver> for Stage {
    type Result = ResponseFuture<Outcome>;

    fn handle(&mut self, order: Deliver, _: &mut Self::Context) -> Self::Result {
        let out = self.0.clone();
        Box::pin(async move {
            tokio::time::sleep(millis(200)).await;
            let message = Message::builder("out").body(order.payload).build();
            let sent = async { out.ready().await.send(message?).await };
            sent.await.map_or(Outcome::Retry, |_| Outcome::Ack)
        })
    }
}

#[derive(actix::Message)]
#[rtype(result = "()")]
struct Crash;

impl Handler<Crash> for Stage {
    type Result = ();

    fn handle(&mut self, _: Crash, _: &mut Self::Context) {
        panic!("chaos");
    }
}

struct Pipeline {
    app: TopologyHandle,
    stage: ChildRef<Stage>,
    input: MemberRef<PushConsumer>,
    out: MemberRef<Producer>,
}

impl Pipeline {
    async fn start(broker: &Checked) -> Self {
        let (stage, out) = (ChildRef::new("stage"), MemberRef::<Producer>::new("out"));
        let input = MemberRef::<PushConsumer>::new("in");
        let consumer = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .concurrency(CONCURRENCY)
            .max_cached_messages(32)
            .handler(stage.deliver())
            .build()
            .unwrap();
        let producer = ProducerSpec::builder().topic("out").build().unwrap();
        let (client, to) = (client(broker), out.clone());
        let often = Intensity {
            restarts: 100,
            within: secs(60),
        };
        let app = Topology::named("app")
            .place(Place::Here)
            .intensity(often)
            .child(ChildSpec::member(&out, &client, producer))
            .child(ChildSpec::actor(&stage, move || Stage(to.clone())))
            .child(ChildSpec::member(&input, &client, consumer));
        let app = app.start().await.unwrap();
        Self {
            app,
            stage,
            input,
            out,
        }
    }

    async fn crash(&self, which: usize) {
        match which {
            0 => self.stage.ready().await.do_send(Crash),
            1..=4 => {
                let actor = ["routes", "consumer", "session", "queue"][which - 1];
                self.input.ready().await.crash(actor);
            }
            _ => {
                let actor = ["routes", "producer", "session"][which - 5];
                self.out.ready().await.crash(actor);
            }
        }
    }
}

#[test]
fn every_message_has_its_effect_while_everything_crashes_at_random() {
    let messages = std::env::var("CHAOS_MESSAGES").map_or(1_500, |count| count.parse().unwrap());
    virtually(async {
        let broker = broker(|builder| builder.nodes(2).without_record()).await;
        broker.create_topic("t", TopicConfig::normal(2));
        broker.create_topic("out", TopicConfig::normal(2));
        store_numbered(&broker, "t", messages).await;
        let pipeline = Pipeline::start(&broker).await;
        let mut rng = fastrand::Rng::with_seed(4);
        let mut crashes = 0;
        let effects = || -> BTreeSet<_> {
            let sent = broker.messages("out").into_iter();
            sent.map(|stored| stored.message.body.to_vec()).collect()
        };
        while effects().len() < messages {
            tokio::time::sleep(millis(rng.u64(1_000..6_000))).await;
            pipeline.crash(rng.usize(0..8)).await;
            crashes += 1;
        }
        assert!(crashes > 5, "{crashes}");
        let twice = broker.messages("out").len() - messages;
        assert!(
            twice <= crashes * 2 * CONCURRENCY,
            "only what was in flight at a crash: {twice} by {crashes} crashes"
        );
        let mut health = pipeline.app.health();
        health.wait_for(|health| health.ready).await.unwrap();
        let (input, out) = (pipeline.input.ready().await, pipeline.out.ready().await);
        assert!(pipeline.app.stop(secs(60)).await.in_time);
        let (consumer, producer) = (input.stats(), out.stats());
        assert_eq!(
            (consumer.tasks, consumer.actors, consumer.cached_messages),
            (0, 0, 0),
            "{consumer:?}"
        );
        assert_eq!(
            (producer.tasks, producer.actors, producer.in_flight_messages),
            (0, 0, 0),
            "{producer:?}"
        );
    });
}
