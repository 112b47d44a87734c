//! Starting a producer.

use std::{sync::Arc, time::Duration};

use super::{
    Producer, ProducerSpec, publication::Publication, settings::ProducerRole, shutdown::closer,
};
use crate::{
    Result,
    actors::{ProducerActor, RouteActor},
    client::sealed::{Context, Start},
    member::{Member, Phase, fetch_routes},
    topology::supervise,
};

impl Start for ProducerSpec {
    type Handle = Producer;

    async fn start(self, on: Context) -> Result<Producer> {
        let role = Arc::new(ProducerRole::new(
            &self.topics,
            &self.options,
            on.config.clone(),
        )?);
        let (path, events) = on.place(|| match self.topics.first() {
            Some(topic) => format!("producer {topic}"),
            None => "producer".to_owned(),
        });
        let member = Member::new(path, events, &on.config, &on.host, role.clone())?;
        let routes = RouteActor::start(&member);
        let publication = Publication::new(member.clone(), role, self.options, routes.clone());
        let shared = publication.clone();
        let path = format!("{}/producer", member.path);
        let actor = supervise(
            &member.host.data,
            path,
            member.child_policy(),
            |_, scope| ProducerActor::new(shared, scope),
        );
        member.watch(actor.control);
        member.subscribe(actor.addr.clone().recipient());
        let closing = publication.clone();
        member.host.io.spawn(move || closer(closing));
        let handle = Producer::new(publication.clone(), actor.addr);
        if let Err(error) = fetch_routes(&member, &routes, &self.topics).await {
            publication.end(Duration::ZERO).await;
            return Err(error);
        }
        for topic in &self.topics {
            publication.adopt(topic);
        }
        member.enter(Phase::Running);
        Ok(handle)
    }
}
