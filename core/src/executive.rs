//! The loop of many tasks ([`Many`]): waits for the next release, runs what is due in order of
//! urgency; and the loop of one task that a device paces ([`Paced`]).
//!
//! For callers that run a table or a calendar, on the machine or in a simulated clock. Each task
//! runs to its end in this thread; a [`Schedule`] decides which is next. All decisions are made
//! before a loop starts, and all results are read after it; it never allocates, never fails and
//! calls only the clock, the wait, the tasks and the observer that it is given.

mod paced;
mod schedule;

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::clock::{self, Clock};
use crate::cycle::{CancelToken, Cycle, Decision, Ended, Flow, Observe, Overruns};
use crate::dispatch::TableState;
use crate::stop::StopRequest;
use crate::table::{OnOverrun, Table};
use crate::time::{Instant, Span};
use crate::wait::Wait;

pub use paced::{Paced, Pacer};
pub use schedule::Schedule;

/// With less time in hand nothing is warmed, so that the release is met.
const WARM_MIN: Span = Span::from_us(5);

/// Turns that are run as a warm-up: after the first one the code is at hand, after a few more the
/// branches are predicted as well. On a virtual CPU after 1 ms, medians of 5 or 6 runs of 2 000
/// cycles in turns, a turn added 200–320 ns without any while the host was at work, 185 with one,
/// 140 with two, 125 with three, 110 with six; while the host was quiet 95 without any, 100 with
/// four.
const WARM_UPS: u32 = 4;

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

/// The loop of many tasks: a clock, a wait, the tasks and the observer of their cycles.
#[derive(Debug)]
pub struct Many<C, W, D, O> {
    /// The clock that it reads and sleeps by.
    pub clock: C,
    /// The wait for the next release.
    pub wait: W,
    /// The bodies of the tasks, by rank.
    pub tasks: D,
    /// The observer of each cycle.
    pub observe: O,
}

impl<C: Clock, W: Wait, D: Dispatch, O: Observe> Many<C, W, D, O> {
    /// Runs `table` until all releases before `end` ran or were missed, also where there is more to
    /// do than time, until `stop` is set, or until a task ends it.
    ///
    /// # Real-time: in loop, waits
    pub fn run(
        &mut self,
        table: &Table<'_>,
        state: &mut TableState<'_>,
        end: Instant,
        stop: &impl StopRequest,
    ) -> Ended {
        self.obey(&mut Schedule::of_table(table, state), end, stop)
    }

    /// Runs `schedule` as [`Many::run`] runs a table.
    ///
    /// # Real-time: in loop, waits
    pub fn obey(
        &mut self,
        schedule: &mut Schedule<'_, '_>,
        end: Instant,
        stop: &impl StopRequest,
    ) -> Ended {
        schedule.end(end);
        let flag = stop.flag();
        let (ended, awaited) = match schedule.kind() {
            (false, _) => self.turns::<false, true>(schedule, end, flag),
            (true, false) => self.turns::<true, false>(schedule, end, flag),
            (true, true) => self.turns::<true, true>(schedule, end, flag),
        };
        // What is due after the stop is no release of the run.
        let before = awaited.map(|release| release - Span::from_ns(1));
        let over = stop.requested_on(&mut self.clock).or(before);
        let over = over.unwrap_or_else(|| self.clock.now());
        self.never_ran_by(schedule, over);
        ended
    }

    /// The loop of [`Many::obey`] for one kind of schedule ([`Schedule::kind`]): a table alone does
    /// not pay for calendars. Why it is over, and where a stop came while it waited, for what.
    #[inline]
    fn turns<const UNITS: bool, const TASKS: bool>(
        &mut self,
        schedule: &mut Schedule<'_, '_>,
        end: Instant,
        stop: &AtomicBool,
    ) -> (Ended, Option<Instant>) {
        let mut now = self.clock.now();
        loop {
            now = match self.turn::<UNITS, TASKS>(schedule, now, stop, black_box(true)) {
                After::Idle(until) if until >= end => return (Ended::Finished, None),
                After::Idle(until) => match self.wait::<UNITS, TASKS>(schedule, until, stop) {
                    Some(wake) if !stop.load(Ordering::Relaxed) => wake,
                    _ => return (Ended::Stopped, Some(until)),
                },
                After::Over(ended) => return (ended, None),
            };
        }
    }

    /// Gives the observer the releases that passed and never ran; [`Many::obey`] does so at its
    /// end. For callers that catch a task's panic, which leaves `obey` without it.
    ///
    /// # Real-time: in loop
    #[cold]
    pub fn never_ran(&mut self, schedule: &mut Schedule<'_, '_>) {
        let now = self.clock.now();
        self.never_ran_by(schedule, now);
    }

    /// Gives the observer the releases up to `over`, where the run was over, that never ran.
    fn never_ran_by(&mut self, schedule: &mut Schedule<'_, '_>, over: Instant) {
        for rank in 0..schedule.ranks() {
            if let Some(missed) = schedule.never_ran(rank, over) {
                self.observe.never_ran(rank, missed, over);
            }
        }
    }

    /// Runs all that is due at `now`, and what becomes due meanwhile. Where it is not `real` no
    /// task and no observer is called. Never inlined: a warm-up runs this very code.
    #[inline(never)]
    fn turn<const UNITS: bool, const TASKS: bool>(
        &mut self,
        schedule: &mut Schedule<'_, '_>,
        mut now: Instant,
        stop: &AtomicBool,
        real: bool,
    ) -> After {
        while !stop.load(Ordering::Relaxed) {
            let mut job = match schedule.step::<UNITS, TASKS>(now) {
                Decision::Idle(until) => return After::Idle(until),
                Decision::Run(job) => job,
            };
            let policy = schedule.policy::<UNITS, TASKS>(job.rank);
            let stops = policy == OnOverrun::Stop;
            if stops && schedule.overran(&job, Overruns::default()) {
                schedule.refuse(&{ job });
                return After::Over(Ended::Overran(job.rank));
            }
            let start = now;
            let terminates = policy == OnOverrun::Terminate;
            let mut dt = job.dt();
            if policy == OnOverrun::Delay {
                // Its phase moves with its finishes: since its last release, and where it starts
                // late, so that it has a period from here.
                dt += schedule.shift(job.rank);
                if start >= job.next {
                    job.next = start + job.period.as_span();
                }
            }
            let mut cycle = Cycle::new(&job, start, dt).terminating(terminates);
            let flow = if real { self.tasks.run(job.rank, &mut cycle) } else { Flow::Continue };
            let finish = self.clock.now();
            now = clock::end_of(&mut self.clock, start, finish);
            let overruns = schedule.finish::<UNITS, TASKS>(&job, start, now, flow);
            if real {
                // A copy, as no other place of the turn needs the job in memory.
                self.observe.ran(&{ job }, start, now, overruns);
            }
            if stops && schedule.overran(&job, overruns) {
                return After::Over(Ended::Overran(job.rank));
            }
            if flow == Flow::Stop {
                break;
            }
        }
        After::Over(Ended::Stopped)
    }

    /// Waits, and uses the time in hand after the sleep to run its turn as a warm-up, to warm what
    /// runs next (the caches are as cold then as the CPU was idle: NIST's first samples), and to
    /// work out what the coming instant releases.
    #[inline]
    fn wait<const UNITS: bool, const TASKS: bool>(
        &mut self,
        schedule: &mut Schedule<'_, '_>,
        until: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        let near = self.wait.near(&mut self.clock, until, stop)?;
        if until - near > WARM_MIN {
            for _ in 0..WARM_UPS {
                schedule.warm_up(until, |one_task| {
                    self.turn::<UNITS, TASKS>(one_task, until, stop, black_box(false));
                });
            }
            if let Some(rank) = schedule.coming() {
                self.tasks.warm(rank);
            }
            schedule.release_ahead::<UNITS, TASKS>(until);
        }
        self.wait.until(&mut self.clock, until, stop)
    }
}

/// The state of the loop after a turn.
enum After {
    /// Nothing is due before this instant.
    Idle(Instant),
    /// The loop has ended.
    Over(Ended),
}

/// Tasks that can be cancelled from another CPU: publishes which cycle runs and until when, and
/// hands its cancel token to the task, where the task's policy is to be terminated.
#[derive(Debug)]
pub struct Cancelling<'t, D> {
    /// The tasks.
    pub tasks: D,
    /// The token that the loop shares with the watchdog.
    pub token: &'t CancelToken,
}

impl<D: Dispatch> Dispatch for Cancelling<'_, D> {
    #[inline]
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        if !cycle.terminates() {
            return self.tasks.run(rank, cycle);
        }
        let cancel = self.token.begin(cycle.next);
        let flow = self.tasks.run(rank, &mut cycle.with_cancel(cancel));
        self.token.end();
        flow
    }

    #[inline]
    fn warm(&mut self, rank: usize) {
        self.tasks.warm(rank);
    }
}
