//! The ids messages get from their producer.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use data_encoding::HEXUPPER;

const VERSION: u8 = 1;
/// Digits.
const LENGTH: usize = 34;
/// Those that are the same in all ids of a generator.
const PREFIX: usize = 18;
/// 2021-01-01T00:00:00Z in Unix seconds.
const EPOCH: Duration = Duration::from_secs(1_609_459_200);

/// An id as text. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MessageId(Arc<str>);

impl MessageId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Makes ids of version 1, each greater than the one before:
///
/// | bytes | content, big endian |
/// |---|---|
/// | 0 | 1, the version |
/// | 1–6 | random |
/// | 7–8 | low half of the process id |
/// | 9–12 | seconds since 2021-01-01 |
/// | 13–16 | a counter that is never reset |
///
/// Where the reference puts the network card's address stand random bits: containers share
/// addresses and process ids.
#[derive(Debug)]
pub(crate) struct MessageIdGenerator {
    /// Version, random bits and process, as text.
    prefix: [u8; PREFIX],
    /// Seconds in the upper half, the counter in the lower. A counter that runs over adds to the
    /// seconds, and a clock that is set back does not count, so no value comes twice.
    last: AtomicU64,
}

impl MessageIdGenerator {
    pub(crate) fn new(random: [u8; 6], pid: u32) -> Self {
        let [a, b, c, d, e, f] = random;
        let [_, _, high, low] = pid.to_be_bytes();
        let mut prefix = [0; PREFIX];
        HEXUPPER.encode_mut(&[VERSION, a, b, c, d, e, f, high, low], &mut prefix);
        Self {
            prefix,
            last: AtomicU64::new(u64::MAX),
        }
    }

    /// The next id. `now` is the wall clock.
    pub(crate) fn next_id(&self, now: SystemTime) -> MessageId {
        let since_1970 = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let seconds = since_1970.saturating_sub(EPOCH).as_secs() & u64::from(u32::MAX);
        let after = |last: u64| {
            let next = last.wrapping_add(1);
            next.max((seconds << 32) | (next & u64::from(u32::MAX)))
        };
        let update = |last| Some(after(last));
        let last = self
            .last
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        self.encode(after(last.unwrap_or_else(|last| last)))
    }

    fn encode(&self, time_and_count: u64) -> MessageId {
        let mut text = [0; LENGTH];
        let (prefix, rest) = text.split_at_mut(self.prefix.len());
        prefix.copy_from_slice(&self.prefix);
        HEXUPPER.encode_mut(&time_and_count.to_be_bytes(), rest);
        // Hexadecimal digits are text.
        MessageId(str::from_utf8(&text).unwrap_or_default().into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::{collections::HashSet, thread};

    use proptest::prelude::*;

    use super::*;

    fn after_2021(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn the_layout_is_that_of_version_one() {
        let generator = MessageIdGenerator::new([0x56, 0xF7, 0xE7, 0x1C, 0x36, 0x1B], 0x1221BC);
        let first = generator.next_id(after_2021(0x024C_CDBE));
        assert_eq!(first.as_str(), "0156F7E71C361B21BC024CCDBE00000000");
        let second = generator.next_id(after_2021(0x024C_CDBF));
        assert_eq!(second.as_str(), "0156F7E71C361B21BC024CCDBF00000001");
    }

    #[test]
    fn a_clock_that_is_set_back_and_a_counter_that_runs_over_still_give_greater_ids() {
        let generator = MessageIdGenerator::new([0; 6], 1);
        generator.last.store((6 << 32) - 2, Ordering::Relaxed);
        let times = [5, 5, 3, 0, 7, 7].map(|seconds| generator.next_id(after_2021(seconds)));
        assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
        generator.next_id(SystemTime::UNIX_EPOCH);
        generator.next_id(after_2021(1 << 40));
    }

    #[test]
    fn threads_never_share_an_id() {
        let generator = MessageIdGenerator::new([1; 6], 1);
        let ids = thread::scope(|scope| {
            let make = || {
                (0..20_000)
                    .map(|_| generator.next_id(after_2021(9)))
                    .collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect::<HashSet<_>>()
        });
        assert_eq!(ids.len(), 80_000);
    }

    #[test]
    fn four_containers_alike_make_a_million_different_ids() {
        let containers = (0..4_u8).map(|random| MessageIdGenerator::new([random; 6], 1));
        let ids: HashSet<_> = containers
            .flat_map(|generator| (0..250_000).map(move |_| generator.next_id(after_2021(9))))
            .collect();
        assert_eq!(ids.len(), 1_000_000);
    }

    proptest! {
        #[test]
        fn ids_grow_whatever_the_clock_does(clock in prop::collection::vec(any::<u32>(), 2..50)) {
            let generator = MessageIdGenerator::new([9; 6], 9);
            let time = |seconds: &u32| generator.next_id(after_2021(u64::from(*seconds)));
            let ids: Vec<_> = clock.iter().map(time).collect();
            prop_assert!(ids.is_sorted_by(|one, next| one < next));
        }
    }
}
