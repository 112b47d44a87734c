//! Connections: HTTP/2 limits, pings, reuse.
