//! What a busy or a stopping actor does to others.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use actix::{Actor, Context, Handler, Message};
use rocketmq_actors::{
    ChildRef, ChildSpec, Client, ClientConfig, Deliver, Filter, Intervals, Outcome, Place,
    PushConsumerSpec, Tls, Topology,
};
use rocketmq_embedded::{EmbeddedBroker, GroupConfig, Rpc, TopicConfig};

use super::harness::*;

/// Takes noise, and counts what of it has not been taken yet.
#[derive(Clone, Default)]
struct Listener(Arc<AtomicUsize>);

#[derive(Message)]
#[rtype(result = "()")]
struct Noise;

impl Actor for Listener {
    type Context = Context<Self>;
}

impl Handler<Noise> for Listener {
    type Result = ();

    fn handle(&mut self, _: Noise, _: &mut Self::Context) {
        // Slower than what floods it, so that the mailbox is never empty.
        thread::sleep(Duration::from_micros(20));
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Handler<Deliver> for Listener {
    type Result = Outcome;

    fn handle(&mut self, _: Deliver, _: &mut Self::Context) -> Outcome {
        Outcome::Ack
    }
}

/// Keeps the mailbox from ever being empty, until told to stop.
fn flood(listener: actix::Addr<Listener>, waiting: Arc<AtomicUsize>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Acquire) {
        if waiting.load(Ordering::Acquire) < 1_000 {
            waiting.fetch_add(1, Ordering::AcqRel);
            listener.do_send(Noise);
        }
    }
}

#[tokio::test]
async fn n83_heartbeats_go_on_while_the_mailbox_of_a_handler_actor_is_never_empty() {
    let broker = EmbeddedBroker::start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let mut intervals = Intervals::default();
    intervals.heartbeat = Duration::from_millis(200);
    let config = ClientConfig::builder(broker.endpoints()).tls(Tls::Off);
    let client = Client::new(config.intervals(intervals).build().unwrap());
    let listener = ChildRef::new("listener");
    let made = Listener::default();
    let waiting = made.0.clone();
    let spec = PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(listener.deliver())
        .build()
        .unwrap();
    let app = Topology::named("app")
        .child(ChildSpec::actor(&listener, move || made.clone()).place(Place::Own))
        .child(ChildSpec::member("in", &client, spec));
    let app = app.start().await.unwrap();
    let address = listener.ready().await;
    let stop = Arc::new(AtomicBool::new(false));
    let (told, depth) = (stop.clone(), waiting.clone());
    let flooding = thread::spawn(move || flood(address, depth, told));
    let begun = broker.record().next_seq();
    let beats = || {
        let record = broker.record();
        record
            .since(begun)
            .filter(|call| call.rpc == Rpc::Heartbeat)
            .count()
    };
    // A starved timer would never fire: the mailbox is never empty.
    broker.wait_for(|_| beats() >= 10).await;
    stop.store(true, Ordering::Release);
    flooding.join().unwrap();
    app.stop(secs(10)).await;
}

/// Changes two states that belong together, and may panic between.
struct Ledger {
    debit: Arc<AtomicUsize>,
    made: (usize, usize),
    crashes: Arc<AtomicUsize>,
    torn: Arc<AtomicUsize>,
}

impl Actor for Ledger {
    type Context = Context<Self>;
}

impl Handler<Deliver> for Ledger {
    type Result = Outcome;

    fn handle(&mut self, _: Deliver, _: &mut Self::Context) -> Outcome {
        if self.made.0 != self.made.1 {
            self.torn.fetch_add(1, Ordering::AcqRel);
        }
        self.made.0 += 1;
        let first = self.debit.fetch_add(1, Ordering::AcqRel);
        if first.is_multiple_of(5) && self.crashes.fetch_add(1, Ordering::AcqRel) < 4 {
            std::panic::resume_unwind(Box::new("between two writes"));
        }
        self.made.1 += 1;
        Outcome::Ack
    }
}

#[test]
fn n91_a_panic_between_two_writes_leaves_no_half_changed_state_and_loses_no_delivery() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        broker.create_group("g", GroupConfig::default().max_retries(16));
        store_numbered(&broker, "t", 20).await;
        let ledger = ChildRef::new("ledger");
        let [debit, crashes, torn] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
        let (of_make, crashed, seen) = (debit.clone(), crashes.clone(), torn.clone());
        let make = move || Ledger {
            debit: of_make.clone(),
            made: (0, 0),
            crashes: crashed.clone(),
            torn: seen.clone(),
        };
        let spec = PushConsumerSpec::builder("g")
            .subscribe("t", Filter::any())
            .handler(ledger.deliver())
            .build()
            .unwrap();
        let app = Topology::named("app")
            .place(Place::Here)
            .child(ChildSpec::actor(&ledger, make))
            .child(ChildSpec::member("in", &client(&broker), spec));
        let app = app.start().await.unwrap();
        broker.wait_for(|_| broker.acks().len() == 20).await;
        assert_eq!(
            torn.load(Ordering::Acquire),
            0,
            "a new one has a state of its own"
        );
        assert_eq!(crashes.load(Ordering::Acquire).min(4), 4);
        assert_eq!(
            debit.load(Ordering::Acquire),
            24,
            "each crash has its delivery come again"
        );
        assert!(app.stop(secs(60)).await.in_time);
    });
}

/// Counts what it is asked.
struct Counter(Tally);

#[derive(Message)]
#[rtype(result = "()")]
struct Count(usize);

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Count> for Counter {
    type Result = ();

    fn handle(&mut self, count: Count, _: &mut Self::Context) {
        self.0.add(&count.0.to_string());
    }
}

#[test]
fn n92_what_is_sent_during_and_after_a_stop_is_handled_or_refused() {
    virtually(async {
        let counter = ChildRef::new("counter");
        let handled = Tally::default();
        let counts = handled.clone();
        let make = move || Counter(counts.clone());
        let app = Topology::named("app")
            .place(Place::Here)
            .child(ChildSpec::actor(&counter, make));
        let app = app.start().await.unwrap();
        let address = counter.ready().await;
        let mut asked = Vec::new();
        let mut stopping = None;
        for number in 0..200 {
            if number == 100 {
                let app = app.clone();
                stopping = Some(tokio::task::spawn_local(
                    async move { app.stop(secs(5)).await },
                ));
            }
            asked.push(address.send(Count(number)));
            if number.is_multiple_of(10) {
                tokio::task::yield_now().await;
            }
        }
        let answers = futures::future::join_all(asked).await;
        let refused = answers.iter().filter(|answer| answer.is_err()).count();
        assert!(refused > 0, "it was stopped meanwhile");
        assert_eq!(handled.total() + refused, 200);
        assert!(stopping.unwrap().await.unwrap().in_time);
        assert!(address.send(Count(200)).await.is_err());
    });
}

#[test]
fn n83_on_one_arbiter_a_flood_holds_everything_up_and_all_of_it_goes_on_afterwards() {
    thread::spawn(|| actix::System::new().block_on(all_on_one_arbiter()))
        .join()
        .unwrap();
}

async fn all_on_one_arbiter() {
    let broker = EmbeddedBroker::start().await.unwrap();
    broker.create_topic("t", TopicConfig::normal(1));
    let mut intervals = Intervals::default();
    intervals.heartbeat = Duration::from_millis(100);
    let config = ClientConfig::builder(broker.endpoints()).tls(Tls::Off);
    let config = config.intervals(intervals).on_this_thread(true);
    let client = Client::new(config.build().unwrap());
    let made = Listener::default();
    let waiting = made.0.clone();
    let address = made.start();
    let spec = PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(address.clone().recipient::<Deliver>())
        .build()
        .unwrap();
    let consumer = client.start(spec).await.unwrap();
    let beats = || broker.record().count(Rpc::Heartbeat);
    broker.wait_for(|_| beats() >= 2).await;
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let (depth, flooded) = (waiting.clone(), address.clone());
    let flooding = thread::spawn(move || flood(flooded, depth, told));
    // Nobody but another thread can end it.
    let ended = stop.clone();
    let ending = thread::spawn(move || {
        thread::sleep(Duration::from_secs(1));
        stop.store(true, Ordering::Release);
    });
    while waiting.load(Ordering::Acquire) < 1_000 {
        thread::yield_now();
    }
    tokio::time::sleep(millis(50)).await;
    assert!(
        ended.load(Ordering::Acquire),
        "nothing else ran before it ended"
    );
    flooding.join().unwrap();
    ending.join().unwrap();
    let held_up = beats();
    broker.wait_for(|_| beats() >= held_up + 3).await;
    consumer.shutdown(secs(5)).await;
}
