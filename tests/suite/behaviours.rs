//! Every behaviour on the embedded broker.

use rocketmq_actors::ClientConfigBuilder;
use rocketmq_embedded::{GroupConfig, TopicConfig};

use super::harness::{Checked, broker, config, store, virtually};
use crate::{
    every_behaviour,
    shared::{self, Kind, Server, pb},
};

struct Embedded(Checked);

impl Server for Embedded {
    fn config(&self) -> ClientConfigBuilder {
        config(&self.0)
    }

    async fn topic(&self, name: &str, kind: Kind, queues: usize) {
        let topic = match kind {
            Kind::Normal => TopicConfig::normal(queues),
            Kind::Fifo => TopicConfig::fifo(queues),
        };
        self.0.create_topic(name, topic);
    }

    async fn group(&self, name: &str, retries: u32, fifo: bool) {
        self.0
            .create_group(name, GroupConfig::default().max_retries(retries).fifo(fifo));
    }

    async fn store(&self, message: pb::Message) {
        store(&self.0, 0, vec![message]).await;
    }
}

macro_rules! on_the_embedded_broker {
    ($module:ident: $($body:ident,)*) => {
        mod $module {
            use super::*;

            $(#[test]
            fn $body() {
                virtually(async {
                    let server = Embedded(broker(|builder| builder).await);
                    shared::$module::$body(&server).await;
                });
            })*
        }
    };
}

every_behaviour!(on_the_embedded_broker);
