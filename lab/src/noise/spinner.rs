//! One spinning thread: a window, a rest, a window.
//!
//! Allocates and locks nothing between its first and its last window.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use punctual::clocks::MachineClock;
use punctual::quiet::{Spun, spin};
use punctual::session::{Refusal, ThreadSession};
use punctual_core::clock::Clock;
use punctual_core::releases::Releases;
use punctual_core::ring::Ring;
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::Span;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;
use punctual_os::usage::{self, Usage};

use super::windows::Windows;

/// What others see of a spinning thread.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Its thread.
    pub(super) tid: AtomicI32,
    /// Windows that it is over with; all there are once it has ended, by whichever way.
    done: AtomicU64,
    /// The sum of its gaps, ns, those that found the ring full included; and the longest one, when
    /// it began, ns from the first window on.
    pub(super) lost_ns: AtomicU64,
    pub(super) worst_ns: AtomicU64,
    pub(super) worst_at_ns: AtomicU64,
}

impl Seen {
    /// Windows that it is over with.
    pub(super) fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    /// The longest gap so far.
    pub(super) fn worst(&self) -> Option<Span> {
        let ns = self.worst_ns.load(Ordering::Relaxed);
        (ns > 0).then(|| Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX)))
    }

    /// Counts a gap: plain loads and stores, for there is one writer.
    fn count(&self, at_ns: u64, length: Span) {
        let length_ns = length.as_ns().max(0).unsigned_abs();
        let lost_ns = self.lost_ns.load(Ordering::Relaxed).saturating_add(length_ns);
        self.lost_ns.store(lost_ns, Ordering::Relaxed);
        if length_ns > self.worst_ns.load(Ordering::Relaxed) {
            self.worst_ns.store(length_ns, Ordering::Relaxed);
            self.worst_at_ns.store(at_ns, Ordering::Relaxed);
        }
    }
}

/// Everything that a spinning thread needs.
pub(super) struct Spinner<'a> {
    pub(super) cpu: u32,
    pub(super) policy: SchedPolicy,
    pub(super) threshold: Span,
    pub(super) windows: Windows,
    /// A gap is a sample: when it began, in ns from the first window on, and how long it was.
    pub(super) ring: Ring<'a>,
    pub(super) seen: &'a Seen,
    pub(super) stop: &'a AtomicBool,
    /// Receives one message when the thread is set up.
    pub(super) ready: Sender<()>,
    /// Gives the grid of windows once all threads are.
    pub(super) start: Receiver<Releases>,
}

/// What a spinning thread knows at its end.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) policy: SchedPolicy,
    pub(super) refused: Vec<Refusal>,
    /// All its windows.
    pub(super) spun: Span,
    pub(super) reads: u64,
    /// Windows that it began.
    pub(super) windows: u64,
    pub(super) usage: Usage,
    /// Its CPU time over wall time.
    pub(super) cpu_share: f64,
}

/// Marks all windows as done when the thread ends.
struct EndMark<'a>(&'a Seen);

impl Drop for EndMark<'_> {
    fn drop(&mut self) {
        self.0.done.store(u64::MAX, Ordering::Release);
    }
}

impl Spinner<'_> {
    /// Spins through all windows, or until it is to stop.
    pub(super) fn run(mut self, mut clock: MachineClock) -> Ended {
        let _mark = EndMark(self.seen);
        let session = ThreadSession::enter(Some(self.cpu), self.policy);
        self.seen.tid.store(process::tid(), Ordering::Release);
        // Whoever waits for it may be gone, and then there is no start.
        let _gone = self.ready.send(());
        let mut ended = Ended {
            policy: session.policy(),
            refused: session.refused().to_vec(),
            spun: Span::ZERO,
            reads: 0,
            windows: 0,
            usage: Usage::default(),
            cpu_share: 0.0,
        };
        let Ok(grid) = self.start.recv() else { return ended };
        let counted = || {
            let used = usage::of_thread().unwrap_or_default();
            (now_ns(ClockId::Monotonic), now_ns(ClockId::ThreadCpu), used)
        };
        let before = counted();
        for window in 0..self.windows.count {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            clock.discipline();
            clock.sleep_until(grid.release(window));
            clock.wake();
            let Spun { length, reads } = self.window(&mut clock, &grid, window);
            ended.spun = Span::from_ns(ended.spun.as_ns().saturating_add(length.as_ns()));
            ended.reads += reads;
            ended.windows += 1;
            self.seen.done.store(window + 1, Ordering::Release);
        }
        let after = counted();
        let wall_ns = after.0.saturating_sub(before.0).max(1);
        ended.cpu_share = after.1.saturating_sub(before.1) as f64 / wall_ns as f64;
        ended.usage = Usage {
            minor_faults: after.2.minor_faults.saturating_sub(before.2.minor_faults),
            major_faults: after.2.major_faults.saturating_sub(before.2.major_faults),
            voluntary_switches: 0,
            involuntary_switches: after
                .2
                .involuntary_switches
                .saturating_sub(before.2.involuntary_switches),
        };
        ended
    }

    fn window(&mut self, clock: &mut MachineClock, grid: &Releases, window: u64) -> Spun {
        let end = grid.release(window) + self.windows.width;
        let (epoch, ring, seen) = (grid.first(), &mut self.ring, self.seen);
        spin(clock, end, self.threshold, self.stop, |gap| {
            let cycle = u64::try_from((gap.at - epoch).as_ns()).unwrap_or(0);
            seen.count(cycle, gap.length);
            ring.push(Sample { cycle, lateness: gap.length, flags: Flags::NONE });
        })
    }
}
