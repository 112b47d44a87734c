//! Every behaviour on the real server.

use std::time::Duration;

use rocketmq_actors::{ClientConfig, ClientConfigBuilder, Tls};

use crate::{
    every_behaviour,
    raw::Raw,
    shared::{self, Kind, Server, pb},
    support::RealServer,
};

/// What the server was made with, see `tests/real/run`.
const RESOURCES: &str = include_str!("resources");

/// Whether a line of the resources starts with these words.
fn is_listed(words: &[&str]) -> bool {
    RESOURCES.lines().any(|line| {
        let mut listed = line.split_whitespace();
        words.iter().all(|word| listed.next() == Some(word))
    })
}

impl Server for RealServer {
    fn config(&self) -> ClientConfigBuilder {
        ClientConfig::builder(self.endpoints()).tls(Tls::Off)
    }

    async fn topic(&self, name: &str, kind: Kind, queues: usize) {
        let kind = match kind {
            Kind::Normal => "NORMAL",
            Kind::Fifo => "FIFO",
        };
        let queues = queues.to_string();
        assert!(
            is_listed(&["topic", name, kind, &queues]),
            "{name} is not in tests/real/resources"
        );
    }

    async fn group(&self, name: &str, retries: u32, fifo: bool) {
        let retries = retries.to_string();
        let mut words = vec!["group", name, &retries];
        words.extend(fifo.then_some("fifo"));
        assert!(is_listed(&words), "{name} is not in tests/real/resources");
    }

    async fn store(&self, message: pb::Message) {
        let mut raw = Raw::connect(self, "store").await;
        let reply = raw.store(message).await;
        assert_eq!(reply.status.unwrap().code, pb::Code::Ok as i32);
    }
}

/// Longer than any behaviour takes.
const PATIENCE: Duration = Duration::from_secs(180);

macro_rules! on_the_real_server {
    ($module:ident: $($body:ident,)*) => {
        mod $module {
            use super::*;

            $(#[test]
            fn $body() {
                actix_rt::System::new().block_on(async {
                    let server = RealServer::from_env();
                    let body = shared::$module::$body(&server);
                    tokio::time::timeout(PATIENCE, body).await.expect("it hangs");
                });
            })*
        }
    };
}

every_behaviour!(on_the_real_server);
