//! What goes with a call from its arrival to its answer.

use std::sync::{Arc, OnceLock, PoisonError};

use rocketmq_proto::v2 as pb;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status};

use super::Port;
use crate::auth;
use crate::cluster::Cluster;
use crate::fault::{Instead, Plan};
use crate::headers::Headers;
use crate::node::Node;
use crate::record::{Call, Outcome};
use crate::rpc::{Ask, Checked, Reply, Rpc, refuse};

/// Who calls, and when.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) headers: Arc<Headers>,
    pub(crate) at: Instant,
}

impl Caller {
    pub(crate) fn id(&self) -> &str {
        &self.headers.client_id
    }
}

/// One call under way. Dropped without an answer, it counts as cancelled.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) caller: Caller,
    cluster: Arc<Cluster>,
    node: Arc<Node>,
    connection: CancellationToken,
    rpc: Rpc,
    /// Nothing when neither a record nor a fault asks for it.
    call: Option<Arc<Call>>,
    plan: Plan,
}

impl Port {
    pub(crate) fn arrive<Q: Ask>(&self, request: &Request<Q>) -> Ticket {
        self.arrive_with(Arc::new(Headers::of(request.metadata())), request.get_ref())
    }

    pub(crate) fn arrive_with<Q: Ask>(&self, headers: Arc<Headers>, request: &Q) -> Ticket {
        let at = Instant::now();
        self.watch(&headers.client_id, Q::RPC);
        let wanted = self.cluster.recorder.enabled() || self.cluster.faults.any();
        let call = wanted.then(|| {
            self.cluster.recorder.write(|seq| Call {
                seq,
                at,
                elapsed: self.cluster.clock.elapsed(),
                node: self.node.index,
                connection: self.number,
                rpc: Q::RPC,
                client_id: headers.client_id.clone(),
                headers: Arc::clone(&headers),
                request: request.body(),
                end: OnceLock::new(),
            })
        });
        let plan = call
            .as_ref()
            .and_then(|call| self.cluster.faults.plan(call, request))
            .unwrap_or_default();
        Ticket {
            caller: Caller { headers, at },
            cluster: Arc::clone(&self.cluster),
            node: Arc::clone(&self.node),
            connection: self.connection.clone(),
            rpc: Q::RPC,
            call,
            plan,
        }
    }

    /// Notes a call that may not be made yet.
    fn watch(&self, client: &str, rpc: Rpc) {
        if client.is_empty() {
            return;
        }
        let objection = self.node.state().standings.objection(client, rpc);
        if let Some(objection) = objection {
            self.cluster
                .violations
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(format!(
                    "{:?}: {rpc:?} of {client} reached {} {objection}",
                    self.cluster.clock.elapsed(),
                    self.node.broker,
                ));
        }
    }

    /// Whether the caller may call at all.
    pub(crate) fn admit(&self, ticket: &Ticket) -> Checked<()> {
        if let Some(credentials) = &self.cluster.options.credentials {
            auth::check(credentials, &ticket.caller.headers)?;
        }
        if ticket.caller.id().trim().is_empty() {
            return refuse(pb::Code::ClientIdRequired, "client id cannot be empty");
        }
        Ok(())
    }
}

impl Ticket {
    pub(crate) async fn delay(&self) {
        if !self.plan.delay.is_zero() {
            tokio::time::sleep(self.plan.delay).await;
        }
    }

    pub(crate) async fn delay_reply(&self) {
        if !self.plan.reply_delay.is_zero() {
            tokio::time::sleep(self.plan.reply_delay).await;
        }
    }

    /// Whether the work is done at all.
    pub(crate) fn works(&self) -> bool {
        self.plan.work || self.plan.instead.is_none()
    }

    pub(crate) fn mutate(&self, mut reply: Reply<'_>) {
        if let Some(mutate) = &self.plan.mutate {
            mutate(&mut reply);
        }
    }

    /// How many items of a stream come through.
    pub(crate) fn items(&self) -> Option<usize> {
        self.plan.items
    }

    pub(crate) fn planned(&self) -> Option<&Instead> {
        self.plan.instead.as_ref()
    }

    /// What a fault puts in the place of the answer: a business status, an error, silence.
    pub(crate) async fn instead(&self) -> Result<Option<pb::Status>, Status> {
        let error = match &self.plan.instead {
            None => return Ok(None),
            Some(Instead::Status(status)) => return Ok(Some(status.clone())),
            Some(Instead::Grpc(code, message)) => Status::new(*code, message.clone()),
            Some(Instead::End) => Status::internal("the stream ended without a reply"),
            Some(Instead::Reset) => {
                self.cut();
                std::future::pending().await
            }
            Some(Instead::Nothing) => std::future::pending().await,
        };
        self.failed(&error);
        Err(error)
    }

    /// The same for a stream, which can also end in good order.
    pub(crate) async fn instead_of_stream(&self) -> Result<Option<pb::Status>, Status> {
        match &self.plan.instead {
            Some(Instead::End) => Ok(None),
            _ => self.instead().await,
        }
    }

    /// What a fault puts after the items it let through.
    pub(crate) async fn ending(&self) -> Option<Status> {
        self.instead_of_stream().await.err()
    }

    /// Cuts the connection.
    pub(crate) fn cut(&self) {
        self.connection.cancel();
    }

    pub(crate) fn failed(&self, status: &Status) {
        self.end(Outcome::Grpc {
            code: status.code(),
            message: status.message().to_owned(),
        });
    }

    pub(crate) fn answered(&self, status: Option<&pb::Status>) {
        let status = status.cloned().unwrap_or_default();
        if self.tells_of_lost_settings(&status) {
            self.node.state().standings.told(self.caller.id());
        }
        self.end(Outcome::Status {
            code: status.code,
            message: status.message,
        });
    }

    fn tells_of_lost_settings(&self, status: &pb::Status) -> bool {
        match self.rpc {
            Rpc::Heartbeat => status.code() == pb::Code::UnrecognizedClientType,
            Rpc::ReceiveMessage => {
                status.code() == pb::Code::InternalServerError
                    && status.message.contains("\"settings\" is null")
            }
            _ => false,
        }
    }

    pub(crate) fn end(&self, outcome: Outcome) {
        if let Some(call) = &self.call {
            self.cluster.recorder.end(call, outcome);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.end(Outcome::Cancelled);
    }
}
