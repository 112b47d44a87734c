//! A proxy that dies and comes back under a running producer and consumer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocketmq_actors::{
    Client, ClientConfig, Delivery, Filter, Message, Producer, ProducerSpec, PushConsumerSpec, Tls,
};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::shared::{GRACE, Seen, Sight};
use crate::support::{Process, RealServer};

const TOPIC: &str = "restart";
const GROUP: &str = "restart";
/// Fifty messages a second.
const PERIOD: Duration = Duration::from_millis(20);
/// Sending and consuming must go on so soon after the proxy is back.
const RECOVERY: Duration = Duration::from_secs(30);
/// What the killed proxy had handed out comes again after 60 s and some.
const REDELIVERY: Duration = Duration::from_secs(110);

/// A producer at work, and what the server acknowledged to it.
struct Sending {
    stop: CancellationToken,
    task: JoinHandle<usize>,
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    /// The number of acknowledged messages.
    count: watch::Receiver<usize>,
}

impl Sending {
    fn start(producer: Producer) -> Self {
        let (note, count) = watch::channel(0);
        let acknowledged = Arc::<Mutex<BTreeSet<String>>>::default();
        let stop = CancellationToken::new();
        let (ids, stopped) = (acknowledged.clone(), stop.clone());
        let task = tokio::spawn(async move {
            let mut sends = JoinSet::new();
            let mut ticks = interval(PERIOD);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while !stopped.is_cancelled() {
                ticks.tick().await;
                let (producer, ids, note) = (producer.clone(), ids.clone(), note.clone());
                sends.spawn(async move {
                    let message = Message::builder(TOPIC).body("m").build().unwrap();
                    let receipt = producer.send(message).await?;
                    ids.lock().unwrap().insert(receipt.message_id().to_owned());
                    note.send_modify(|count| *count += 1);
                    Ok::<(), rocketmq_actors::Error>(())
                });
            }
            let failed = |sent: &Result<(), _>| sent.is_err();
            sends
                .join_all()
                .await
                .iter()
                .filter(|sent| failed(sent))
                .count()
        });
        Self {
            stop,
            task,
            acknowledged,
            count,
        }
    }

    fn acknowledged(&self) -> BTreeSet<String> {
        self.acknowledged.lock().unwrap().clone()
    }

    async fn until_more(&mut self, more: usize, within: Duration) {
        let wanted = *self.count.borrow() + more;
        let reached = self.count.wait_for(|count| *count >= wanted);
        timeout(within, reached)
            .await
            .expect("sends go on")
            .unwrap();
    }

    /// Stops sending: how many sends failed.
    async fn end(&mut self) -> usize {
        self.stop.cancel();
        (&mut self.task).await.unwrap()
    }
}

async fn until_all(seen: &Seen, ids: &BTreeSet<String>, within: Duration) {
    let handled = seen.until(|sights| ids.is_subset(&ids_of(sights)));
    let waited = timeout(within, handled).await;
    let missing = ids.difference(&ids_of(&seen.all())).count();
    assert!(waited.is_ok(), "{missing} of {} not handled", ids.len());
}

fn ids_of(sights: &[Sight]) -> BTreeSet<String> {
    sights.iter().map(|sight| sight.id.clone()).collect()
}

#[tokio::test]
async fn a_killed_proxy_costs_no_acknowledged_message() {
    let server = RealServer::from_env();
    let config = ClientConfig::builder(server.endpoints()).tls(Tls::Off);
    let client = Client::new(config.build().unwrap());
    let seen = Seen::default();
    let noted = seen.clone();
    let consumer = PushConsumerSpec::builder(GROUP)
        .subscribe(TOPIC, Filter::any())
        .handler(move |delivery: Delivery| {
            noted.add(&delivery);
            async {}
        });
    let consumer = client.start(consumer.build().unwrap()).await.unwrap();
    let producer = ProducerSpec::builder().topic(TOPIC).build().unwrap();
    let producer = client.start(producer).await.unwrap();
    let mut sending = Sending::start(producer.clone());
    sending.until_more(100, RECOVERY).await;
    until_all(&seen, &sending.acknowledged(), RECOVERY).await;

    let down = Instant::now();
    server.kill(Process::Proxy).await;
    server.start().await;
    let (up, before) = (Instant::now(), sending.acknowledged());
    sending.until_more(1, RECOVERY).await;
    let sent = up.elapsed();
    let new = sending
        .acknowledged()
        .difference(&before)
        .cloned()
        .collect();
    until_all(&seen, &new, RECOVERY).await;
    let handled = up.elapsed();
    sending.until_more(500, RECOVERY).await;
    let failed = sending.end().await;

    let acknowledged = sending.acknowledged();
    until_all(&seen, &acknowledged, REDELIVERY).await;
    let complete = up.elapsed();
    let report = producer.shutdown(GRACE).await;
    assert!(report.in_time && report.cut_off == 0, "{report:?}");
    let report = consumer.shutdown(GRACE).await;
    assert!(report.in_time && report.abandoned == 0, "{report:?}");
    let ids = ids_of(&seen.all());
    println!(
        "proxy away for {:.1?}; after its return: first send {sent:.1?}, first handling \
         {handled:.1?}, all handled {complete:.1?}; {} acknowledged, {failed} sends failed, {} \
         messages handled, {} duplicates, consumer restarts {}, producer restarts {}",
        up - down,
        acknowledged.len(),
        ids.len(),
        seen.all().len() - ids.len(),
        consumer.stats().restarts,
        producer.stats().restarts,
    );
    server.caught_up(GROUP, REDELIVERY).await;
}
