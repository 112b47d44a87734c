//! What can be supervised: an actor, a group.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use super::Exit;

/// What a supervising future keeps alive.
pub(super) trait Life {
    /// Drives it. Ready: it has ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Exit>;
    /// Whether the generation is up. Asked after a poll.
    fn is_up(&self) -> bool;
    /// Makes all state anew for the next generation.
    fn restart(&mut self) -> Result<(), Exit>;
    /// Makes it end by its own hooks, which takes further polls; after `limit` it is dropped.
    fn ask_to_stop(&mut self, limit: Duration);
}
