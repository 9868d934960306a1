//! The threads of a noise experiment: one that spins on each CPU, and one that collects.
//!
//! For the experiment. Starts them, tells how far they are, and waits for their end.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use punctual::clocks::MachineClock;
use punctual::session::ThreadSession;
use punctual::spawn;
use punctual_core::releases::Releases;
use punctual_core::ring::{self, Drain, Ring, RingView};
use punctual_core::time::{Instant, Span};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::signal;

use super::at_once::Tally;
use super::collector::{Collected, Collector, LOOKS_MAX};
use super::outcome::WorstGap;
use super::spinner::{Ended, Seen, Spinner};
use super::windows::Windows;
use crate::experiment::{BackgroundLoads, ExperimentProgress, Loading, Lookout, keep_to};

/// Gaps that a ring holds: a window full of the shortest that a threshold can be.
const RING_GAPS: usize = 1 << 16;
/// How often progress is reported.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// What the threads go by.
pub(super) struct Threads<'a> {
    pub(super) cpus: &'a [u32],
    pub(super) policy: SchedPolicy,
    pub(super) threshold: Span,
    pub(super) windows: Windows,
    pub(super) housekeeping: &'a [u32],
    /// The period of the kernel's tick, where that is known.
    pub(super) tick_ns: Option<u64>,
    pub(super) clock: &'a MachineClock,
    pub(super) stop: &'a AtomicBool,
}

/// What was measured on one CPU.
pub(super) struct Measurement {
    pub(super) ended: Ended,
    pub(super) gaps: u64,
    pub(super) lost_ns: u64,
    pub(super) worst: Option<WorstGap>,
    pub(super) unlisted: u64,
}

/// What the threads left.
pub(super) struct SpunAll {
    pub(super) of: Vec<Measurement>,
    pub(super) collected: Collected,
    pub(super) lookout: Lookout,
}

/// A spinning thread that was started, and what gives it its grid.
struct Started<'scope> {
    thread: ScopedJoinHandle<'scope, Ended>,
    start: Sender<Releases>,
}

impl Threads<'_> {
    /// Runs them to their end, or until they are to stop.
    ///
    /// # Errors
    /// A thread could not be had.
    pub(super) fn run(&self, loading: &mut Loading<'_>) -> io::Result<SpunAll> {
        // Without it a thread that rests learns of a stop only at its next window.
        let _late_stop = signal::catch_interrupt();
        let ring = || (0..ring::words(RING_GAPS)).map(|_| AtomicU64::new(0)).collect();
        let storage: Vec<Vec<AtomicU64>> = self.cpus.iter().map(|_| ring()).collect();
        let seen: Vec<Seen> = self.cpus.iter().map(|_| Seen::default()).collect();
        let (rings, drains, views) = split_all(&storage);
        thread::scope(|scope| {
            let (to_us, ready) = channel();
            let started = self.start(scope, rings, &seen, &to_us)?;
            // A thread that ends before it is ready has panicked, which its join hands on.
            let _all = self.cpus.iter().try_for_each(|_| ready.recv());
            let grid = Windows::grid(Instant::from_ns(now_ns(ClockId::Monotonic)));
            let (collecting, done) = self.collect(scope, drains, &seen, grid)?;
            let mut spinners = Vec::new();
            for Started { thread, start } in started {
                let _gone = start.send(grid);
                spinners.push(thread);
            }
            let tids = seen.iter().map(|seen| seen.tid.load(Ordering::Acquire));
            let pinned: Vec<(i32, u32)> = tids.zip(self.cpus.iter().copied()).collect();
            let end = grid.first() + self.windows.length();
            let lookout = self.report_progress(&done, (&views, end), loading, (&pinned, &seen));
            let collected = collecting.join().unwrap_or_else(|why| resume_unwind(why));
            let ended = spinners.into_iter().map(ScopedJoinHandle::join);
            let ended = ended.map(|ended| ended.unwrap_or_else(|why| resume_unwind(why)));
            let of = ended.zip(views.iter().zip(&seen));
            let of = of.map(|(ended, (view, seen))| measurement(ended, view, seen, &grid));
            Ok(SpunAll { of: of.collect(), collected, lookout })
        })
    }

    /// Starts the spinning threads, which wait for their grid.
    fn start<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        rings: Vec<Ring<'env>>,
        seen: &'env [Seen],
        ready: &Sender<()>,
    ) -> io::Result<Vec<Started<'scope>>> {
        let spinner = |((&cpu, ring), seen): ((&u32, Ring<'env>), &'env Seen)| {
            let (start, take) = channel();
            let spinner = Spinner {
                cpu,
                policy: self.policy,
                threshold: self.threshold,
                windows: self.windows,
                ring,
                seen,
                stop: self.stop,
                ready: ready.clone(),
                start: take,
            };
            let clock = self.clock.clone();
            let thread = spawn::scoped(scope, "punctual-spin", move || spinner.run(clock))?;
            Ok(Started { thread, start })
        };
        self.cpus.iter().zip(rings).zip(seen).map(spinner).collect()
    }

    /// Starts the collector; the channel loses its sender when that is over.
    fn collect<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        drains: Vec<Drain<'env>>,
        seen: &'env [Seen],
        grid: Releases,
    ) -> io::Result<(ScopedJoinHandle<'scope, Collected>, Receiver<()>)> {
        let at_once = Tally::new(self.cpus.len(), self.tick_ns);
        let (windows, stop) = (self.windows, self.stop);
        let looks_max = LOOKS_MAX;
        let collector = Collector { drains, seen, windows, stop, at_once, looks_max };
        let (over, done) = channel();
        let thread = spawn::scoped(scope, "punctual-drain", move || {
            let _over: Sender<()> = over;
            keep_to(self.housekeeping);
            // Above the spinning threads, whose rests it works in.
            let _session = ThreadSession::enter(None, above(self.policy));
            collector.run(&grid)
        })?;
        Ok((thread, done))
    }

    /// Reports how far the threads are and looks at the machine, until `done` has no sender any
    /// more.
    fn report_progress(
        &self,
        done: &Receiver<()>,
        (views, end): (&[RingView<'_>], Instant),
        loading: &mut Loading<'_>,
        (pinned, seen): (&[(i32, u32)], &[Seen]),
    ) -> Lookout {
        let mut lookout = Lookout::new(pinned);
        // One that is over loses its CPU as it should.
        let all_spin = || seen.iter().all(|seen| seen.done() < self.windows.count);
        while done.recv_timeout(PROGRESS_EVERY) == Err(RecvTimeoutError::Timeout) {
            let left = end - Instant::from_ns(now_ns(ClockId::Monotonic));
            loading.progress(&ExperimentProgress {
                left: left.max(Span::ZERO),
                condition: 0,
                worst: seen.iter().filter_map(Seen::worst).max(),
                count: views.iter().map(RingView::count).sum(),
            });
            lookout.look_while(pinned, all_spin);
            if self.stop.load(Ordering::Relaxed) {
                for &(tid, _) in pinned {
                    // A thread that is not in a sleep, or gone, needs no waking.
                    let _awake = signal::interrupt(tid);
                }
            }
        }
        lookout
    }
}

type Ends<'a> = (Vec<Ring<'a>>, Vec<Drain<'a>>, Vec<RingView<'a>>);

/// The ends of all rings.
fn split_all(storage: &[Vec<AtomicU64>]) -> Ends<'_> {
    let (mut rings, mut drains, mut views) = (Vec::new(), Vec::new(), Vec::new());
    for words in storage {
        let (ring, drain, view) = ring::split(words).expect("a ring of 65536 gaps");
        rings.push(ring);
        drains.push(drain);
        views.push(view);
    }
    (rings, drains, views)
}

/// The policy of the thread above threads with this one.
fn above(policy: SchedPolicy) -> SchedPolicy {
    match policy {
        SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority) => {
            SchedPolicy::Fifo(priority.saturating_add(1).min(99))
        }
        other => other,
    }
}

/// The exact counts of one CPU.
fn measurement(ended: Ended, view: &RingView<'_>, seen: &Seen, grid: &Releases) -> Measurement {
    let worst = seen.worst().map(|length| WorstGap {
        at_ns: grid.first().as_ns() + seen.worst_at_ns.load(Ordering::Relaxed),
        length_ns: length.as_ns().unsigned_abs(),
    });
    Measurement {
        ended,
        gaps: view.count(),
        lost_ns: seen.lost_ns.load(Ordering::Relaxed),
        worst,
        unlisted: view.unrecorded(),
    }
}
