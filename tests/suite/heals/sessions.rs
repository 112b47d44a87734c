//! Settings: lost, late, odd.
