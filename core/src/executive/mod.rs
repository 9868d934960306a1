//! The periodic loop itself: wait for a release, record the wake, find the next release. One grid
//! here; many tasks in [`many`].
//!
//! For whoever runs a loop, on the machine or in a simulated clock. Everything it needs is decided
//! before it starts and everything it learns is read after; it never allocates, never fails and
//! calls nothing but the clock, the wait and the record that it is given.

pub mod cancel;
pub mod changing;
mod cycle;
pub mod many;
pub mod paced;
pub mod source;

use core::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Clock;
use crate::releases::Releases;
use crate::sample::{Flags, Sample};
use crate::time::Instant;
use crate::wait::Wait;

/// Where a loop leaves what happened.
pub trait Record {
    /// Keeps one cycle.
    ///
    /// # Real-time: in loop
    fn push(&mut self, sample: Sample);

    /// Counts `releases` that never ran.
    ///
    /// # Real-time: in loop
    fn miss(&mut self, releases: u64);
}

/// One uninterrupted stretch of a loop on its grid.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The releases.
    pub grid: Releases,
    /// The first cycle to run.
    pub first: u64,
    /// Releases at or after this instant do not run.
    pub end: Instant,
    /// How many cycles at the start are marked as cold.
    pub cold: u32,
}

/// Why a segment is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Ended {
    /// It came to its end.
    Finished,
    /// It was told to stop.
    Stopped,
    /// The task of this rank overran, and its policy is to stop everything.
    Overran(usize),
}

/// A loop: a clock, a way to wait and a place for samples.
#[derive(Debug)]
pub struct Executive<C, W, R> {
    /// Reads and sleeps.
    pub clock: C,
    /// Is there at the release.
    pub wait: W,
    /// Keeps what happened.
    pub record: R,
}

impl<C: Clock, W: Wait<C>, R: Record> Executive<C, W, R> {
    /// Runs `segment` to its end, or until `stop` is set.
    ///
    /// A wake after the following release makes that one missed: a missed release never runs later,
    /// and the loop keeps its phase.
    ///
    /// # Real-time: in loop, waits
    pub fn run(&mut self, segment: &Segment, stop: &AtomicBool) -> Ended {
        let Segment { grid, end, .. } = *segment;
        let last = grid.at_or_after(end);
        let mut cold = segment.cold;
        let mut flags = Flags::FIRST;
        let mut cycle = segment.first;
        while cycle < last {
            let release = grid.release(cycle);
            let Some(wake) = self.wait.until(&mut self.clock, release, stop) else {
                // Those that passed while it was waiting, or away, are missed all the same.
                let passed = grid.at_or_after(self.clock.now()).min(last).saturating_sub(cycle);
                if passed > 0 {
                    self.record.miss(passed);
                }
                return Ended::Stopped;
            };
            if cold > 0 {
                cold -= 1;
                flags = flags.with(Flags::COLD);
            }
            self.record.push(Sample { cycle, lateness: wake - release, flags });
            let next = grid.next(cycle, wake);
            let missed = next.min(last) - cycle - 1;
            if missed > 0 {
                self.record.miss(missed);
            }
            flags = Flags::NONE;
            cycle = next;
        }
        if stop.load(Ordering::Relaxed) { Ended::Stopped } else { Ended::Finished }
    }
}
