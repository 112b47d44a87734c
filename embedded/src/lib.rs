//! An in-process broker.
