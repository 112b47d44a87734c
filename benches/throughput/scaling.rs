//! How the work scales with queues, members of a process and the size of bodies.

use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use tokio::runtime::Runtime;

use super::ours;

/// Most bytes of all bodies of a run: the broker keeps them in memory.
const BYTES: usize = 256 << 20;

#[derive(Debug, Clone, Copy)]
struct Shape {
    queues: usize,
    members: usize,
    size: usize,
}

const USUAL: Shape = Shape {
    queues: 8,
    members: 1,
    size: 1024,
};

pub(crate) fn run(broker: &EmbeddedBroker, client: &Runtime, messages: usize) {
    println!("| queues | members | body bytes | messages | send/s | receive and ack/s |");
    println!("| --: | --: | --: | --: | --: | --: |");
    let queues = [1, 4, 16, 64, 256].map(|queues| Shape { queues, ..USUAL });
    let members = [1, 10, 50].map(|members| Shape { members, ..USUAL });
    let sizes = [100, 1 << 10, 16 << 10, 1 << 20].map(|size| Shape { size, ..USUAL });
    for (number, shape) in queues.into_iter().chain(members).chain(sizes).enumerate() {
        let topic = format!("scaling{number}");
        broker.create_topic(&topic, TopicConfig::normal(shape.queues));
        client.block_on(one(broker, &topic, shape, messages));
        broker.delete_topic(&topic);
    }
}

async fn one(broker: &EmbeddedBroker, topic: &str, shape: Shape, messages: usize) {
    let Shape {
        queues,
        members,
        size,
    } = shape;
    let messages = messages.min(BYTES / size);
    // Each member has the same share.
    let messages = messages - messages % members;
    let endpoints = broker.endpoints();
    let send = ours::send(&endpoints, topic, messages, size, members).await;
    let consume = ours::consume(&endpoints, topic, messages, members).await;
    println!(
        "| {queues} | {members} | {size} | {messages} | {:.0} | {:.0} |",
        messages as f64 / send.as_secs_f64(),
        messages as f64 / consume.as_secs_f64()
    );
}
