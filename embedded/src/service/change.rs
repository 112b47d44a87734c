//! ChangeInvisibleDuration.

use std::time::Duration;

use rocketmq_proto::v2 as pb;

use super::limits::MAX_INVISIBLE;
use super::ticket::Caller;
use super::{Port, name};
use crate::clock::proto_millis;
use crate::names;
use crate::rpc::{Checked, ok, refuse, status};

impl Port {
    pub(super) fn change(
        &self,
        caller: &Caller,
        request: pb::ChangeInvisibleDurationRequest,
    ) -> Checked<pb::ChangeInvisibleDurationResponse> {
        let topic = names::topic(name(request.topic.as_ref()))?;
        let group = names::group(name(request.group.as_ref()))?;
        let invisible = within_limits(request.invisible_duration.as_ref())?;
        let handle = self.handle(caller, topic, group, &request.receipt_handle)?;
        let suspended = request.suspend.unwrap_or_default();
        let now = self.cluster.clock.millis();
        let mut state = handle.broker.state();
        let store = &mut state.store;
        let changed = match store.find(topic, group, handle.receipt.position) {
            Err(abnormal) => Err(abnormal),
            Ok(_) if handle.receipt.ordered() => {
                store.change_ordered(topic, group, &handle.receipt, invisible, suspended, now)
            }
            Ok(_) => store.change(topic, group, &handle.receipt, invisible, suspended, now),
        };
        drop(state);
        self.cluster.recorder.touch();
        let fresh = changed.map_err(|_| {
            status(
                pb::Code::InternalServerError,
                "changeInvisibleDuration failed: status is abnormal",
            )
        })?;
        Ok(pb::ChangeInvisibleDurationResponse {
            status: Some(ok()),
            receipt_handle: fresh.to_string(),
        })
    }
}

fn within_limits(asked: Option<&prost_types::Duration>) -> Checked<Duration> {
    let millis = asked.map_or(0, proto_millis);
    let text = if millis < 0 {
        "the invisibleTime is too small. min is 0".to_owned()
    } else if millis > MAX_INVISIBLE {
        format!("the invisibleTime is too large. max is {MAX_INVISIBLE}")
    } else {
        return Ok(Duration::from_millis(millis.unsigned_abs()));
    };
    refuse(pb::Code::IllegalInvisibleTime, text)
}
