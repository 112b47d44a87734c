//! Addresses: forms, lists, unreachable ones.
