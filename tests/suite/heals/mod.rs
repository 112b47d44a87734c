//! Sessions heal by themselves.

mod heartbeats;
