//! A look at a tree.

use std::{fmt, sync::Arc};

use super::{ChildState, Details, control::ChildControl};

/// A child as a look at the tree shows it.
///
/// Its `Display` is the tree from here downwards, a line for each node. The figures are read when
/// it is made, each for itself: together they may be off by what happened meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeNode {
    /// Its place in the tree, names joined by `/`.
    pub path: Arc<str>,
    /// Where it is in its life.
    pub state: ChildState,
    /// How many times it has been restarted.
    pub restarts: u64,
    /// Its children, in start order; dynamic ones last. Of a producer or consumer its own
    /// actors: routes, consumer or producer, sessions, queues.
    pub children: Vec<TreeNode>,
    /// Its figures.
    pub details: Details,
}

impl TreeNode {
    /// The node at this path, itself or below.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Self> {
        if &*self.path == path {
            return Some(self);
        }
        self.children.iter().find_map(|child| child.find(path))
    }

    fn write(&self, out: &mut fmt::Formatter<'_>, above: &str, indent: &str) -> fmt::Result {
        let below_it = self.path.strip_prefix(above);
        let name = below_it.and_then(|name| name.strip_prefix('/'));
        write!(out, "{}: {}", name.unwrap_or(&self.path), self.state)?;
        if self.restarts > 0 {
            write!(out, ", restarts {}", self.restarts)?;
        }
        if self.details != Details::None {
            write!(out, ", {}", self.details)?;
        }
        for (at, child) in self.children.iter().enumerate() {
            let is_last = at + 1 == self.children.len();
            let (branch, trunk) = if is_last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            write!(out, "\n{indent}{branch}")?;
            child.write(out, &self.path, &format!("{indent}{trunk}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for TreeNode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(out, "", "")
    }
}

impl ChildControl {
    /// The actor as a node of the tree.
    pub(crate) fn node(&self, details: Details, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            path: Arc::clone(self.path()),
            state: self.state(),
            restarts: self.restarts(),
            children,
            details,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::topology::{ActorDetails, Exit};

    fn node(path: &str, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            path: path.into(),
            state: ChildState::Running,
            restarts: 0,
            children,
            details: Details::None,
        }
    }

    #[test]
    fn a_tree_is_printed_with_a_line_for_each_node() {
        let mut ledger = node("app/ledger", vec![]);
        ledger.restarts = 2;
        ledger.details = Details::Actor(ActorDetails { deliveries: 3 });
        let mut late = node("app/inner/late", vec![]);
        late.state = ChildState::Restarting {
            cause: Exit::Panicked("boom".into()),
            delay: Duration::from_secs(1),
        };
        let inner = node("app/inner", vec![late, node("app/inner/idle", vec![])]);
        let app = node("app", vec![ledger, inner]);
        let expected = "\
app: running
├─ ledger: running, restarts 2, deliveries 3
└─ inner: running
   ├─ late: restarting 1s after it panicked: boom
   └─ idle: running";
        assert_eq!(app.to_string(), expected);
        assert_eq!(
            app.find("app/inner/late").map(|node| &*node.path),
            Some("app/inner/late")
        );
        assert_eq!(app.find("app/none"), None);
    }
}
