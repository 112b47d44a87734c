//! Heartbeats, missed ones, and what is rebuilt.
