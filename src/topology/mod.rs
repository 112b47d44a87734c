//! Supervision: restart policies, the supervising future, the tree.

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

pub(crate) use control::ChildControl;
pub(crate) use exit::panic_text;
pub(crate) use live::LiveCounts;
pub(crate) use scope::Scope;
pub(crate) use supervisor::{ChildPolicy, supervise};
pub(crate) use tasks::Tasks;
