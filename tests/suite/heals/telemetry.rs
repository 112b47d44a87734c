//! The telemetry stream: lost in every way, opened again.
