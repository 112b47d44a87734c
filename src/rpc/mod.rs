//! Calls to a server: channels, headers, deadlines, status codes.
