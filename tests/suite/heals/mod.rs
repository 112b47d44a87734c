//! It heals: routes, sessions and transport under faults. Tests carry the numbers of the reports
//! whose recurrence they prevent.

mod credentials;
mod endpoints;
mod heartbeats;
mod routes;
mod sessions;
mod telemetry;
mod transport;
