//! Groups over several threads.

use std::time::Duration;

use actix::{Arbiter, System};

use super::{
    cast::Cast,
    probe::{block, handled, panics},
};
use crate::topology::{Exit, Place, Restart, Strategy, child_ref::ChildRef, group::Group};

const ALL: [&str; 3] = ["a", "b", "c"];
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_group_spans_arbiters() {
    System::new().block_on(async {
        let cast = Cast::default();
        let arbiters = [Arbiter::new(), Arbiter::new()];
        let places = [0, 1].map(|i: usize| Place::Arbiter(arbiters[i].handle()));
        let refs = ALL.map(ChildRef::new);
        let children = vec![
            cast.actor(&refs[0], places[0].clone()),
            cast.actor(&refs[1], places[1].clone()),
            cast.actor(&refs[2], Place::Here),
        ];
        let group = cast.start(Strategy::OneForAll, 5, children);
        group.up().await.unwrap();
        let addrs = refs.clone().map(|reference| reference.addr().unwrap());
        for addr in &addrs {
            assert_eq!(handled(addr).await, 1);
        }
        addrs[1].do_send(panics());
        for addr in &addrs[1..] {
            assert_eq!(handled(addr).await, 1);
        }
        assert_eq!(group.stop(10 * SECOND).await, Some(Exit::Shutdown));
        let diary = cast.read();
        assert_eq!(diary[9..].len(), 5, "{diary:?}");
        assert_eq!(diary[11..], ["c stopping", "b stopping", "a stopping"]);
        assert_eq!(cast.live.actors(), 0);
        for arbiter in arbiters {
            arbiter.stop();
            arbiter.join().unwrap();
        }
    });
}

#[test]
fn a_group_ends_when_the_arbiter_of_a_child_does() {
    System::new().block_on(async {
        let cast = Cast::default();
        let arbiter = Arbiter::new();
        let refs = ["a", "b"].map(ChildRef::new);
        let children = vec![
            cast.actor(&refs[0], Place::Here),
            cast.actor(&refs[1], Place::Arbiter(arbiter.handle())),
        ];
        let group = cast.start(Strategy::OneForOne, 5, children);
        group.up().await.unwrap();
        arbiter.stop();
        let failure = "app/b failed: the thread it ran on has ended";
        assert_eq!(group.exited().await, Exit::Failed(failure.into()));
        assert_eq!(cast.live.actors(), 0);
        arbiter.join().unwrap();
    });
}

#[test]
fn a_group_whose_child_does_not_go_down_ends_without_it() {
    System::new().block_on(async {
        let cast = Cast::default();
        let arbiter = Arbiter::new();
        let refs = ["a", "b"].map(ChildRef::new);
        let children = vec![
            cast.actor(&refs[0], Place::Here),
            cast.actor(&refs[1], Place::Arbiter(arbiter.handle())),
        ];
        let group = cast.start(Strategy::OneForAll, 5, children);
        group.up().await.unwrap();
        let release = block(&refs[1].addr().unwrap()).await;
        tokio::time::pause();
        refs[0].addr().unwrap().do_send(panics());
        let failure = "app/b does not stop";
        assert_eq!(group.exited().await, Exit::Failed(failure.into()));
        assert_eq!(cast.live.actors(), 1, "only the blocked one is left");
        tokio::time::resume();
        drop(release);
        arbiter.stop();
        arbiter.join().unwrap();
        assert_eq!(cast.live.actors(), 0);
    });
}

#[test]
fn the_name_of_a_child_that_has_ended_is_free_at_once() {
    System::new().block_on(async {
        let cast = Cast::default();
        let arbiter = Arbiter::new();
        let place = Place::Arbiter(arbiter.handle());
        let guard = ChildRef::new("guard");
        let children = vec![cast.actor(&guard, Place::Here)];
        let spec = super::cast::spec(Strategy::OneForOne, 0, children);
        let group = Group::root(&place, "app", cast.policy(), spec);
        group.up().await.unwrap();
        let main = System::current().arbiter().clone();
        let child = |name: String| {
            let here = Place::Arbiter(main.clone());
            cast.actor(&ChildRef::new(name), here)
                .restart(Restart::Temporary)
        };
        let names: Vec<_> = (0..10).map(|i| i.to_string()).collect();
        let adds = names.iter().map(|name| group.add(child(name.clone())));
        futures::future::try_join_all(adds).await.unwrap();
        // While its thread is blocked, the group sees neither an end nor a new child.
        let release = block(&guard.addr().unwrap()).await;
        for name in &names {
            group.remove(name).await.unwrap();
        }
        let adds =
            futures::future::try_join_all(names.iter().map(|name| group.add(child(name.clone()))));
        let (added, ()) = futures::future::join(adds, async { drop(release) }).await;
        added.unwrap();
        group.stop(10 * SECOND).await.unwrap();
        arbiter.stop();
        arbiter.join().unwrap();
    });
}
