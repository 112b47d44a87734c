//! The supervising future: one actor, from generation to generation.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{self, Poll},
    time::Duration,
};

use actix::{Actor, Addr, Context, Supervised};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{
    ChildState, Exit, Stop,
    backoff::Delays,
    budget::{RestartBudget, Verdict},
    control::Shared,
    order::{Order, Turn},
    report::Reporter,
    supervisor::{ChildPolicy, Decides},
    vessel::Vessel,
};

/// How a generation ended.
enum End {
    /// By itself.
    Own(Exit),
    /// It was told to stop for good.
    Stopped,
    /// It was told to make way for the next generation.
    Restart,
    /// It was told to go down and wait.
    Suspended,
}

/// What follows a generation.
enum Next {
    Generation,
    Done(ChildState),
}

/// What one look at the actor brought.
enum Pulse {
    /// It has been polled once and lives: `started` has run.
    Up,
    Ended(Exit),
    Told(Order),
}

pub(super) struct Supervision<A>
where
    A: Actor<Context = Context<A>>,
{
    // Dropped in this order: the end is reported when the actor is gone.
    vessel: Vessel<A>,
    report: Reporter,
    shared: Arc<Shared>,
    policy: ChildPolicy,
    budget: RestartBudget,
    delays: Delays,
    up_since: Option<Instant>,
    /// actix ends an actor nobody can reach, and does not restart one.
    _kept: Addr<A>,
}

impl<A> Supervision<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    pub(super) fn new(
        vessel: Vessel<A>,
        kept: Addr<A>,
        shared: Arc<Shared>,
        policy: ChildPolicy,
        report: Reporter,
    ) -> Self {
        Self {
            vessel,
            report,
            shared,
            budget: RestartBudget::new(policy.intensity),
            delays: Delays::new(policy.backoff),
            policy,
            up_since: None,
            _kept: kept,
        }
    }

    pub(super) async fn run(mut self) {
        let mut end = self.live().await;
        let last = loop {
            let ran = self
                .up_since
                .take()
                .map_or(Duration::ZERO, |at| at.elapsed());
            // Also gives the thread to others, however fast an actor fails.
            self.shared.lifespan().end().await;
            tokio::task::yield_now().await;
            match self.next(end, ran).await {
                Next::Done(state) => break state,
                Next::Generation => end = self.renew().await,
            }
        };
        let Self { vessel, report, .. } = self;
        drop(vessel);
        report.end(last);
    }

    /// Starts the next generation and drives it to its end.
    async fn renew(&mut self) -> End {
        self.shared.next_lifespan();
        // What the generation before reported is no failure of this one.
        let _ = self.shared.orders.take_failure();
        let generation = self.shared.lifespan().generation;
        self.report.generation_starts(generation);
        match self.vessel.restart() {
            Ok(()) => self.live().await,
            Err(exit) => End::Own(exit),
        }
    }

    /// Drives one generation to its end.
    async fn live(&mut self) -> End {
        loop {
            match poll_fn(|cx| self.pulse(cx)).await {
                Pulse::Up => {
                    self.up_since = Some(Instant::now());
                    self.report.up(self.shared.lifespan().generation);
                }
                Pulse::Ended(exit) | Pulse::Told(Order::Fail(exit)) => return End::Own(exit),
                Pulse::Told(Order::Stop(stop)) => {
                    self.wind_down(stop).await;
                    return End::Stopped;
                }
                Pulse::Told(Order::Turn(turn @ (Turn::Restart | Turn::Suspend))) => {
                    let for_good = self.wind_down(self.policy.stop).await;
                    return match turn {
                        _ if for_good => End::Stopped,
                        Turn::Suspend => End::Suspended,
                        _ => End::Restart,
                    };
                }
                // The others are for one that is down.
                Pulse::Told(Order::Turn(_)) => {}
            }
        }
    }

    fn pulse(&mut self, cx: &mut task::Context<'_>) -> Poll<Pulse> {
        if let Some(order) = self.shared.orders.take(cx.waker()) {
            return Poll::Ready(Pulse::Told(order));
        }
        match self.vessel.poll(cx, &self.shared) {
            Poll::Ready(ended) => Poll::Ready(Pulse::Ended(ended.err().unwrap_or(Exit::Normal))),
            Poll::Pending if self.up_since.is_none() => Poll::Ready(Pulse::Up),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Lets the actor end by its own hooks, for as long as `stop` gives. Whether it was told
    /// meanwhile to stop for good.
    async fn wind_down(&mut self, stop: Stop) -> bool {
        let deadline = |stop: Stop| Instant::now() + stop.limit();
        let mut until = deadline(stop);
        let mut for_good = false;
        // One that has not come up has nothing to wind down.
        let mut hooks = self.up_since.is_some() && stop != Stop::Now;
        if hooks {
            self.vessel.ask_to_stop();
        }
        while hooks {
            match timeout_at(until, poll_fn(|cx| self.pulse(cx))).await {
                Ok(Pulse::Told(Order::Stop(sooner))) => {
                    for_good = true;
                    hooks = sooner != Stop::Now;
                    until = until.min(deadline(sooner));
                }
                Ok(Pulse::Up | Pulse::Told(Order::Turn(_))) => {}
                Ok(Pulse::Ended(_) | Pulse::Told(Order::Fail(_))) | Err(_) => hooks = false,
            }
        }
        for_good
    }

    /// Decides, or lets decide, what follows a generation.
    async fn next(&mut self, end: End, ran: Duration) -> Next {
        let exit = match end {
            End::Stopped => return Next::Done(ChildState::Stopped(Exit::Shutdown)),
            End::Restart => return Next::Generation,
            End::Suspended => return self.down(Exit::Shutdown).await,
            End::Own(exit) if self.policy.decides == Decides::Group => {
                return self.down(exit).await;
            }
            End::Own(exit) => exit,
        };
        match self
            .budget
            .judge(self.policy.restart, &exit, Instant::now())
        {
            Verdict::End => Next::Done(ChildState::Stopped(exit)),
            Verdict::GiveUp => Next::Done(ChildState::GaveUp(exit)),
            Verdict::Restart => {
                let (attempt, delay) = self.delays.next(ran, &mut self.policy.rng);
                self.wait_out(exit, attempt, delay).await
            }
        }
    }

    /// Waits for a group's word.
    async fn down(&mut self, exit: Exit) -> Next {
        self.report.down(exit.clone());
        loop {
            match self.told().await {
                Order::Stop(_) => return Next::Done(ChildState::Stopped(Exit::Shutdown)),
                Order::Turn(Turn::End) => return Next::Done(ChildState::Stopped(exit)),
                Order::Turn(Turn::GiveUp) => return Next::Done(ChildState::GaveUp(exit)),
                Order::Turn(Turn::Restart) => return Next::Generation,
                Order::Turn(Turn::Resume { attempt, delay }) => {
                    return self.wait_out(exit, attempt, delay).await;
                }
                Order::Turn(Turn::Suspend) | Order::Fail(_) => {}
            }
        }
    }

    /// Waits out a delay, while the mailbox fills.
    async fn wait_out(&mut self, cause: Exit, attempt: u32, delay: Duration) -> Next {
        let over = Instant::now() + delay;
        self.report.restarting(cause, attempt, delay);
        loop {
            let order = tokio::select! {
                biased;
                order = self.told() => order,
                () = sleep_until(over) => return Next::Generation,
            };
            match order {
                Order::Stop(_) => return Next::Done(ChildState::Stopped(Exit::Shutdown)),
                Order::Turn(Turn::Restart) => return Next::Generation,
                Order::Turn(Turn::Suspend) => return Box::pin(self.down(Exit::Shutdown)).await,
                Order::Turn(_) | Order::Fail(_) => {}
            }
        }
    }

    async fn told(&self) -> Order {
        poll_fn(|cx| match self.shared.orders.take(cx.waker()) {
            Some(order) => Poll::Ready(order),
            None => Poll::Pending,
        })
        .await
    }
}
