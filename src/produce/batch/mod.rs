//! Sends that share requests.

mod answer;
mod collect;
mod depot;
mod options;
mod request;
mod together;

pub use options::Batching;

pub(super) use depot::Depot;
