//! The loop of many tasks: wait for the next release, run what is due in order of urgency.
//!
//! For whoever runs a table or a calendar, on the machine or in a simulated clock. Each task runs
//! to its end in this thread; a [`Source`] decides, this obeys. Never allocates, never fails, calls
//! nothing but the clock, the wait, the tasks and the observer that it is given.

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};

use super::Ended;
use super::source::{Rehearse, Source, Tasks};
use crate::clock::Clock;
use crate::dispatch::{Job, Overruns, State, Step};
use crate::page::Missed;
use crate::table::Table;
use crate::time::{Instant, Span};
use crate::wait::Wait;

pub use super::cycle::{Cycle, Flow};

/// The tasks behind the ranks.
pub trait Dispatch {
    /// Runs one cycle of the task of this rank.
    ///
    /// # Real-time: in loop
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow;

    /// Brings what the task of this rank needs into the caches: it runs next, and until then its
    /// CPU would only spin. Must be over within a microsecond or two.
    ///
    /// # Real-time: in loop
    fn warm(&mut self, _rank: usize) {}
}

impl<D: Dispatch + ?Sized> Dispatch for &mut D {
    #[inline]
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        (**self).run(rank, cycle)
    }

    #[inline]
    fn warm(&mut self, rank: usize) {
        (**self).warm(rank);
    }
}

/// Who hears of each cycle after it ran.
pub trait Observe {
    /// A cycle ran from `start` to `finish`.
    ///
    /// # Real-time: in loop
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns);

    /// Releases of the task of this rank that never ran before the loop ended, and that no later
    /// cycle tells of.
    ///
    /// # Real-time: in loop
    fn never_ran(&mut self, _rank: usize, _missed: Missed, _end: Instant) {}
}

impl<O: Observe + ?Sized> Observe for &mut O {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        (**self).ran(job, start, finish, overruns);
    }

    fn never_ran(&mut self, rank: usize, missed: Missed, end: Instant) {
        (**self).never_ran(rank, missed, end);
    }
}

impl Observe for () {
    fn ran(&mut self, _: &Job, _: Instant, _: Instant, _: Overruns) {}
}

/// The loop of a table: a clock, a way to wait, the tasks and who hears of them.
#[derive(Debug)]
pub struct Many<C, W, D, O> {
    /// Reads and sleeps.
    pub clock: C,
    /// Is there at the release.
    pub wait: W,
    /// Runs the tasks.
    pub tasks: D,
    /// Hears of each cycle.
    pub observe: O,
}

impl<C: Clock, W: Wait<C>, D: Dispatch, O: Observe> Many<C, W, D, O> {
    /// Runs `table` until all releases before `end` ran or were missed, also where there is more to
    /// do than time, until `stop` is set, or until a task says so.
    ///
    /// # Real-time: in loop, waits
    pub fn run(
        &mut self,
        table: &Table<'_>,
        state: &mut State<'_>,
        end: Instant,
        stop: &AtomicBool,
    ) -> Ended {
        self.obey(&mut Tasks { table, state }, end, stop)
    }

    /// Runs whatever `source` says, as [`Many::run`] does: a table, a calendar, or both.
    ///
    /// # Real-time: in loop, waits
    pub fn obey<S: Source>(&mut self, source: &mut S, end: Instant, stop: &AtomicBool) -> Ended {
        source.end(end);
        let mut now = self.clock.now();
        let ended = loop {
            now = match self.turn(source, now, stop, black_box(true)) {
                Turn::Idle(until) if until >= end => break Ended::Finished,
                Turn::Idle(until) => match self.wait(source, until, stop) {
                    Some(wake) => wake,
                    None => break Ended::Stopped,
                },
                Turn::Over(ended) => break ended,
            };
        };
        self.never_ran(source);
        ended
    }

    /// Tells the observer of what passed and never ran.
    #[cold]
    fn never_ran<S: Source>(&mut self, source: &mut S) {
        let now = self.clock.now();
        for rank in 0..source.ranks() {
            if let Some(missed) = source.never_ran(rank, now) {
                self.observe.never_ran(rank, missed, now);
            }
        }
    }

    /// Runs all that is due at `now`, and what becomes due meanwhile. Where it is not `real` no
    /// task runs and nobody is told. Never inlined: what is rehearsed is to be the very code that
    /// runs.
    #[inline(never)]
    fn turn<S: Source>(
        &mut self,
        source: &mut S,
        mut now: Instant,
        stop: &AtomicBool,
        real: bool,
    ) -> Turn {
        while !stop.load(Ordering::Relaxed) {
            let job = match source.step(now) {
                Step::Idle(until) => return Turn::Idle(until),
                Step::Run(job) => job,
            };
            if source.ends(&job, Overruns::default()) {
                source.refuse(&job);
                return Turn::Over(Ended::Overran(job.rank));
            }
            let start = now;
            let mut cycle = Cycle::of(&job, start, source);
            let flow = if real { self.tasks.run(job.rank, &mut cycle) } else { Flow::Continue };
            now = self.clock.now();
            let overruns = source.finish(&job, start, now, flow);
            if real {
                self.observe.ran(&job, start, now, overruns);
            }
            if source.ends(&job, overruns) {
                return Turn::Over(Ended::Overran(job.rank));
            }
            if flow == Flow::Stop {
                break;
            }
        }
        Turn::Over(Ended::Stopped)
    }

    /// Waits, and uses what time is in hand after the sleep to rehearse its turn and to warm what
    /// runs next: the caches are as cold then as the CPU was idle (NIST's first samples).
    #[inline]
    fn wait<S: Source>(
        &mut self,
        source: &S,
        until: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        let near = self.wait.near(&mut self.clock, until, stop)?;
        if until - near > WARM_MIN {
            for _ in 0..REHEARSALS {
                source.rehearse(until, &mut Rehearsed { many: self, stop });
            }
            if let Some(rank) = source.coming() {
                self.tasks.warm(rank);
            }
        }
        self.wait.until(&mut self.clock, until, stop)
    }
}

/// With less time in hand nothing is warmed, so that the release is met.
const WARM_MIN: Span = Span::from_us(5);

/// Turns that are rehearsed: after the first one the code is at hand, after a few more the branches
/// are foreseen as well. On a virtual CPU after 1 ms, medians of 5 or 6 runs of 2 000 cycles in
/// turns, a turn added 200–320 ns without any while the host was at work, 185 with one, 140 with
/// two, 125 with three, 110 with six; while the host was quiet 95 without any, 100 with four.
const REHEARSALS: u32 = 4;

/// What follows a turn.
enum Turn {
    /// Nothing is due before this instant.
    Idle(Instant),
    /// The loop has ended.
    Over(Ended),
}

/// A loop that rehearses its turn.
struct Rehearsed<'m, C, W, D, O> {
    many: &'m mut Many<C, W, D, O>,
    stop: &'m AtomicBool,
}

impl<C: Clock, W: Wait<C>, D: Dispatch, O: Observe> Rehearse for Rehearsed<'_, C, W, D, O> {
    #[inline]
    fn on<S: Source>(&mut self, source: &mut S, now: Instant) {
        self.many.turn(source, now, self.stop, black_box(false));
    }
}
