//! The loop of one task that a device paces: a sound card, a bus, a blocking read. No grid, so
//! nothing is late and nothing missed; the distance of its starts is the only measure.
//!
//! For drivers whose device gives the pace (a loop on a grid of its own would lose a cycle whenever
//! the two drift past each other). Never allocates, never fails; what blocks is the caller's.

use core::sync::atomic::{AtomicBool, Ordering};

use super::Dispatch;
use crate::clock::Clock;
use crate::cycle::{Cycle, Ended, Flow, Job, Observe, Overruns};
use crate::time::{Instant, Period, Span};

/// The source of a paced loop's cycles: a device, or a function that blocks until it has one.
pub trait Pacer {
    /// Blocks until the next cycle; false when there will be none. Must return when the loop is to
    /// stop.
    ///
    /// # Real-time: in loop, waits
    fn wait(&mut self) -> bool;
}

impl<F: FnMut() -> bool> Pacer for F {
    fn wait(&mut self) -> bool {
        self()
    }
}

/// A loop that a device paces: rank 0 of its tasks is all that runs.
#[derive(Debug)]
pub struct Paced<C, P, D, O> {
    /// The clock that stamps cycles.
    pub clock: C,
    /// The wait for the device.
    pub pacer: P,
    /// The body of the task, of rank 0.
    pub tasks: D,
    /// The observer of each cycle.
    pub observe: O,
    /// The nominal period: cycles should be over by then.
    pub period: Period,
    /// The longest execution, ns; `u64::MAX` for none.
    pub budget_ns: u64,
}

impl<C: Clock, P: Pacer, D: Dispatch, O: Observe> Paced<C, P, D, O> {
    /// Runs until the pacer or the task ends it, or `stop` is set: [`Flow::Break`] ends this loop
    /// as its pacer does, [`Flow::Stop`] is for all.
    ///
    /// The release of a cycle is its start; its `next` a nominal period later. The `dt` of the
    /// first cycle is the nominal period, and 0 where that is the longest period there is: none.
    ///
    /// # Real-time: in loop, waits
    pub fn run(&mut self, stop: &AtomicBool) -> Ended {
        let nominal = self.period.as_span();
        // Of no period nothing is known.
        let first_dt = if self.period.as_ns() < Period::MAX_NS { nominal } else { Span::ZERO };
        let (mut n, mut last) = (0u64, None);
        while !stop.load(Ordering::Relaxed) {
            if !self.pacer.wait() {
                return Ended::Finished;
            }
            let start = self.clock.wake();
            let dt = last.map_or(first_dt, |last: Instant| start - last);
            let next = start + nominal;
            let (missed, passed, period) = (0, 0, self.period);
            let job =
                Job { rank: 0, cycle: n, part: 0, release: start, next, missed, passed, period };
            let flow = self.tasks.run(0, &mut Cycle::new(&job, start, dt));
            let finish = self.clock.now();
            let over_ns = u64::try_from((finish - start).as_ns()).unwrap_or(0);
            let overruns =
                Overruns { over_budget: over_ns > self.budget_ns, ..Overruns::default() };
            self.observe.ran(&job, start, finish, overruns);
            match flow {
                Flow::Continue => {}
                Flow::Break => return Ended::Finished,
                Flow::Stop => return Ended::Stopped,
            }
            (n, last) = (n.saturating_add(1), Some(start));
        }
        Ended::Stopped
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::AtomicU64;
    use std::vec::Vec;

    use super::*;
    use crate::stats::{Distances, Page, PageKind, View, WORDS};
    use crate::testing::Now;

    struct Work<'c>(&'c Cell<u64>, Vec<(u64, i64)>);

    impl Dispatch for Work<'_> {
        fn run(&mut self, _: usize, cycle: &mut Cycle<'_>) -> Flow {
            assert_eq!((cycle.lateness, cycle.missed), (Span::ZERO, 0));
            self.1.push((cycle.n, cycle.dt.as_ns()));
            self.0.set(self.0.get() + 30);
            Flow::Continue
        }
    }

    #[test]
    fn distances_are_kept_and_nothing_is_late() {
        let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let page = Page::new(&words, PageKind::Distance).expect("large enough");
        let now = Cell::new(1_000);
        // Twice as far as nominal, then close together: a grid would have missed one.
        let mut gaps = [50u64, 170, 40].into_iter();
        let pacer = || {
            gaps.next().is_some_and(|gap| {
                now.set(now.get() + gap);
                true
            })
        };
        let mut paced = Paced {
            clock: Now(&now),
            pacer,
            tasks: Work(&now, Vec::new()),
            observe: Distances::new(page),
            period: Period::from_ns(100).expect("positive"),
            budget_ns: 29,
        };
        assert_eq!(paced.run(&AtomicBool::new(false)), Ended::Finished);
        assert_eq!(paced.tasks.1, [(0, 100), (1, 200), (2, 70)]);
        let counts = View::open(&words).expect("a page").counts();
        assert_eq!((counts.ran, counts.missed, counts.over_budget), (2, 0, 2));
        assert_eq!((counts.min, counts.max), (Some(Span::from_ns(70)), Some(Span::from_ns(200))));
        // The cycles begin at 1 050, 1 250 and 1 320.
        assert_eq!(words[22].load(Ordering::Relaxed), 1_320, "the start of the last cycle");
        assert_eq!(paced.run(&AtomicBool::new(true)), Ended::Stopped);
    }
}
