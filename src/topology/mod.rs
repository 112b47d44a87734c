//! Supervision: restart policies, the supervising future, the tree.

mod backoff;
mod budget;
mod child_ref;
mod control;
mod details;
mod event;
mod exit;
mod following;
mod group;
mod handle;
mod inside;
mod life;
mod lifecycle;
mod live;
mod liveness;
mod member;
mod member_ref;
mod members;
mod order;
mod place;
mod plan;
mod policy;
mod records;
mod remade;
mod report;
mod root;
mod roster;
mod scope;
mod spec;
mod started;
mod supervisor;
mod tasks;
mod thread;
mod tree;
mod vessel;
mod vitals;
mod wiring;

#[cfg(test)]
mod tests;

pub use backoff::Backoff;
pub use child_ref::ChildRef;
pub use control::ChildState;
pub use details::{
    ActorDetails, ConsumerDetails, Details, ProducerDetails, QueueDetails, SessionDetails,
};
pub use event::{Event, EventKind};
pub use exit::Exit;
pub use handle::{StopReport, TopologyHandle};
pub use liveness::{Liveness, Ping};
pub use member_ref::MemberRef;
pub use place::Place;
pub use policy::{Intensity, Restart, Stop, Strategy};
pub use records::MemberReport;
pub use root::Topology;
pub use scope::Scope;
pub use spec::ChildSpec;
pub use tree::TreeNode;
pub use wiring::Reference;

pub(crate) use child_ref::Label;
pub(crate) use control::ChildControl;
pub(crate) use event::{Events, tell};
pub(crate) use exit::panic_text;
pub(crate) use live::LiveCounts;
pub(crate) use supervisor::{ChildPolicy, supervise};
pub(crate) use tasks::Tasks;
pub(crate) use thread::{local_runtime, spawn_thread};
