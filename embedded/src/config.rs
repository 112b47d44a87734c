//! What topics and groups are made with.

use rocketmq_proto::v2 as pb;

use crate::backoff::Backoff;

/// What a topic accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TopicType {
    /// Messages without order, delay or transaction.
    Normal,
    /// Messages with a message group.
    Fifo,
    /// Messages with a delivery time.
    Delay,
    /// Transactional messages.
    Transaction,
    /// Messages with a priority.
    Priority,
    /// Any of normal, FIFO, delay and transaction.
    Mixed,
}

impl TopicType {
    pub(crate) fn accepted(self) -> Vec<pb::MessageType> {
        match self {
            Self::Normal => vec![pb::MessageType::Normal],
            Self::Fifo => vec![pb::MessageType::Fifo],
            Self::Delay => vec![pb::MessageType::Delay],
            Self::Transaction => vec![pb::MessageType::Transaction],
            Self::Priority => vec![pb::MessageType::Priority],
            Self::Mixed => vec![
                pb::MessageType::Normal,
                pb::MessageType::Fifo,
                pb::MessageType::Delay,
                pb::MessageType::Transaction,
            ],
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Normal => "NORMAL",
            Self::Fifo => "FIFO",
            Self::Delay => "DELAY",
            Self::Transaction => "TRANSACTION",
            Self::Priority => "PRIORITY",
            Self::Mixed => "MIXED",
        }
    }
}

/// A topic: its type, its queues on every node, and what may be done with them.
#[derive(Clone, Debug)]
pub struct TopicConfig {
    pub(crate) kind: TopicType,
    pub(crate) queues: usize,
    pub(crate) permission: pb::Permission,
}

impl TopicConfig {
    /// A topic of `kind` with `queues` queues (at least one) on every node, readable and writable.
    #[must_use]
    pub fn new(kind: TopicType, queues: usize) -> Self {
        Self {
            kind,
            queues: queues.max(1),
            permission: pb::Permission::ReadWrite,
        }
    }

    /// A topic of normal messages.
    #[must_use]
    pub fn normal(queues: usize) -> Self {
        Self::new(TopicType::Normal, queues)
    }

    /// A topic of ordered messages.
    #[must_use]
    pub fn fifo(queues: usize) -> Self {
        Self::new(TopicType::Fifo, queues)
    }

    /// A topic of delayed messages.
    #[must_use]
    pub fn delay(queues: usize) -> Self {
        Self::new(TopicType::Delay, queues)
    }

    /// A topic of transactional messages.
    #[must_use]
    pub fn transaction(queues: usize) -> Self {
        Self::new(TopicType::Transaction, queues)
    }

    /// A topic of messages with priorities; the queue is the priority.
    #[must_use]
    pub fn priority(queues: usize) -> Self {
        Self::new(TopicType::Priority, queues)
    }

    /// A topic that takes normal, FIFO, delayed and transactional messages.
    #[must_use]
    pub fn mixed(queues: usize) -> Self {
        Self::new(TopicType::Mixed, queues)
    }

    /// Sets what clients may do with its queues.
    #[must_use]
    pub fn permission(mut self, permission: pb::Permission) -> Self {
        self.permission = permission;
        self
    }

    pub(crate) fn readable(&self) -> bool {
        matches!(
            self.permission,
            pb::Permission::Read | pb::Permission::ReadWrite
        )
    }

    pub(crate) fn writable(&self) -> bool {
        matches!(
            self.permission,
            pb::Permission::Write | pb::Permission::ReadWrite
        )
    }
}

/// A consumer group. The default: not ordered, 16 retries, the broker's list of delays.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    pub(crate) max_retries: u32,
    pub(crate) fifo: bool,
    pub(crate) backoff: Backoff,
}

impl Default for GroupConfig {
    fn default() -> Self {
        Self {
            max_retries: 16,
            fifo: false,
            backoff: Backoff::default(),
        }
    }
}

impl GroupConfig {
    /// How often a message is delivered again before it goes to the dead letters.
    #[must_use]
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.max_retries = retries;
        self
    }

    /// Whether every queue is consumed in order, one batch at a time.
    #[must_use]
    pub fn fifo(mut self, fifo: bool) -> Self {
        self.fifo = fifo;
        self
    }

    /// The delays that clients are told.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    pub(crate) fn max_attempts(&self) -> i32 {
        i32::try_from(self.max_retries)
            .unwrap_or(i32::MAX)
            .saturating_add(1)
    }
}
