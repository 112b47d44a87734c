#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    future::pending,
    sync::{Arc, Mutex},
};

use super::*;
use crate::model::Endpoints;

const LIMIT: Duration = Duration::from_secs(3);

/// What a host does when it is dialled.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Host {
    Answers,
    Refuses,
    Swallows,
}

/// Two hosts, `a` and `b`, and who was dialled.
#[derive(Clone)]
struct Net {
    hosts: Arc<Mutex<[Host; 2]>>,
    dialled: Arc<Mutex<String>>,
}

impl Net {
    fn new(a: Host, b: Host) -> Self {
        Self {
            hosts: Arc::new(Mutex::new([a, b])),
            dialled: Arc::default(),
        }
    }

    fn set(&self, a: Host, b: Host) {
        *self.hosts.lock().unwrap() = [a, b];
    }

    /// The hosts dialled since the last time.
    fn dialled(&self) -> String {
        std::mem::take(&mut self.dialled.lock().unwrap())
    }

    fn connector(&self) -> Connector {
        let net = self.clone();
        Connector::new(move |host: String, _| {
            net.dialled.lock().unwrap().push_str(&host);
            let does = net.hosts.lock().unwrap()[usize::from(host == "b")];
            async move {
                match does {
                    Host::Answers => Ok(tokio::io::duplex(1).0),
                    Host::Refuses => Err(io::ErrorKind::ConnectionRefused.into()),
                    Host::Swallows => pending().await,
                }
            }
        })
    }

    async fn connect(&self, dial: &Dial, purpose: Purpose) -> bool {
        let connector = self.connector();
        let connecting = dial.connect(purpose, &connector, LIMIT);
        timeout(LIMIT, connecting).await.unwrap().is_ok()
    }
}

fn addresses() -> Vec<Address> {
    let both = Endpoints::parse("a:8081;b:8081").unwrap();
    both.addresses().to_vec()
}

fn dial() -> Dial {
    Dial::new(addresses(), CancellationToken::new())
}

#[tokio::test(start_paused = true)]
async fn an_address_that_swallows_everything_leaves_the_next_its_share_of_the_time() {
    let net = Net::new(Host::Swallows, Host::Answers);
    let started = Instant::now();
    assert!(net.connect(&dial(), Purpose::Control).await);
    assert_eq!(started.elapsed(), LIMIT / 2);
    assert_eq!(net.dialled(), "ab");
}

#[tokio::test(start_paused = true)]
async fn polls_go_where_control_went_and_nowhere_before_it() {
    let net = Net::new(Host::Refuses, Host::Answers);
    let dial = dial();
    assert!(!net.connect(&dial, Purpose::Poll).await);
    assert_eq!(net.dialled(), "", "control has not chosen yet");
    assert!(net.connect(&dial, Purpose::Control).await);
    assert_eq!(net.dialled(), "ab");
    net.set(Host::Answers, Host::Answers);
    assert!(net.connect(&dial, Purpose::Poll).await && net.connect(&dial, Purpose::Control).await);
    assert_eq!(net.dialled(), "bb", "the one that worked comes first");
}

#[tokio::test(start_paused = true)]
async fn a_slot_closes_when_only_another_address_answers_and_its_successor_starts_there() {
    let net = Net::new(Host::Answers, Host::Answers);
    let dial = dial();
    assert!(net.connect(&dial, Purpose::Control).await && !dial.closed.is_cancelled());
    net.set(Host::Refuses, Host::Answers);
    assert!(!net.connect(&dial, Purpose::Control).await);
    assert!(dial.closed.is_cancelled(), "the settings have to go first");
    net.set(Host::Answers, Host::Answers);
    net.dialled();
    for purpose in [Purpose::Control, Purpose::Poll] {
        assert!(!net.connect(&dial, purpose).await);
    }
    assert_eq!(net.dialled(), "", "nothing goes over a closed slot");
    let next = Dial::new(dial.for_successor(), CancellationToken::new());
    assert!(net.connect(&next, Purpose::Control).await && net.connect(&next, Purpose::Poll).await);
    assert_eq!(net.dialled(), "bb");
}

#[tokio::test(start_paused = true)]
async fn the_only_address_is_dialled_for_polls_at_once() {
    let net = Net::new(Host::Answers, Host::Answers);
    let only = Dial::new(addresses()[..1].to_vec(), CancellationToken::new());
    assert!(net.connect(&only, Purpose::Poll).await);
    assert_eq!(net.dialled(), "a");
}
