//! One assigned queue: receive loops, cache, dispatch, settle.

use std::{collections::VecDeque, panic::AssertUnwindSafe, sync::Arc};

use actix::{
    Actor, ActorContext, Addr, AsyncContext, Context, Handler, ResponseFuture, Supervised,
};
use futures::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    consume::{
        Acks, Consumption, Leased, QueueFigures, Receiver, Unordered, handle_in_order, receive_loop,
    },
    messages::process_queue::{
        AwaitLane, DrainQueue, EndQueue, HandBackWaiting, LaneFree, LoopReport, PermitGranted,
        Received, TaskPanicked,
    },
    topology::{Scope, Tasks, panic_text},
};

/// What a process queue is, unchanged over its life.
#[derive(Debug, Clone)]
pub(crate) struct QueueSpec {
    pub(crate) consumption: Arc<Consumption>,
    pub(crate) receiver: Arc<Receiver>,
    pub(crate) figures: Arc<QueueFigures>,
    /// Cancelled when the queue is no longer assigned.
    pub(crate) dropped: CancellationToken,
}

/// Receives from one queue and has its messages handled.
#[derive(Debug)]
pub(crate) struct ProcessQueueActor {
    spec: QueueSpec,
    scope: Scope,
    state: State,
}

#[derive(Debug)]
struct State {
    /// Messages whose handler has not started.
    waiting: VecDeque<Leased>,
    /// Whether `waiting` is handled one after the other.
    fifo: bool,
    /// In order only: whether a message is handled or settled, and who waits until none is.
    lane_busy: bool,
    lane_awaited: Vec<oneshot::Sender<()>>,
    /// Whether a task waits for a permit on this queue's behalf.
    asking: bool,
    loops: usize,
    draining: bool,
    unordered: Unordered,
    acks: Acks,
    tasks: Tasks,
}

impl State {
    fn new(scope: &Scope) -> Self {
        Self {
            waiting: VecDeque::new(),
            fifo: false,
            lane_busy: false,
            lane_awaited: Vec::new(),
            asking: false,
            loops: 0,
            draining: false,
            unordered: Unordered::default(),
            acks: Acks::default(),
            tasks: scope.tasks(),
        }
    }
}

impl State {
    /// In order, one handler at a time.
    fn may_start(&self) -> bool {
        !self.fifo || !self.lane_busy
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.lane_busy
    }

    fn answer_awaiting(&mut self) {
        if self.is_idle() {
            for awaiting in self.lane_awaited.drain(..) {
                // A loop that has gone needs no answer.
                let _ = awaiting.send(());
            }
        }
    }
}

impl ProcessQueueActor {
    pub(crate) fn new(spec: QueueSpec, scope: Scope) -> Self {
        let state = State::new(&scope);
        Self { spec, scope, state }
    }

    /// Starts handlers for as long as there are messages and permits.
    fn dispatch(&mut self, queue: &Addr<Self>) {
        if self.state.draining {
            return;
        }
        while !self.state.waiting.is_empty() && self.state.may_start() {
            match self.spec.consumption.handlers.clone().try_acquire_owned() {
                Ok(permit) => self.start_handler(permit, queue),
                Err(_) => return self.ask_for_permit(queue),
            }
        }
        self.state.answer_awaiting();
    }

    /// One task waits its turn; the semaphore is fair over the queues of the consumer.
    fn ask_for_permit(&mut self, queue: &Addr<Self>) {
        if std::mem::replace(&mut self.state.asking, true) {
            return;
        }
        let (handlers, queue) = (self.spec.consumption.handlers.clone(), queue.clone());
        self.state.tasks.spawn(async move {
            if let Ok(permit) = handlers.acquire_owned().await {
                queue.do_send(PermitGranted { permit });
            }
        });
    }

    fn start_handler(&mut self, permit: OwnedSemaphorePermit, queue: &Addr<Self>) {
        let Some(leased) = self.state.waiting.pop_front() else {
            return;
        };
        let offset = leased.delivery.queue_offset();
        self.spec
            .figures
            .handed_out(self.state.waiting.len(), offset);
        if self.state.fifo {
            self.state.lane_busy = true;
            let consumption = self.spec.consumption.clone();
            let (stop, to) = (self.spec.dropped.clone(), queue.clone());
            self.spawn_essential(queue, async move {
                handle_in_order(&consumption, leased, permit, &stop).await;
                to.do_send(LaneFree);
            });
        } else {
            self.state.unordered.start(leased, permit);
        }
    }

    /// Runs a task without which the queue is of no use: its panic ends the queue, and the scan
    /// makes a new one.
    fn spawn_essential(&self, queue: &Addr<Self>, task: impl Future<Output = ()> + 'static) {
        let queue = queue.clone();
        self.state.tasks.spawn(async move {
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                let panic = panic_text(panic.as_ref()).to_owned();
                queue.do_send(TaskPanicked { panic });
            }
        });
    }

    fn start_loop(&mut self, queue: &Addr<Self>) {
        self.state.loops += 1;
        let stop = self.spec.dropped.clone();
        let run = receive_loop(self.spec.receiver.clone(), stop, queue.clone());
        self.spawn_essential(queue, run);
    }

    /// How many receives may be under way.
    fn most_loops(&self) -> usize {
        let consumption = &self.spec.consumption;
        if consumption.role.consuming.load().fifo {
            1
        } else {
            consumption.options.receives_per_queue
        }
    }
}

impl Actor for ProcessQueueActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let queue = ctx.address();
        self.start_loop(&queue);
        let QueueSpec {
            consumption,
            dropped,
            ..
        } = self.spec.clone();
        let State {
            acks, unordered, ..
        } = &self.state;
        let handling = unordered.clone().run(consumption.clone(), acks.clone());
        self.spawn_essential(&queue, handling);
        self.spawn_essential(&queue, acks.clone().run(consumption.clone()));
        self.state.tasks.spawn(async move {
            tokio::select! {
                () = dropped.cancelled() => {}
                () = consumption.draining.cancelled() => {}
            }
            queue.do_send(DrainQueue);
        });
    }
}

impl Supervised for ProcessQueueActor {
    /// A process queue is temporary: the assignment scan makes a new one instead.
    fn restarting(&mut self, _: &mut Self::Context) {
        self.state = State::new(&self.scope);
    }
}

impl Handler<Received> for ProcessQueueActor {
    type Result = ();

    fn handle(&mut self, message: Received, ctx: &mut Self::Context) {
        // A batch in order stays so to its end, whatever the server says meanwhile.
        self.state.fifo = message.fifo || (self.state.fifo && !self.state.is_idle());
        let last = message.batch.last();
        let offset = last.and_then(|leased| leased.delivery.queue_offset());
        self.state.waiting.extend(message.batch);
        self.spec.figures.received(self.state.waiting.len(), offset);
        self.dispatch(&ctx.address());
    }
}

impl Handler<AwaitLane> for ProcessQueueActor {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: AwaitLane, _: &mut Self::Context) -> Self::Result {
        let (done, settled) = oneshot::channel();
        self.state.lane_awaited.push(done);
        self.state.answer_awaiting();
        Box::pin(async move {
            // Dropped by a queue that drains: then the loop ends, too.
            let _ = settled.await;
        })
    }
}

impl Handler<TaskPanicked> for ProcessQueueActor {
    type Result = ();

    fn handle(&mut self, message: TaskPanicked, ctx: &mut Self::Context) {
        self.scope.fail(ctx, message.panic);
    }
}

impl Handler<PermitGranted> for ProcessQueueActor {
    type Result = ();

    fn handle(&mut self, message: PermitGranted, ctx: &mut Self::Context) {
        self.state.asking = false;
        if !self.state.draining && self.state.may_start() {
            self.start_handler(message.permit, &ctx.address());
        }
        self.dispatch(&ctx.address());
    }
}

impl Handler<LaneFree> for ProcessQueueActor {
    type Result = ();

    fn handle(&mut self, _: LaneFree, ctx: &mut Self::Context) {
        self.state.lane_busy = false;
        self.dispatch(&ctx.address());
    }
}

impl Handler<LoopReport> for ProcessQueueActor {
    type Result = bool;

    /// Answers whether the loop shall go on.
    fn handle(&mut self, message: LoopReport, ctx: &mut Self::Context) -> bool {
        let most = self.most_loops();
        if self.state.loops > most || (!message.full && self.state.loops > 1) {
            self.state.loops -= 1;
            return false;
        }
        if message.full && self.state.loops < most && !self.spec.consumption.budget.is_full() {
            self.start_loop(&ctx.address());
        }
        true
    }
}

impl Handler<DrainQueue> for ProcessQueueActor {
    type Result = ();

    fn handle(&mut self, _: DrainQueue, ctx: &mut Self::Context) {
        self.state.draining = true;
        self.state.lane_awaited.clear();
        let QueueSpec {
            consumption,
            receiver,
            ..
        } = self.spec.clone();
        let queue = ctx.address();
        self.state.tasks.spawn(async move {
            receiver.polls.close();
            receiver.polls.wait().await;
            if consumption.draining.is_cancelled() {
                // What goes back sooner would come again to a poll of another queue.
                consumption.polls.wait().await;
            }
            // Refused only by a queue that is gone.
            let _ = queue.send(HandBackWaiting).await;
            receiver.open.close();
            receiver.open.wait().await;
            queue.do_send(EndQueue);
        });
    }
}

impl Handler<HandBackWaiting> for ProcessQueueActor {
    type Result = ();

    fn handle(&mut self, _: HandBackWaiting, _: &mut Self::Context) {
        // Dropped leases are given back.
        self.state.waiting.clear();
        self.spec.figures.received(0, None);
    }
}

impl Handler<EndQueue> for ProcessQueueActor {
    type Result = ();

    fn handle(&mut self, _: EndQueue, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
