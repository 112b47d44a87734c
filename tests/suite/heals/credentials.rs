//! Signed requests, rotation, headers.
