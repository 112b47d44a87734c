//! Calls to a server: channels, headers, deadlines, status codes.

#[allow(dead_code, reason = "the calls that are signed follow")]
pub(crate) mod signature;
