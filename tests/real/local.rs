//! What only a server in local mode does.

use std::time::Duration;

use rocketmq_actors::{Client, ClientConfig, Delivery, ErrorKind, Filter, PushConsumerSpec, Tls};
use tokio::time::Instant;

use crate::raw::Raw;
use crate::support::RealServer;

#[tokio::test]
async fn local_mode_refuses_a_group_that_nobody_listed() {
    let mut raw = Raw::connect(&RealServer::from_env(), "unlisted").await;
    let refused = raw.subscribe("normal-1", "unlisted").await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert!(refused.message().contains("group not found"), "{refused}");
}

#[tokio::test]
async fn a_consumer_of_a_group_that_nobody_listed_does_not_start() {
    // The default, said here because the test depends on it.
    let budget = Duration::from_secs(9);
    let config = ClientConfig::builder(RealServer::from_env().endpoints())
        .tls(Tls::Off)
        .start_timeout(budget);
    let spec = PushConsumerSpec::builder("not-listed")
        .subscribe("normal-1", Filter::any())
        .handler(|_: Delivery| async {});
    let client = Client::new(config.build().unwrap());
    let started = Instant::now();
    let refused = client.start(spec.build().unwrap()).await.unwrap_err();
    assert!(started.elapsed() < budget, "after {:?}", started.elapsed());
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    let text = refused.to_string();
    assert!(text.contains("group not found: not-listed"), "{text}");
    println!("refused after {:.1?}: {text}", started.elapsed());
}
