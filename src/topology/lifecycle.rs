//! The supervising future: one life, from generation to generation.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{self, Poll},
    time::Duration,
};

use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::Span;

use super::{
    ChildState, Exit, Stop,
    backoff::Delays,
    budget::{RestartBudget, Verdict},
    control::Shared,
    inside::polling,
    life::Life,
    order::{Order, Turn},
    report::Reporter,
    supervisor::{ChildPolicy, Decides},
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

/// What one poll brought.
enum Pulse {
    /// It is up, seen for the first time.
    Up,
    Ended(Exit),
    Told(Order),
}

pub(super) struct Supervision<L> {
    // Dropped in this order: the end is reported when all else is gone.
    life: L,
    report: Reporter,
    shared: Arc<Shared>,
    policy: ChildPolicy,
    budget: RestartBudget,
    delays: Delays,
    /// Whether this generation has been polled.
    begun: bool,
    up_since: Option<Instant>,
    /// Of the generation: everything it logs is within.
    span: Span,
}

/// The span of the generation that is about to run. It has no parent: whoever happens to start
/// an actor does not contain its life.
fn span(shared: &Shared) -> Span {
    let generation = shared.lifespan().generation.0;
    tracing::debug_span!(parent: None, "actor", path = &*shared.path, generation)
}

impl<L: Life> Supervision<L> {
    pub(super) fn new(life: L, shared: Arc<Shared>, policy: ChildPolicy, report: Reporter) -> Self {
        let span = span(&shared);
        Self {
            life,
            report,
            shared,
            span,
            budget: RestartBudget::new(policy.intensity),
            delays: Delays::new(policy.backoff),
            policy,
            begun: false,
            up_since: None,
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
        let Self { life, report, .. } = self;
        drop(life);
        report.end(last);
    }

    /// Starts the next generation and drives it to its end.
    async fn renew(&mut self) -> End {
        self.shared.next_lifespan();
        // What the generation before reported is no failure of this one.
        let _ = self.shared.orders.take_failure();
        let generation = self.shared.lifespan().generation;
        self.report.generation_starts(generation);
        self.begun = false;
        self.span = span(&self.shared);
        let life = &mut self.life;
        let restart = || self.span.in_scope(|| life.restart());
        match catch_unwind(AssertUnwindSafe(restart)) {
            Ok(Ok(())) => self.live().await,
            Ok(Err(exit)) => End::Own(exit),
            Err(payload) => End::Own(Exit::from_panic(payload.as_ref())),
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
                    self.wind_down(stop, true).await;
                    return End::Stopped;
                }
                Pulse::Told(Order::Turn(turn @ (Turn::Restart | Turn::Suspend))) => {
                    let for_good = self.wind_down(self.policy.stop, false).await;
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
        self.begun = true;
        let (life, span) = (&mut self.life, &self.span);
        let polled = polling(&self.shared, || {
            catch_unwind(AssertUnwindSafe(|| {
                #[cfg(feature = "test-hooks")]
                self.shared.orders.panic_if_injected();
                span.in_scope(|| life.poll(cx))
            }))
        });
        match polled {
            Err(payload) => Poll::Ready(Pulse::Ended(Exit::from_panic(payload.as_ref()))),
            // A failure reported just before is why it ended.
            Ok(Poll::Ready(exit)) => {
                let failure = self.shared.orders.take_failure();
                Poll::Ready(Pulse::Ended(failure.unwrap_or(exit)))
            }
            Ok(Poll::Pending) if self.up_since.is_none() && self.life.is_up() => {
                Poll::Ready(Pulse::Up)
            }
            Ok(Poll::Pending) => Poll::Pending,
        }
    }

    /// Lets it end by its own hooks, for as long as `stop` gives. Whether it shall stop for good,
    /// or was told so meanwhile.
    async fn wind_down(&mut self, stop: Stop, mut for_good: bool) -> bool {
        let deadline = |stop: Stop| Instant::now() + stop.limit();
        let mut until = deadline(stop);
        // One that was never polled has nothing to wind down.
        let mut hooks = self.begun && stop != Stop::Now;
        if hooks {
            self.life.ask_to_stop(stop.limit());
        }
        while hooks {
            match timeout_at(until, poll_fn(|cx| self.pulse(cx))).await {
                Ok(Pulse::Told(Order::Stop(sooner))) => {
                    for_good = true;
                    hooks = sooner != Stop::Now;
                    until = until.min(deadline(sooner));
                }
                Ok(Pulse::Up | Pulse::Told(Order::Turn(_))) => {}
                Ok(Pulse::Ended(_) | Pulse::Told(Order::Fail(_))) => hooks = false,
                Err(_) => {
                    hooks = false;
                    if for_good {
                        let path = Arc::clone(&self.shared.path);
                        self.policy.records.cut_off(path);
                    }
                }
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
            match self.shared.orders.next().await {
                // A group that gives up on a child stops it along with all others.
                Order::Stop(_) if self.shared.orders.take_give_up() => {
                    return Next::Done(ChildState::GaveUp(exit));
                }
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
                order = self.shared.orders.next() => order,
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
}
