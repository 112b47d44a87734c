//! An application's own actors under supervision, without any broker.
//!
//! `cargo run --example custom_supervision`
//!
//! A worker crashes three times. Twice it is restarted, behind the same address and with fresh
//! state, and its sibling with it; the third time is more than its topology allows, so the whole
//! tree gives up, and the handle says why. Exits with 0 when all of that was seen.
#![allow(
    clippy::print_stdout,
    clippy::panic,
    reason = "an example talks to its user, and crashes on purpose"
)]

use std::{process::ExitCode, time::Duration};

use actix::{Actor, Context, Handler, Message};
use futures::StreamExt;
use rocketmq_actors::{
    Backoff, ChildRef, ChildSpec, Error, ErrorKind, Intensity, Restart, Strategy, Topology,
};

/// Counts jobs since its last start.
#[derive(Default)]
struct Worker {
    done: u32,
}

impl Actor for Worker {
    type Context = Context<Self>;
}

/// Work, or a reason to crash.
#[derive(Message)]
#[rtype(result = "u32")]
enum Job {
    Good,
    Poison,
}

impl Handler<Job> for Worker {
    type Result = u32;

    fn handle(&mut self, job: Job, _: &mut Self::Context) -> u32 {
        match job {
            Job::Good => self.done += 1,
            Job::Poison => panic!("poison"),
        }
        self.done
    }
}

#[actix::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<bool, Error> {
    let (worker, sibling) = (ChildRef::<Worker>::new("worker"), ChildRef::new("sibling"));
    let soon = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
    let twice = Intensity {
        restarts: 2,
        within: Duration::from_secs(60),
    };
    let app = Topology::named("app")
        .strategy(Strategy::RestForOne)
        .intensity(twice)
        .child(
            ChildSpec::actor(&worker, Worker::default)
                .restart(Restart::Transient)
                .backoff(soon),
        )
        .child(ChildSpec::actor(&sibling, Worker::default))
        .start()
        .await?;
    let mut events = app.events();
    actix::spawn(async move {
        while let Some(event) = events.next().await {
            println!("{}: {:?}", event.path, event.kind);
        }
    });

    let mut fresh = 0;
    for _ in 0..2 {
        let addr = worker.ready().await;
        addr.do_send(Job::Good);
        addr.do_send(Job::Poison);
        // Waits in the mailbox until the next generation handles it.
        fresh += u32::from(addr.send(Job::Good).await == Ok(1));
    }
    worker.ready().await.do_send(Job::Poison);
    let error = app.failed().await;
    let health = app.health().borrow().clone();
    println!("\nthe tree has failed: {error}\n{health:?}");
    Ok(fresh == 2 && error.kind() == ErrorKind::GaveUp && !health.live)
}
