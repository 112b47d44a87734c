//! Supervision: restart policies, the supervising future, the tree.
