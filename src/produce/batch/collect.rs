//! Which messages travel together, and when they depart. No I/O.

use std::collections::VecDeque;

/// How much one request carries, and how many are under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) messages: usize,
    pub(super) bytes: usize,
    pub(super) requests: usize,
}

/// Messages of one kind that wait to depart, and the number of requests under way.
///
/// With nothing under way a message departs at once, so nobody waits at low load. While something
/// is, messages collect until a request is full or one comes back. Partly filled requests depart
/// only as others return, so whatever is added under load departs full.
#[derive(Debug)]
pub(super) struct Collect<T> {
    limits: Limits,
    /// By ascending key.
    waiting: VecDeque<Waiting<T>>,
    bytes: usize,
    under_way: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    key: u64,
    bytes: usize,
    item: T,
}

impl<T> Collect<T> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            waiting: VecDeque::new(),
            bytes: 0,
            under_way: 0,
        }
    }

    /// Adds an item under a key that is greater than all before: what departs now.
    pub(super) fn add(&mut self, key: u64, item: T, bytes: usize) -> Option<Vec<T>> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push_back(Waiting { key, bytes, item });
        let full = self.waiting.len() >= self.limits.messages || self.bytes > self.limits.bytes;
        let free = self.under_way < self.limits.requests;
        (self.under_way == 0 || (full && free)).then(|| self.depart())
    }

    /// A request came back: what departs in its place.
    pub(super) fn returned(&mut self) -> Option<Vec<T>> {
        self.under_way = self.under_way.saturating_sub(1);
        (!self.waiting.is_empty()).then(|| self.depart())
    }

    /// Takes out an item that has not departed yet.
    pub(super) fn withdraw(&mut self, key: u64) -> Option<T> {
        let index = self
            .waiting
            .binary_search_by_key(&key, |one| one.key)
            .ok()?;
        let one = self.waiting.remove(index)?;
        self.bytes = self.bytes.saturating_sub(one.bytes);
        Some(one.item)
    }

    /// Takes out all items that have not departed yet.
    pub(super) fn release(&mut self) -> Vec<T> {
        self.bytes = 0;
        self.waiting.drain(..).map(|one| one.item).collect()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.under_way == 0 && self.waiting.is_empty()
    }

    fn depart(&mut self) -> Vec<T> {
        self.under_way += 1;
        let mut bytes = 0_usize;
        let fits = |one: &&Waiting<T>| {
            bytes = bytes.saturating_add(one.bytes);
            bytes <= self.limits.bytes
        };
        let candidates = self.waiting.iter().take(self.limits.messages);
        // One that is too large for any company goes alone.
        let count = candidates.take_while(fits).count().max(1);
        let departing = self.waiting.drain(..count.min(self.waiting.len()));
        let mut items = Vec::with_capacity(count);
        for one in departing {
            self.bytes = self.bytes.saturating_sub(one.bytes);
            items.push(one.item);
        }
        items
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits {
        messages: 4,
        bytes: 100,
        requests: 3,
    };

    /// Adds items of one byte each, named by their keys.
    fn add(collect: &mut Collect<u64>, keys: std::ops::Range<u64>) -> Vec<Vec<u64>> {
        keys.filter_map(|key| collect.add(key, key, 1)).collect()
    }

    #[test]
    fn with_nothing_under_way_each_departs_at_once() {
        let mut collect = Collect::new(LIMITS);
        for key in 0..5 {
            assert_eq!(collect.add(key, key, 1), Some(vec![key]));
            assert_eq!(collect.returned(), None);
            assert!(collect.is_idle());
        }
    }

    #[test]
    fn what_collects_departs_when_it_is_full_or_a_request_returns() {
        let mut collect = Collect::new(LIMITS);
        assert_eq!(add(&mut collect, 0..1), [[0]]);
        assert!(add(&mut collect, 1..4).is_empty());
        assert_eq!(add(&mut collect, 4..5), [[1, 2, 3, 4]]);
        assert!(add(&mut collect, 5..7).is_empty());
        assert_eq!(collect.returned(), Some(vec![5, 6]));
    }

    #[test]
    fn never_more_requests_are_under_way_than_allowed() {
        let mut collect = Collect::new(LIMITS);
        let departed = add(&mut collect, 0..100);
        assert_eq!(departed.len(), 3);
        assert_eq!(collect.returned(), Some(vec![9, 10, 11, 12]));
        assert_eq!(add(&mut collect, 100..101), Vec::<Vec<u64>>::new());
    }

    #[test]
    fn the_bytes_of_a_request_are_bounded_and_a_giant_goes_alone() {
        let mut collect = Collect::new(LIMITS);
        assert!(collect.add(0, "first", 1).is_some());
        assert_eq!(collect.add(1, "a", 60), None);
        assert_eq!(collect.add(2, "b", 60), Some(vec!["a"]));
        assert_eq!(collect.add(3, "giant", 1000), Some(vec!["b"]));
        assert_eq!(collect.add(4, "c", 1), None, "three are under way");
        assert_eq!(collect.returned(), Some(vec!["giant"]));
        assert_eq!(collect.returned(), Some(vec!["c"]));
    }

    #[test]
    fn who_withdraws_leaves_nothing_behind() {
        let mut collect = Collect::new(LIMITS);
        assert!(collect.add(0, 0, 90).is_some());
        assert_eq!(collect.add(7, 7, 90), None);
        assert_eq!(collect.withdraw(7), Some(7));
        assert_eq!((collect.withdraw(7), collect.withdraw(0)), (None, None));
        assert_eq!(collect.add(8, 8, 20), None, "its bytes are gone, too");
        assert_eq!(collect.release(), [8]);
        assert_eq!(collect.returned(), None);
        assert!(collect.is_idle());
    }

    #[derive(Debug, Clone)]
    enum Step {
        Add(usize),
        Return,
        Withdraw(prop::sample::Index),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0..60_usize).prop_map(Step::Add),
            2 => Just(Step::Return),
            1 => any::<prop::sample::Index>().prop_map(Step::Withdraw),
        ];
        prop::collection::vec(step, 1..200)
    }

    proptest! {
        #[test]
        fn each_item_leaves_once_in_order_within_all_limits(steps in steps()) {
            let mut collect = Collect::new(LIMITS);
            let (mut key, mut under_way) = (0, 0);
            let (mut departed, mut withdrawn) = (Vec::new(), Vec::new());
            for step in steps {
                let batch = match step {
                    Step::Add(bytes) => {
                        key += 1;
                        collect.add(key, (key, bytes), bytes)
                    }
                    Step::Return if under_way > 0 => {
                        under_way -= 1;
                        collect.returned()
                    }
                    Step::Return => None,
                    Step::Withdraw(index) if key > 0 => {
                        let key = 1 + u64::try_from(index.index(usize::try_from(key).unwrap())).unwrap();
                        withdrawn.extend(collect.withdraw(key));
                        None
                    }
                    Step::Withdraw(_) => None,
                };
                if let Some(batch) = batch {
                    under_way += 1;
                    let bytes: usize = batch.iter().map(|(_, bytes)| bytes).sum();
                    prop_assert!((1..=LIMITS.messages).contains(&batch.len()));
                    prop_assert!(bytes <= LIMITS.bytes && under_way <= LIMITS.requests);
                    departed.extend(batch);
                }
            }
            while under_way > 0 {
                match collect.returned() {
                    Some(batch) => departed.extend(batch),
                    None => under_way -= 1,
                }
            }
            prop_assert!(collect.is_idle() && departed.is_sorted());
            let mut all: Vec<_> = departed.into_iter().chain(withdrawn).map(|(key, _)| key).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (1..=key).collect::<Vec<_>>());
        }
    }
}
