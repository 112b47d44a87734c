//! Supervision: restart policies, the supervising future, the tree.
//!
//! | file | what |
//! | --- | --- |
//! | `exit`, `policy`, `backoff`, `budget`, `plan` | decisions, without clock or runtime |
//! | `supervisor`, `lifecycle`, `life`, `vessel` | one actor, from generation to generation |
//! | `control`, `order`, `report`, `event` | what it can be told, and what it tells |
//! | `scope`, `tasks`, `live` | what an actor uses itself |
//! | `group`, `members`, `following`, `roster`, `spec`, `child_ref` | children in a tree |
//! | `liveness`, `place` | a check on frozen actors; the thread an actor runs on |
#![cfg_attr(
    not(test),
    allow(dead_code, reason = "the actors that are supervised follow")
)]

mod backoff;
mod budget;
mod child_ref;
mod control;
mod event;
mod exit;
mod following;
mod group;
mod life;
mod lifecycle;
mod live;
mod liveness;
mod members;
mod order;
mod place;
mod plan;
mod policy;
mod report;
mod roster;
mod scope;
mod spec;
mod supervisor;
mod tasks;
mod vessel;

#[cfg(test)]
mod tests;

pub use backoff::Backoff;
pub use control::ChildState;
pub use event::{LifeEvent, LifeEventKind};
pub use exit::Exit;
pub use place::Place;
pub use policy::{Intensity, Restart, Stop, Strategy};
pub use roster::TreeNode;
