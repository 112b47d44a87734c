//! Calls to a server: channels, headers, deadlines, status codes.

mod calls;
mod codec;
mod connect;
mod dial;
mod headers;
mod pool;
mod signature;
mod status;
#[cfg(feature = "tls")]
mod tls;

pub(crate) use calls::{Rpc, Streaming, TelemetryStream};
pub(crate) use connect::Transport;
pub(crate) use headers::{Headers, host_name, user_agent};
pub(crate) use pool::ChannelPool;
pub(crate) use status::{brief, check, says_settings_lost};
