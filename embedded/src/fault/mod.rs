//! Faults: rules that say which calls go wrong, and how.

mod rules;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rocketmq_proto::v2 as pb;

use crate::record::Call;
use crate::rpc::{Reply, Rpc};

pub use rules::FaultHandle;
pub(crate) use rules::Faults;

type Predicate = Arc<dyn Fn(&Call) -> bool + Send + Sync>;
type Mutation = Arc<dyn Fn(&mut Reply<'_>) + Send + Sync>;

/// What the caller gets instead of its answer.
#[derive(Clone, Debug)]
pub(crate) enum Instead {
    Status(pb::Status),
    Grpc(tonic::Code, String),
    Nothing,
    End,
    Reset,
}

/// What happens to the calls that a rule meets.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    pub(crate) delay: Duration,
    pub(crate) reply_delay: Duration,
    pub(crate) work: bool,
    pub(crate) items: Option<usize>,
    pub(crate) instead: Option<Instead>,
    pub(crate) mutate: Option<Mutation>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("delay", &self.delay)
            .field("reply_delay", &self.reply_delay)
            .field("work", &self.work)
            .field("items", &self.items)
            .field("instead", &self.instead)
            .field("mutates", &self.mutate.is_some())
            .finish()
    }
}

/// A rule: which calls it meets, how many of them, and what happens to those.
///
/// Without more, it meets the next call of its method, which then works as usual: say what goes
/// wrong with one of [`status`](Self::status), [`grpc`](Self::grpc), [`hang`](Self::hang),
/// [`lose_reply`](Self::lose_reply), [`end`](Self::end), [`reset`](Self::reset),
/// [`delay`](Self::delay), [`mutate`](Self::mutate).
///
/// Rules are asked in the order they were given; the first that meets a call has it, later ones
/// do not count it.
#[derive(Clone)]
#[must_use = "a fault does nothing until it is given to a broker"]
pub struct Fault {
    rpc: Rpc,
    node: Option<usize>,
    client: Option<String>,
    topic: Option<String>,
    group: Option<String>,
    when: Option<Predicate>,
    skip: u64,
    times: u64,
    plan: Plan,
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("rpc", &self.rpc)
            .field("node", &self.node)
            .field("client", &self.client)
            .field("topic", &self.topic)
            .field("group", &self.group)
            .field("skip", &self.skip)
            .field("times", &self.times)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl Fault {
    /// A rule for the next call of `rpc`. For telemetry a call is one command on the stream.
    pub fn on(rpc: Rpc) -> Self {
        Self {
            rpc,
            node: None,
            client: None,
            topic: None,
            group: None,
            when: None,
            skip: 0,
            times: 1,
            plan: Plan::default(),
        }
    }

    /// Only at this node.
    pub fn node(mut self, node: usize) -> Self {
        self.node = Some(node);
        self
    }

    /// Only from this client id.
    pub fn client(mut self, client_id: impl Into<String>) -> Self {
        self.client = Some(client_id.into());
        self
    }

    /// Only about this topic.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// Only for this group.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Only calls that `meets` agrees to.
    pub fn when(mut self, meets: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        self.when = Some(Arc::new(meets));
        self
    }

    /// Leaves the first `n` calls alone that it would meet.
    pub fn skip(mut self, n: u64) -> Self {
        self.skip = n;
        self
    }

    /// Meets `n` calls; 1 when not said.
    pub fn times(mut self, n: u64) -> Self {
        self.times = n;
        self
    }

    /// Meets every call until it is cleared.
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }

    /// Waits before anything else is done. Goes together with what is said beside it.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.plan.delay = delay;
        self
    }

    /// Does the work at once and answers this much later.
    pub fn delay_reply(mut self, delay: Duration) -> Self {
        self.plan.reply_delay = delay;
        self
    }

    /// Does the work before things go wrong: `.after_work().hang()` stores the message and never
    /// answers.
    pub fn after_work(mut self) -> Self {
        self.plan.work = true;
        self
    }

    /// Answers a business status instead of doing the work. A telemetry stream gets one command
    /// with that status and then ends.
    pub fn status(self, code: pb::Code, message: impl Into<String>) -> Self {
        self.raw_status(code.into(), message)
    }

    /// Like [`status`](Self::status), with a number that need not be a known code.
    pub fn raw_status(self, code: i32, message: impl Into<String>) -> Self {
        let message = message.into();
        self.instead(Instead::Status(pb::Status { code, message }))
    }

    /// Fails with a gRPC status instead of doing the work.
    pub fn grpc(self, code: tonic::Code, message: impl Into<String>) -> Self {
        self.instead(Instead::Grpc(code, message.into()))
    }

    /// Never answers.
    pub fn hang(self) -> Self {
        self.instead(Instead::Nothing)
    }

    /// Does the work and answers gRPC `UNAVAILABLE`.
    pub fn lose_reply(self) -> Self {
        self.after_work()
            .grpc(tonic::Code::Unavailable, "the reply was lost")
    }

    /// Ends the stream without an answer, in good order. A unary call fails with `INTERNAL`.
    pub fn end(self) -> Self {
        self.instead(Instead::End)
    }

    /// Cuts the connection the call came by, and with it all other calls on it.
    pub fn reset(self) -> Self {
        self.instead(Instead::Reset)
    }

    /// Lets `n` items of a receive stream through (the status is one) before the stream ends or
    /// whatever else was said happens. Messages not let through stay invisible, as if lost.
    pub fn after_items(mut self, n: usize) -> Self {
        self.plan.items = Some(n);
        self.plan.work = true;
        if self.plan.instead.is_none() {
            self.plan.instead = Some(Instead::End);
        }
        self
    }

    /// Does the work, and changes the answer: hostile values, damaged bodies, unknown numbers.
    pub fn mutate(mut self, change: impl Fn(&mut Reply<'_>) + Send + Sync + 'static) -> Self {
        self.plan.mutate = Some(Arc::new(change));
        self
    }

    fn instead(mut self, instead: Instead) -> Self {
        self.plan.instead = Some(instead);
        self
    }

    fn meets(&self, call: &Call, topic: Option<&str>, group: Option<&str>) -> bool {
        self.rpc == call.rpc
            && self.node.is_none_or(|node| node == call.node)
            && self.client.as_ref().is_none_or(|id| *id == call.client_id)
            && (self.topic.is_none() || self.topic.as_deref() == topic)
            && (self.group.is_none() || self.group.as_deref() == group)
            && self.when.as_ref().is_none_or(|when| when(call))
    }
}
