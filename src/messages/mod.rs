//! What the actors say to each other: one file for each that listens.

pub(crate) mod consumer;
pub(crate) mod process_queue;
pub(crate) mod producer;
pub(crate) mod route;
pub(crate) mod session;
