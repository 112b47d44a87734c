//! Noticing handlers that take too long, and those that block their thread.

use std::{convert::Infallible, time::Duration};

use super::{Delivery, consumption::Consumption};
use crate::{health::Reason, topology::EventKind};

/// Looks at the handlers that run within the time after which one counts as slow.
const LOOKS: u32 = 8;

/// Reports slow handlers and a blocked thread, for ever. It runs on another thread than the
/// handlers, where there is one.
pub(super) async fn watch_handlers(consumption: &Consumption) -> Infallible {
    let limit = consumption.options.slow_handler_after;
    let every = (limit / LOOKS).max(Duration::from_millis(1));
    let slow = async {
        loop {
            tokio::time::sleep(every).await;
            for (delivery, elapsed) in consumption.running.newly_slow(limit) {
                report_slow(consumption, &delivery, elapsed);
            }
        }
    };
    tokio::select! {
        never = slow => never,
        never = watch_thread(consumption) => never,
    }
}

fn report_slow(consumption: &Consumption, delivery: &Delivery, elapsed: Duration) {
    let member = &consumption.member;
    let handler = consumption.handler.refers_to().map(|child| child.name);
    tracing::warn!(
        actor = &*member.path,
        topic = delivery.topic(),
        message_id = delivery.message_id(),
        handler = handler.as_deref(),
        ?elapsed,
        "a handler is slow"
    );
    member.report(EventKind::HandlerSlow {
        topic: delivery.topic().into(),
        message_id: delivery.message_id().to_owned(),
        handler,
        elapsed,
    });
}

/// Watches the pulse of the thread that polls the handlers.
async fn watch_thread(consumption: &Consumption) -> Infallible {
    let member = &consumption.member;
    let Some(pulse) = member.host.pulse.clone() else {
        // All on one thread: nobody is left to notice.
        return std::future::pending().await;
    };
    loop {
        let silent = pulse.stopped().await;
        let blocking = consumption.running.polled();
        let topic = blocking.as_ref().map(|delivery| delivery.topic().into());
        let message_id = blocking.map(|delivery| delivery.message_id().to_owned());
        tracing::warn!(
            actor = &*member.path,
            topic = topic.as_deref(),
            message_id = message_id.as_deref(),
            ?silent,
            "the thread of the handlers is blocked"
        );
        member.report(EventKind::ThreadBlocked {
            topic,
            message_id: message_id.clone(),
            silent,
        });
        member.blocked(Some(Reason::ThreadBlocked { message_id }));
        pulse.again().await;
        tracing::info!(
            actor = &*member.path,
            "the thread of the handlers runs again"
        );
        member.blocked(None);
    }
}
