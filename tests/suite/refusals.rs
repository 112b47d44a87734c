//! Bad input gets one clear error with its kind, within the start budget, and leaves nothing.

use rocketmq_actors::{
    Client, ClientConfig, Credentials, Delivery, ErrorKind, Filter, PushConsumerSpec, Tls,
};
use rocketmq_embedded::{EmbeddedBroker, Fault, Rpc, TopicConfig, proto as pb};
use tokio::time::Instant;

use super::harness::*;

fn spec(topic: &str, group: &str) -> PushConsumerSpec {
    PushConsumerSpec::builder(group)
        .subscribe(topic, Filter::any())
        .handler(|_: Delivery| async {})
        .build()
        .unwrap()
}

/// Starts a consumer that cannot start: the error, which came within the budget of 9 s.
async fn refused(client: &Client, topic: &str, group: &str) -> rocketmq_actors::Error {
    let started = Instant::now();
    let error = client
        .start(spec(topic, group))
        .await
        .expect_err("it cannot start");
    assert!(
        started.elapsed() <= secs(10),
        "{error} came after {:?}",
        started.elapsed()
    );
    error
}

async fn topic() -> Checked {
    let broker = broker(|builder| builder).await;
    broker.create_topic("t", TopicConfig::normal(1));
    broker
}

async fn nothing_is_left(broker: &EmbeddedBroker, client: Client) {
    drop(client);
    tokio::time::sleep(secs(1)).await;
    let live = broker.live(0);
    assert_eq!((live.connections, live.telemetry_streams), (0, 0));
}

#[test]
fn an_endpoint_nobody_listens_at() {
    virtually(async {
        let broker = topic().await;
        let client = Client::new(config_at(&broker, "10.9.9.9:8081").build().unwrap());
        let error = refused(&client, "t", "g").await;
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
        assert_eq!(error.peer(), Some("10.9.9.9:8081"));
        assert!(error.is_definite() && error.is_retryable());
    });
}

#[test]
fn an_endpoint_that_swallows_everything() {
    virtually(async {
        let broker = topic().await;
        broker.black_hole(0, true);
        let error = refused(&client(&broker), "t", "g").await;
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(error.peer().is_some(), "{error:?}");
    });
}

#[test]
fn a_topic_that_does_not_exist() {
    virtually(async {
        let broker = topic().await;
        let client = client(&broker);
        let error = refused(&client, "nothing", "g").await;
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert_eq!(error.server_code(), Some(pb::Code::TopicNotFound as i32));
        assert!(error.server_request_id().is_some(), "{error}");
        assert!(error.to_string().contains("nothing"), "{error}");
        nothing_is_left(&broker, client).await;
    });
}

#[test]
fn a_group_that_does_not_exist() {
    virtually(async {
        let broker = broker(|builder| builder.auto_create_groups(false)).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let client = client(&broker);
        let error = refused(&client, "t", "nobody").await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(
            error.to_string().contains("group not found: nobody"),
            "{error}"
        );
        nothing_is_left(&broker, client).await;
    });
}

#[test]
fn settings_that_are_never_answered() {
    virtually(async {
        let broker = topic().await;
        let hanging = broker.fault(Fault::on(Rpc::Telemetry).always().hang());
        let client = client(&broker);
        let error = refused(&client, "t", "g").await;
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        hanging.clear();
        client
            .start(spec("t", "g"))
            .await
            .expect("the same client starts when the server is well");
    });
}

#[test]
fn settings_for_another_kind_of_client() {
    virtually(async {
        let broker = topic().await;
        let odd = broker.fault(Fault::on(Rpc::Telemetry).always().mutate(|reply| {
            if let rocketmq_embedded::Reply::Telemetry(command) = reply
                && let Some(pb::telemetry_command::Command::Settings(settings)) =
                    &mut command.command
            {
                let publishing = pb::Publishing::default();
                settings.pub_sub = Some(pb::settings::PubSub::Publishing(publishing));
            }
        }));
        let client = client(&broker);
        let error = refused(&client, "t", "g").await;
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        assert_eq!(broker.record().count(Rpc::ReceiveMessage), 0);
        odd.clear();
        let started = client.start(spec("t", "g")).await;
        started.expect("the server is well again");
    });
}

#[test]
fn n23_settings_that_say_nothing_leave_the_defaults() {
    virtually(async {
        let broker = topic().await;
        broker.fault(Fault::on(Rpc::Telemetry).always().mutate(|reply| {
            if let rocketmq_embedded::Reply::Telemetry(command) = reply
                && let Some(pb::telemetry_command::Command::Settings(settings)) =
                    &mut command.command
            {
                *settings = pb::Settings::default();
            }
        }));
        store_numbered(&broker, "t", 5).await;
        let consumer = client(&broker).start(spec("t", "g")).await.unwrap();
        broker.wait_for(|_| broker.acks().len() == 5).await;
        consumer.shutdown(secs(1)).await;
    });
}

#[test]
fn one_thread_without_local_tasks() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let config = ClientConfig::builder("127.0.0.1:1")
            .tls(Tls::Off)
            .on_this_thread(true);
        let client = Client::new(config.build().unwrap());
        let error = client.start(spec("t", "g")).await.unwrap_err();
        names(&error, "LocalSet");
    });
}

#[test]
fn n111_a_wrong_key() {
    virtually(async {
        let broker = broker(|builder| builder.credentials("key", "right")).await;
        broker.create_topic("t", TopicConfig::normal(1));
        for wrong in [
            Some(Credentials::new("key", "wrong-secret").unwrap()),
            Some(Credentials::new("stranger", "right").unwrap()),
            None,
        ] {
            let mut config = config(&broker);
            if let Some(credentials) = wrong {
                config = config.credentials(credentials);
            }
            let error = refused(&Client::new(config.build().unwrap()), "t", "g").await;
            assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error}");
            assert_eq!(error.server_code(), Some(40100));
            assert!(!error.to_string().contains("wrong-secret"), "{error}");
            assert!(!format!("{error:?}").contains("wrong-secret"), "{error:?}");
        }
        let right = Credentials::new("key", "right").unwrap();
        let client = Client::new(config(&broker).credentials(right).build().unwrap());
        client
            .start(spec("t", "g"))
            .await
            .expect("the right key is let in")
            .shutdown(secs(1))
            .await;
    });
}

#[test]
fn a_topic_that_may_not_be_read() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic(
            "t",
            TopicConfig::normal(1).permission(pb::Permission::Write),
        );
        // It may become readable: the start succeeds, and the scan goes on asking.
        let consumer = client(&broker).start(spec("t", "g")).await.unwrap();
        tokio::time::sleep(secs(12)).await;
        assert_eq!(consumer.stats().queues, 0);
        broker.create_topic("t", TopicConfig::normal(1));
        tokio::time::sleep(secs(60)).await;
        assert_eq!(consumer.stats().queues, 1);
        consumer.shutdown(secs(1)).await;
    });
}

/// Every refusal names what it refuses.
fn names(error: &rocketmq_actors::Error, what: &str) {
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(
        error.to_string().contains(what),
        "{error} should name {what}"
    );
    assert!(error.is_definite() && !error.is_retryable());
}

#[test]
fn illegal_names_and_limits_never_reach_the_network() {
    let build = |topic: &str, group: &str| {
        PushConsumerSpec::builder(group)
            .subscribe(topic, Filter::any())
            .handler(|_: Delivery| async {})
    };
    names(&build("no blanks", "g").build().unwrap_err(), "topic");
    names(&build("", "g").build().unwrap_err(), "topic");
    names(&build(&"x".repeat(128), "g").build().unwrap_err(), "topic");
    names(&build("TBW102", "g").build().unwrap_err(), "TBW102");
    names(&build("t", "g@h").build().unwrap_err(), "group");
    names(&build("t", &"x".repeat(121)).build().unwrap_err(), "group");
    names(
        &build("t", "g").concurrency(0).build().unwrap_err(),
        "concurrency",
    );
    names(
        &build("t", "g").max_cached_messages(0).build().unwrap_err(),
        "max_cached_messages",
    );
    names(
        &build("t", "g").max_cached_bytes(0).build().unwrap_err(),
        "max_cached_bytes",
    );
    names(
        &build("t", "g").receives_per_queue(0).build().unwrap_err(),
        "receives_per_queue",
    );
    let nothing = PushConsumerSpec::builder("g").handler(|_: Delivery| async {});
    names(&nothing.build().unwrap_err(), "topic");
    let nobody = PushConsumerSpec::builder("g").subscribe("t", Filter::any());
    names(&nobody.build().unwrap_err(), "handler");
    let odd = build("t", "g").subscribe("u", Filter::tag("||"));
    assert_eq!(odd.build().unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn configurations_that_cannot_work_are_refused_when_built() {
    let build = |endpoints: &str| ClientConfig::builder(endpoints).tls(Tls::Off);
    names(&build("host:70000").build().unwrap_err(), "70000");
    names(&build("").build().unwrap_err(), "address");
    names(&build("user@host:1").build().unwrap_err(), "host");
    let zero = std::time::Duration::ZERO;
    names(
        &build("h:1").request_timeout(zero).build().unwrap_err(),
        "request_timeout",
    );
    names(
        &build("h:1").start_timeout(zero).build().unwrap_err(),
        "start_timeout",
    );
    names(
        &build("h:1").decode_limit(1024).build().unwrap_err(),
        "decode_limit",
    );
    names(
        &build("h:1").namespace("a\nb").build().unwrap_err(),
        "namespace",
    );
    let mut intervals = rocketmq_actors::Intervals::default();
    intervals.heartbeat = zero;
    names(
        &build("h:1").intervals(intervals).build().unwrap_err(),
        "heartbeat",
    );
    assert!(Credentials::new("key\r\nx: y", "secret").is_err());
}
