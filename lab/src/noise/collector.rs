//! Collects the gaps of all CPUs after each window, while the threads rest, and watches over them.
//!
//! A thread above the spinning ones: it runs in their rests, so that its own work is no gap. One
//! that does not come out of a window is demoted, and all are stopped.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual::monitor::Force;
use punctual::quiet::Gap;
use punctual_analysis::summary::Distribution;
use punctual_core::releases::Releases;
use punctual_core::ring::Drain;
use punctual_core::time::{Instant, Span};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::{self, SchedPolicy};

use super::at_once::Tally;
use super::spinner::Seen;
use super::windows::Windows;

/// Between two looks at threads that are not over with a window.
const LOOK_NS: u64 = 1_000_000;
/// Looks after which a thread is taken not to yield: two seconds, longer than throttling. They are
/// counted, so that time in which nothing ran (suspend, a halted guest) is no fault of a thread.
pub(super) const LOOKS_MAX: u32 = 2_000;

/// Collects.
pub(super) struct Collector<'a> {
    /// One for each CPU.
    pub(super) drains: Vec<Drain<'a>>,
    pub(super) seen: &'a [Seen],
    pub(super) windows: Windows,
    pub(super) stop: &'a AtomicBool,
    /// What is on all CPUs at once.
    pub(super) at_once: Tally,
    /// How often it looks at threads that are not over with a window, before it ends them.
    pub(super) looks_max: u32,
}

/// What was collected.
pub(super) struct Collected {
    /// How long gaps were, by CPU.
    pub(super) gaps: Vec<Distribution>,
    pub(super) at_once: Tally,
    /// How the threads were ended by force, if they were.
    pub(super) forced: Option<Force>,
}

impl Collector<'_> {
    /// Collects all windows of `grid`, or until it is to stop.
    pub(super) fn run(mut self, grid: &Releases) -> Collected {
        let mut gaps: Vec<Distribution> =
            self.drains.iter().map(|_| Distribution::default()).collect();
        let mut pending: Vec<Vec<Gap>> = self.drains.iter().map(|_| Vec::new()).collect();
        let mut forced = None;
        for window in 0..self.windows.count {
            let end = grid.release(window) + self.windows.width;
            // A signal that cuts this short costs some looks.
            let _interrupted = sleep_until_ns(end.as_ns() + LOOK_NS);
            forced = self.await_window(window);
            let over = forced.is_some() || self.stop.load(Ordering::Relaxed);
            if over && forced.is_none() {
                // They end now: what they had is taken in below.
                forced = self.await_window(self.windows.count);
            }
            self.take(grid.first(), &mut gaps, &mut pending);
            let until = if over { None } else { Some(grid.release(window + 1)) };
            self.count(&mut pending, until);
            if over {
                break;
            }
        }
        Collected { gaps, at_once: self.at_once, forced }
    }

    /// Waits until all threads are over with a window; how they were forced to be, if they were.
    fn await_window(&self, window: u64) -> Option<Force> {
        for _ in 0..self.looks_max {
            if self.seen.iter().all(|seen| seen.done() > window) {
                return None;
            }
            let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + LOOK_NS);
        }
        self.stop.store(true, Ordering::Relaxed);
        let stuck = self.seen.iter().filter(|seen| seen.done() <= window);
        let mut demoted = true;
        for tid in stuck.map(|seen| seen.tid.load(Ordering::Acquire)).filter(|&tid| tid > 0) {
            demoted &= scheduler::set(tid, SchedPolicy::Other).is_ok();
        }
        Some(if demoted { Force::Demoted } else { Force::NotDemoted })
    }

    /// Takes the gaps out of the rings.
    fn take(&mut self, epoch: Instant, gaps: &mut [Distribution], pending: &mut [Vec<Gap>]) {
        for ((drain, gaps), pending) in self.drains.iter_mut().zip(gaps).zip(pending) {
            while let Some(sample) = drain.pop() {
                gaps.push(sample.lateness.as_ns());
                let after = i64::try_from(sample.cycle).unwrap_or(i64::MAX);
                pending.push(Gap { at: epoch + Span::from_ns(after), length: sample.lateness });
            }
        }
    }

    /// Counts what is on all CPUs at once before `until`; later gaps stay.
    fn count(&mut self, pending: &mut [Vec<Gap>], until: Option<Instant>) {
        let earlier = |gaps: &mut Vec<Gap>| {
            let place = until.map(|until| gaps.partition_point(|gap| gap.at < until));
            let later = gaps.split_off(place.unwrap_or(gaps.len()));
            std::mem::replace(gaps, later)
        };
        let window: Vec<Vec<Gap>> = pending.iter_mut().map(earlier).collect();
        self.at_once.take(&window);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use punctual_os::process;

    use super::*;

    #[test]
    fn a_thread_that_does_not_come_out_of_its_window_is_ended() {
        let (seen, stop) = (Seen::default(), AtomicBool::new(false));
        let collected = std::thread::scope(|scope| {
            let (ready, began) = channel();
            let (seen, stop) = (&seen, &stop);
            scope.spawn(move || {
                seen.tid.store(process::tid(), Ordering::Release);
                ready.send(()).expect("it is waited for");
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            began.recv().expect("it runs");
            let windows = Windows::of(Span::from_ns(1), 0.5);
            let at_once = Tally::new(1, None);
            let seen = std::slice::from_ref(seen);
            let collector =
                Collector { drains: Vec::new(), seen, windows, stop, at_once, looks_max: 5 };
            collector.run(&Windows::grid(Instant::from_ns(now_ns(ClockId::Monotonic))))
        });
        assert_eq!(collected.forced, Some(Force::Demoted));
        assert!(stop.load(Ordering::Relaxed));
    }
}
