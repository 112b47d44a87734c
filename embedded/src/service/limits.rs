//! How long receives wait, and how long messages stay invisible.

use std::time::Duration;

use rocketmq_proto::v2 as pb;

use super::ticket::Caller;
use crate::clock::proto_millis;
use crate::node::Client;
use crate::rpc::{Checked, refuse};

const MIN_POLL: Duration = Duration::from_secs(5);
const MAX_POLL: Duration = Duration::from_secs(20);

const MIN_INVISIBLE: i64 = 10_000;
pub(super) const MAX_INVISIBLE: i64 = 12 * 3600 * 1000;
const RENEWED_INVISIBLE: Duration = Duration::from_secs(60);
const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// Versions below report a short deadline in another way. Compared as text.
const KNOWS_POLLING_TIME: &str = "5.0.3";

/// How long the receive waits: what it asks for, within the proxy's limits and its deadline.
pub(super) fn polling_time(
    client: &Client,
    caller: &Caller,
    request: &pb::ReceiveMessageRequest,
) -> Checked<Duration> {
    let Some(remaining) = caller
        .headers
        .timeout
        .map(|timeout| timeout.saturating_sub(caller.at.elapsed()))
    else {
        return refuse(
            pb::Code::InternalServerError,
            "java.lang.NullPointerException: Cannot invoke \"java.lang.Long.longValue()\" because \
             \"timeRemaining\" is null",
        );
    };
    let asked = match &request.long_polling_timeout {
        Some(asked) => Duration::from_millis(proto_millis(asked).try_into().unwrap_or_default()),
        None => {
            let own = client.settings.request_timeout.as_ref().map(proto_millis);
            let own = own.and_then(|millis| u64::try_from(millis).ok());
            let timeout = own.map_or(DEFAULT_REQUEST_TIMEOUT, Duration::from_millis);
            remaining.saturating_sub(timeout / 2)
        }
    };
    let wait = asked.clamp(MIN_POLL, MAX_POLL);
    if wait <= remaining {
        return Ok(wait);
    }
    if remaining >= MIN_POLL {
        return Ok(remaining);
    }
    let code = if caller.headers.version.as_str() < KNOWS_POLLING_TIME {
        pb::Code::BadRequest
    } else {
        pb::Code::IllegalPollingTime
    };
    refuse(
        code,
        "The deadline time remaining is not enough for polling, please check network condition",
    )
}

/// How long messages stay invisible.
pub(super) fn invisible_time(
    auto_renew: bool,
    asked: Option<&prost_types::Duration>,
) -> Checked<Duration> {
    if auto_renew {
        return Ok(RENEWED_INVISIBLE);
    }
    let millis = asked.map_or(0, proto_millis);
    let text = if millis < MIN_INVISIBLE {
        format!("the invisibleTime is too small. min is {MIN_INVISIBLE}")
    } else if millis > MAX_INVISIBLE {
        format!("the invisibleTime is too large. max is {MAX_INVISIBLE}")
    } else {
        return Ok(Duration::from_millis(millis.unsigned_abs()));
    };
    refuse(pb::Code::IllegalInvisibleTime, text)
}
