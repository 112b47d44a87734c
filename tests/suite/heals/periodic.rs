//! What is done again and again survives its errors.

use rocketmq_actors::{Delivery, Filter, PushConsumerSpec};
use rocketmq_embedded::{Fault, Rpc, TopicConfig};

use crate::harness::*;

#[test]
fn n101_every_periodic_job_goes_on_after_errors() {
    for rpc in [
        Rpc::Heartbeat,
        Rpc::QueryRoute,
        Rpc::QueryAssignment,
        Rpc::Telemetry,
    ] {
        virtually(async {
            let broker = broker(|builder| builder).await;
            broker.create_topic("t", TopicConfig::normal(1));
            let spec = PushConsumerSpec::builder("g")
                .subscribe("t", Filter::any())
                .handler(|_: Delivery| async {});
            let consumer = client(&broker).start(spec.build().unwrap()).await.unwrap();
            let runs = || broker.record().count(rpc);
            broker.wait_for(|_| runs() >= 2).await;
            broker.fault(Fault::on(rpc).grpc(tonic::Code::Internal, "odd").times(3));
            let before = runs();
            broker.wait_for(|_| runs() >= before + 6).await;
            store_numbered(&broker, "t", 1).await;
            broker.wait_for(|_| broker.acks().len() == 1).await;
            consumer.shutdown(secs(5)).await;
        });
    }
}
