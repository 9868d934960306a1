//! From the events of each CPU to those of the machine, in the order of time.
//!
//! Pure. It holds back events that a slower CPU may still precede, up to a bound: beyond it the
//! oldest goes on, and events that then come too late are counted.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::event::TraceEvent;

/// Most CPUs; the kernel's own bound on x86-64.
pub const CPUS_MAX: usize = 8192;

/// Events of several CPUs, merged.
#[derive(Debug)]
pub struct Merge {
    queues: Vec<VecDeque<TraceEvent>>,
    /// The time of the first of each queue that is not empty, and its CPU.
    firsts: BinaryHeap<Reverse<(u64, u32)>>,
    held: usize,
    held_max: usize,
    /// The instant before which no event comes any more, ns.
    settled_ns: Option<u64>,
    last_ns: u64,
    out_of_order: u64,
    foreign: u64,
}

impl Merge {
    /// Holds at most this many events, one at least. An event takes about 150 bytes.
    #[must_use]
    pub fn new(held_max: usize) -> Self {
        Self {
            queues: Vec::new(),
            firsts: BinaryHeap::new(),
            held: 0,
            held_max: held_max.max(1),
            settled_ns: None,
            last_ns: 0,
            out_of_order: 0,
            foreign: 0,
        }
    }

    /// Takes an event in. Events of one CPU should come in their order; one that does not is put
    /// where it belongs among those that are held. Events of impossible CPUs are counted.
    pub fn push(&mut self, event: TraceEvent) {
        let cpu = event.cpu as usize;
        if cpu >= CPUS_MAX {
            self.foreign += 1;
            return;
        }
        if self.queues.len() <= cpu {
            self.queues.resize_with(cpu + 1, VecDeque::new);
        }
        let queue = &mut self.queues[cpu];
        let at_ns = event.at_ns;
        let is_behind = queue.back().is_none_or(|last| last.at_ns <= at_ns);
        let place =
            if is_behind { queue.len() } else { queue.partition_point(|held| held.at_ns <= at_ns) };
        queue.insert(place, event);
        if place == 0 {
            // An entry of this CPU that stands there already is found to be outdated once popped.
            self.firsts.push(Reverse((at_ns, u32::try_from(cpu).unwrap_or(0))));
        }
        self.held += 1;
    }

    /// From now on, nothing before this instant comes.
    pub fn settle(&mut self, until_ns: u64) {
        self.settled_ns = Some(self.settled_ns.unwrap_or(0).max(until_ns));
    }

    /// No more events come.
    pub fn finish(&mut self) {
        self.settled_ns = Some(u64::MAX);
    }

    /// Returns true where as many are held as may be: the next `pop` gives one whatever is settled.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.held >= self.held_max
    }

    /// The earliest event, if none can come before it, or if too many are held.
    pub fn pop(&mut self) -> Option<TraceEvent> {
        loop {
            let &Reverse((at_ns, cpu)) = self.firsts.peek()?;
            let is_settled = self.settled_ns.is_some_and(|until_ns| at_ns <= until_ns);
            if !is_settled && !self.is_full() {
                return None;
            }
            self.firsts.pop();
            let queue = &mut self.queues[cpu as usize];
            if queue.front().is_none_or(|first| first.at_ns != at_ns) {
                continue;
            }
            let event = queue.pop_front()?;
            if let Some(next) = queue.front() {
                self.firsts.push(Reverse((next.at_ns, cpu)));
            }
            self.held -= 1;
            if event.at_ns < self.last_ns {
                self.out_of_order += 1;
            }
            self.last_ns = self.last_ns.max(event.at_ns);
            return Some(event);
        }
    }

    /// Events that were given after a later one.
    #[must_use]
    pub const fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Events that were dropped, for their CPU is impossible.
    #[must_use]
    pub const fn foreign(&self) -> u64 {
        self.foreign
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{CPUS_MAX, Merge};
    use crate::event::{ContextFlags, TraceEvent, TraceKind};

    fn event(at_ns: u64, cpu: u32, tid: u32) -> TraceEvent {
        TraceEvent {
            at_ns,
            cpu,
            tid,
            context: ContextFlags::default(),
            kind: TraceKind::PageFaultEntry,
            chain: Box::default(),
        }
    }

    fn drained(merge: &mut Merge) -> Vec<(u64, u32, u32)> {
        std::iter::from_fn(|| merge.pop())
            .map(|event| (event.at_ns, event.cpu, event.tid))
            .collect()
    }

    #[test]
    fn only_what_is_settled_goes_on() {
        let mut merge = Merge::new(100);
        merge.push(event(10, 0, 1));
        merge.push(event(30, 0, 2));
        merge.push(event(20, 1, 3));
        assert_eq!(drained(&mut merge), []);
        merge.settle(20);
        merge.settle(5);
        assert_eq!(drained(&mut merge), [(10, 0, 1), (20, 1, 3)]);
        merge.finish();
        assert_eq!(drained(&mut merge), [(30, 0, 2)]);
        assert_eq!((merge.out_of_order(), merge.foreign()), (0, 0));
    }

    #[test]
    fn a_full_one_lets_go_and_counts() {
        let mut merge = Merge::new(2);
        merge.push(event(10, 0, 1));
        assert_eq!(merge.pop(), None);
        merge.push(event(20, 0, 2));
        assert!(merge.is_full());
        assert_eq!(merge.pop(), Some(event(10, 0, 1)));
        merge.push(event(5, 1, 3));
        assert_eq!(merge.pop(), Some(event(5, 1, 3)));
        assert_eq!(merge.out_of_order(), 1);
        merge.push(event(5, u32::try_from(CPUS_MAX).unwrap(), 3));
        assert_eq!(merge.foreign(), 1);
    }

    proptest! {
        #[test]
        fn merged_is_sorted(
            times in vec((0u64..50, 0u32..4), 0..200),
            settle in vec(0u64..60, 0..5),
        ) {
            let mut merge = Merge::new(1000);
            let mut given = Vec::new();
            for (tid, &(at_ns, cpu)) in (0..).zip(&times) {
                merge.push(event(at_ns, cpu, tid));
            }
            for until in settle {
                merge.settle(until);
                given.extend(drained(&mut merge));
                prop_assert!(given.iter().all(|&(at_ns, ..)| at_ns <= merge.settled_ns.unwrap()));
            }
            merge.finish();
            given.extend(drained(&mut merge));
            let mut sorted: Vec<_> =
                (0..).zip(&times).map(|(tid, &(at_ns, cpu))| (at_ns, cpu, tid)).collect();
            sorted.sort_unstable();
            prop_assert_eq!(given, sorted);
        }
    }
}
