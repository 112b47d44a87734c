//! Plain values and rules of the domain: no actors, no I/O, no clock.
