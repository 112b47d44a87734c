//! Heartbeat and NotifyClientTermination.

use rocketmq_proto::v2 as pb;
use tokio::time::Instant;

use super::ticket::Caller;
use super::{Port, name};
use crate::cluster::RETURN_DELAY;
use crate::names;
use crate::node::Client;
use crate::rpc::{Checked, ok, refuse};

const NO_SETTINGS: &str = "cannot find client settings for this client";

impl Port {
    /// Settings decide what a client is, whatever it says of itself; a consumer names its group.
    fn known(&self, caller: &Caller, group: Option<&pb::Resource>) -> Checked<Client> {
        let Some(client) = self.node.client(caller.id()) else {
            return refuse(pb::Code::UnrecognizedClientType, NO_SETTINGS);
        };
        if client.subscription().is_some() {
            names::group(name(group))?;
        }
        Ok(client)
    }

    pub(super) fn beat(
        &self,
        caller: &Caller,
        request: pb::HeartbeatRequest,
    ) -> Checked<pb::HeartbeatResponse> {
        self.known(caller, request.group.as_ref())?;
        if let Some(client) = self.node.state().clients.get_mut(caller.id()) {
            client.last_seen = Instant::now();
        }
        Ok(pb::HeartbeatResponse { status: Some(ok()) })
    }

    pub(super) fn terminate(
        &self,
        caller: &Caller,
        request: pb::NotifyClientTerminationRequest,
    ) -> Checked<pb::NotifyClientTerminationResponse> {
        self.known(caller, request.group.as_ref())?;
        self.cluster
            .forget(&self.node, caller.id(), true, RETURN_DELAY);
        Ok(pb::NotifyClientTerminationResponse { status: Some(ok()) })
    }
}
