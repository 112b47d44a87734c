//! Starting a push consumer.

use std::{sync::Arc, time::Duration};

use super::{
    PushConsumer, PushConsumerSpec, consumption::Consumption, settings::ConsumerRole,
    shutdown::closer,
};
use crate::{
    Result,
    actors::{ConsumerActor, RouteActor},
    client::sealed::{Context, Start},
    member::{Member, Phase, fetch_routes},
    messages::consumer::Begin,
    topology::{Label, supervise},
};

impl Start for PushConsumerSpec {
    type Handle = PushConsumer;

    fn refers_to(&self) -> Option<Label> {
        self.handler.refers_to()
    }

    async fn start(self, on: Context) -> Result<PushConsumer> {
        let topics: Vec<_> = self
            .subscriptions
            .iter()
            .map(|subscription| subscription.topic.clone())
            .collect();
        let role = Arc::new(ConsumerRole::new(
            self.group.clone(),
            self.subscriptions,
            on.config.clone(),
        ));
        let (path, events) = on.place(|| format!("consumer {}", self.group));
        let member = Member::new(path, events, &on.config, &on.host, role.clone())?;
        let routes = RouteActor::start(&member);
        let consumption = Consumption::new(
            member.clone(),
            role,
            self.options,
            self.handler,
            routes.clone(),
        );
        let shared = consumption.clone();
        let path = format!("{}/consumer", member.path);
        let consumer = supervise(
            &member.host.data,
            path,
            member.child_policy(),
            |_, scope| ConsumerActor::new(shared, scope),
        );
        member.watch(consumer.control);
        let closing = consumption.clone();
        member.host.io.spawn(move || closer(closing));
        let handle = PushConsumer::new(consumption.clone());
        if let Err(error) = fetch_routes(&member, &routes, &topics).await {
            consumption.ending.end(Duration::ZERO).await;
            return Err(error);
        }
        consumer.addr.do_send(Begin);
        member.enter(Phase::Running);
        Ok(handle)
    }
}
