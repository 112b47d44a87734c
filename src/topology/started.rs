//! A child as it runs.

use std::sync::Arc;

use super::{
    Details, TreeNode,
    child_ref::Label,
    control::ChildControl,
    group::Group,
    inside::{Inside, Shown},
};
use crate::client::sealed::Running;

/// A child as it runs: its control, and what it is made of.
#[derive(Debug, Clone)]
pub(crate) struct Started {
    pub(crate) control: ChildControl,
    within: Within,
}

#[derive(Debug, Clone)]
enum Within {
    Group(Group),
    Other(Arc<dyn Inside>),
}

impl Started {
    pub(super) fn actor(control: ChildControl, label: Label) -> Self {
        let within = Within::Other(Arc::new(label));
        Self { control, within }
    }

    pub(super) fn member<H: Running>(control: ChildControl, shown: Arc<Shown<H>>) -> Self {
        let within = Within::Other(shown);
        Self { control, within }
    }

    /// The group that it is, if it is one.
    pub(super) fn group(&self) -> Option<&Group> {
        match &self.within {
            Within::Group(group) => Some(group),
            Within::Other(_) => None,
        }
    }

    /// The tree from here downwards.
    pub(super) fn node(&self) -> TreeNode {
        match &self.within {
            Within::Group(group) => group.tree(),
            Within::Other(inside) => {
                let (details, children) = inside.look();
                self.control.node(details, children)
            }
        }
    }

    /// Whether this call comes from within it.
    pub(super) fn is_calling(&self) -> bool {
        self.control.is_polled_here()
            || match &self.within {
                Within::Group(group) => group.is_calling(),
                Within::Other(inside) => inside.is_calling(),
            }
    }
}

impl From<Group> for Started {
    fn from(group: Group) -> Self {
        Self {
            control: group.control().clone(),
            within: Within::Group(group),
        }
    }
}

impl Group {
    /// The group and everything below it, as it is now.
    pub(crate) fn tree(&self) -> TreeNode {
        let children = self.children().iter().map(Started::node).collect();
        self.control().node(Details::None, children)
    }

    /// Whether this call comes from within one of the children.
    pub(super) fn is_calling(&self) -> bool {
        self.children().iter().any(Started::is_calling)
    }

    /// The group of this name below this one, names joined by `/`; itself, without one.
    pub(super) fn descend(&self, path: &str) -> Option<Self> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(self.clone(), |group, name| {
            group.find(name)?.group().cloned()
        })
    }
}
