//! Routes that change, fail, or make no sense.
