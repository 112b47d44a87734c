//! Sessions heal by themselves.

mod heartbeats;
mod periodic;
