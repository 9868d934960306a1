//! The watchdog's rule of progress: ends a loop that does not yield, before it takes the machine
//! away.
//!
//! A rule of the monitor. Looks at the loop's progress and at nothing else; demotes the loop's
//! thread to SCHED_OTHER and sets its stop flag; one that lacks its CPU may leave it. On a machine
//! with one CPU the kernel's real-time throttling has to let it run.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use punctual_core::stop::StopRequest;
use punctual_core::time::{Instant, Span};
use punctual_os::clock::thread_cpu_ns;
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::threads::{self, ThreadState};
use punctual_os::{affinity, process};

use crate::rt_thread::give_way;

/// The time between two looks at the progress of loops.
pub(super) const PROGRESS_TICK: Span = Span::from_ms(50);

/// The longest time that a step of a setup may take: none needs a second of a CPU.
const STEP: Span = Span::from_ms(4_000);

/// The state that a loop shows to its watchdog, in atomic numbers. The loop's owner arms it for
/// each step of its setup and before a segment, and disarms it after.
#[derive(Debug, Default)]
pub struct Watched {
    /// The thread of the loop; 0 while nothing is watched.
    tid: AtomicU64,
    /// The way in which the loop was ended by force: 0 for none, or a [`Force`] as a number.
    ended: AtomicU8,
    /// Waits that returned.
    beats: AtomicU64,
    /// The longest time without progress, ns; 0 for the bound of its [`WatchedProgress`].
    allowed_ns: AtomicU64,
}

/// The way in which the watchdog ended a loop by force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Force {
    /// It had the CPU and did not yield: it was made SCHED_OTHER and its stop flag set.
    Demoted,
    /// As before, but the kernel refused to demote it: its stop flag was set.
    NotDemoted,
    /// It did not get the CPU, though it wanted it: all watched loops were made SCHED_OTHER, may
    /// run where the watchdog does, and their stop flag set.
    Starved,
    /// It waited for something else than its release or the CPU: it was made SCHED_OTHER, and the
    /// stop flag of all set.
    Blocked,
    /// It made no progress, and nothing shows why: all watched loops were made SCHED_OTHER and
    /// their stop flag set.
    Stuck,
}

impl Force {
    /// Its name in results.
    ///
    /// # Real-time: in loop
    pub const fn name(self) -> &'static str {
        match self {
            Self::Demoted => "demoted",
            Self::NotDemoted => "not_demoted",
            Self::Starved => "starved",
            Self::Blocked => "blocked",
            Self::Stuck => "stuck",
        }
    }
}

impl Watched {
    /// Watches thread `tid` from now on.
    ///
    /// # Real-time: setup only
    #[inline]
    pub fn arm(&self, tid: i32) {
        self.tid.store(u64::from(tid.unsigned_abs()), Ordering::Release);
    }

    /// Ends the watch: the thread may do as it likes.
    ///
    /// # Real-time: setup only
    #[inline]
    pub fn disarm(&self) {
        self.tid.store(0, Ordering::Release);
    }

    /// Runs a step of the setup of the calling thread, watched: where it makes no progress for 4 s,
    /// whatever the bound of its loop, that is stopped as a loop is, and the step goes on as
    /// SCHED_OTHER, to end.
    ///
    /// # Real-time: setup only
    pub fn in_setup<R>(&self, step: impl FnOnce() -> R) -> R {
        self.beat();
        let allowed_ns = self.allowed_ns.swap(STEP.as_ns().unsigned_abs(), Ordering::Release);
        self.arm(process::tid());
        let result = step();
        self.disarm();
        // Its time is none of what comes next.
        self.beat();
        self.allowed_ns.store(allowed_ns, Ordering::Release);
        if self.ended().is_some() {
            // The step may have been on its way to a real-time policy.
            let _demoted = scheduler::set(0, SchedPolicy::Other);
        }
        result
    }

    /// From now on the loop may get nowhere for so long, whatever its [`WatchedProgress`] says:
    /// what it runs has changed. `None` takes that back.
    ///
    /// # Real-time: in loop
    pub fn allow(&self, bound: Option<Span>) {
        let ns = bound.map_or(0, |span| span.as_ns().max(1).unsigned_abs());
        self.allowed_ns.store(ns, Ordering::Release);
    }

    /// The longest time without progress: that of [`Watched::allow`], else `bound`.
    fn bound(&self, bound: Span) -> Span {
        match self.allowed_ns.load(Ordering::Acquire) {
            0 => bound,
            ns => Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX)),
        }
    }

    /// One more wait that returned.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn beat(&self) {
        // One writer, so that no locked instruction is needed.
        self.beats.store(self.beats.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The counter of waits that returned, which the loop alone writes.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn word(&self) -> &AtomicU64 {
        &self.beats
    }

    /// Waits that returned, as progress to look at.
    ///
    /// # Real-time: reader side
    #[inline]
    pub fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    /// The way in which the loop was ended by force; `None` where it was not.
    ///
    /// # Real-time: reader side
    pub fn ended(&self) -> Option<Force> {
        match self.ended.load(Ordering::Acquire) {
            1 => Some(Force::Demoted),
            2 => Some(Force::NotDemoted),
            3 => Some(Force::Starved),
            4 => Some(Force::Blocked),
            5 => Some(Force::Stuck),
            _ => None,
        }
    }

    /// Notes that it was ended by force; the first note stays.
    fn end(&self, force: Force) {
        let number = match force {
            Force::Demoted => 1,
            Force::NotDemoted => 2,
            Force::Starved => 3,
            Force::Blocked => 4,
            Force::Stuck => 5,
        };
        let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
        let _first = self.ended.compare_exchange(0, number, release, relaxed);
    }

    /// The watched thread, if any.
    ///
    /// # Real-time: setup only
    pub fn thread(&self) -> Option<i32> {
        i32::try_from(self.tid.load(Ordering::Acquire)).ok().filter(|&tid| tid != 0)
    }
}

/// A loop as its watchdog sees it.
pub struct WatchedProgress<'a, P> {
    /// The state that the loop shows.
    pub watched: &'a Watched,
    /// A number that changes whenever the loop gets on; cycles pushed, say.
    pub progress: P,
    /// The longest time without progress.
    pub bound: Span,
}

/// The time in which a loop got nowhere, counted by the watchdog's own ticks: time in which the
/// watchdog did not run either (suspend, a halted guest) is no fault of the loop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idle {
    progress: u64,
    span: Span,
    /// CPU time of the thread when it last got on, in ns.
    cpu_ns: u64,
    /// The state of the thread at all looks in the second half of its bound.
    seen: Seen,
}

/// The states of a thread at several looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Seen {
    #[default]
    Nothing,
    /// This state at each look.
    Always(ThreadState),
    /// Several states, or one that could not be read.
    Unclear,
}

impl Seen {
    /// Another look.
    fn add(&mut self, state: Option<ThreadState>) {
        *self = match (*self, state) {
            (Self::Nothing, Some(state)) => Self::Always(state),
            (Self::Always(before), Some(state)) if before == state => Self::Always(state),
            _ => Self::Unclear,
        };
    }

    /// The reason for which a thread that used little of the CPU made no progress.
    fn why(self) -> Force {
        match self {
            Self::Always(ThreadState::Runnable) => Force::Starved,
            Self::Always(ThreadState::Waiting) => Force::Blocked,
            _ => Force::Stuck,
        }
    }
}

impl Idle {
    /// Counts one tick more; returns true where the bound is passed.
    fn tick(&mut self, cpu_ns: Option<u64>, progress: u64, elapsed: Span, bound: Span) -> bool {
        if cpu_ns.is_none() || progress != self.progress {
            *self = Self { progress, cpu_ns: cpu_ns.unwrap_or(0), ..Self::default() };
            return false;
        }
        let fair = elapsed.min(Span::from_ns(2 * PROGRESS_TICK.as_ns()));
        self.span = Span::from_ns(self.span.as_ns().saturating_add(fair.as_ns()));
        self.span > bound
    }

    /// Returns true where half of the bound has passed: from then on the state of the thread is
    /// read.
    fn is_suspect(&self, bound: Span) -> bool {
        self.span.as_ns() > bound.as_ns() / 2
    }
}

/// One look at `loops`, at `now`, `elapsed` after the last one. When one gets nowhere for longer
/// than its bound, it is marked as ended and `stop` is set, for all. If it used the CPU for half of
/// that time, or waited for something else at each look, it is demoted to SCHED_OTHER; if not,
/// another one may have kept it from running, and all are; where it wanted its CPU at each look,
/// they may also leave it.
pub(super) fn look<P: Fn() -> u64>(
    loops: &[WatchedProgress<'_, P>],
    idle: &mut [Idle],
    (now, elapsed): (Instant, Span),
    stop: &impl StopRequest,
) {
    for (progress, idle) in loops.iter().zip(idle) {
        let tid = progress.watched.thread();
        let cpu_ns = tid.and_then(thread_cpu_ns);
        let bound = progress.watched.bound(progress.bound);
        let is_over = idle.tick(cpu_ns, (progress.progress)(), elapsed, bound);
        if let Some(tid) = tid.filter(|_| idle.is_suspect(bound)) {
            idle.seen.add(threads::state(std::process::id().cast_signed(), tid));
        }
        if is_over {
            let used_ns = cpu_ns.unwrap_or(0).saturating_sub(idle.cpu_ns);
            let demote = |tid| scheduler::demote(tid).is_ok();
            let force = if used_ns >= idle.span.as_ns().unsigned_abs() / 2 {
                if tid.is_some_and(demote) { Force::Demoted } else { Force::NotDemoted }
            } else {
                let why = idle.seen.why();
                let is_alone = |watched: &Watched| std::ptr::eq(watched, progress.watched);
                let watched = loops.iter().map(|progress| progress.watched);
                let demoted = watched.filter(|watched| why != Force::Blocked || is_alone(watched));
                // Its CPU may be another's for good: where this one runs it can end.
                let cpus = (why == Force::Starved).then(|| affinity::get(0).ok()).flatten();
                for tid in demoted.filter_map(Watched::thread) {
                    give_way(tid, cpus.as_ref());
                }
                why
            };
            progress.watched.end(force);
            stop.request(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use punctual_testkit::skip;

    use super::super::watch;
    use super::*;

    #[test]
    fn only_an_armed_loop_that_gets_nowhere_passes_its_bound() {
        let bound = Span::from_ms(200);
        let mut idle = Idle::default();
        assert!((1..100).all(|n| !idle.tick(Some(0), n, PROGRESS_TICK, bound)), "it gets on");
        assert!((0..100).all(|_| !idle.tick(None, 99, PROGRESS_TICK, bound)), "it is not armed");
        let mut idle = Idle::default();
        let ticks = (1..).find(|_| idle.tick(Some(0), 7, PROGRESS_TICK, bound)).expect("unbounded");
        assert_eq!(ticks, 6, "one to see the number, four to the bound, one beyond");
    }

    #[test]
    fn why_it_made_no_progress_is_said_where_each_look_saw_the_same() {
        use ThreadState::{Runnable, Stopped, Waiting};
        let why = |looks: &[Option<ThreadState>]| {
            let mut seen = Seen::default();
            looks.iter().for_each(|look| seen.add(*look));
            seen.why()
        };
        assert_eq!(why(&[Some(Runnable), Some(Runnable)]), Force::Starved);
        assert_eq!(why(&[Some(Waiting)]), Force::Blocked);
        assert_eq!(why(&[]), Force::Stuck, "nobody looked");
        assert_eq!(why(&[Some(Waiting), None]), Force::Stuck, "gone, or no /proc");
        assert_eq!(why(&[Some(Waiting), Some(Runnable), Some(Waiting)]), Force::Stuck);
        assert_eq!(why(&[Some(Stopped), Some(Stopped)]), Force::Stuck);
    }

    #[test]
    fn the_first_end_by_force_stays() {
        let watched = Watched::default();
        for force in [Force::Blocked, Force::Demoted, Force::Starved] {
            watched.end(force);
            assert_eq!(watched.ended(), Some(Force::Blocked));
        }
        for force in [Force::Demoted, Force::NotDemoted, Force::Starved, Force::Stuck] {
            let watched = Watched::default();
            watched.end(force);
            assert_eq!(watched.ended(), Some(force));
        }
    }

    #[test]
    fn what_is_allowed_may_change_while_it_is_watched() {
        let (watched, bound) = (Watched::default(), Span::from_ms(5));
        assert_eq!(watched.bound(bound), bound);
        watched.allow(Some(Span::from_ms(70)));
        assert_eq!(watched.bound(bound), Span::from_ms(70));
        watched.allow(None);
        assert_eq!(watched.bound(bound), bound);
    }

    #[test]
    fn a_step_of_a_setup_has_its_own_bound_and_none_of_its_time_is_the_loops() {
        let (watched, stop) = (Watched::default(), AtomicBool::new(false));
        let bound = Span::from_ms(100);
        let mut idle = [Idle::default()];
        let mut look_for = |span: Span| {
            for _ in 0..span.as_ns() / PROGRESS_TICK.as_ns() {
                let progress = || watched.beats();
                let loops = [WatchedProgress { watched: &watched, progress, bound }];
                look(&loops, &mut idle, (Instant::from_ns(0), PROGRESS_TICK), &stop);
            }
        };
        watched.allow(Some(Span::from_ms(300)));
        watched.in_setup(|| look_for(Span::from_ms(3_000)));
        // The loop begins at once, with what it was allowed before.
        watched.arm(process::tid());
        assert_eq!(watched.bound(bound), Span::from_ms(300));
        look_for(Span::from_ms(250));
        assert_eq!(watched.ended(), None);
        watched.disarm();
        watched.in_setup(|| look_for(Span::from_ms(5_000)));
        assert!(watched.ended().is_some() && stop.load(Ordering::Relaxed));
        assert_eq!(scheduler::get(0), Ok(SchedPolicy::Other));
    }

    #[test]
    fn time_in_which_the_watchdog_slept_too_is_no_fault() {
        let mut idle = Idle::default();
        assert!(!idle.tick(Some(0), 7, PROGRESS_TICK, Span::from_ms(500)));
        assert!(!idle.tick(Some(0), 7, Span::from_ms(3_600_000), Span::from_ms(500)));
    }

    #[test]
    fn a_loop_that_does_not_yield_is_demoted_and_stopped() {
        if !skip::need_native("real timing") {
            return;
        }
        let stuck_once = || {
            let (watched, stop, done) =
                (Watched::default(), AtomicBool::new(false), AtomicBool::new(false));
            let policy = std::thread::scope(|scope| {
                let bound = Span::from_ms(100);
                let loops = [WatchedProgress { watched: &watched, progress: || 0, bound }];
                let (stop, done, watched) = (&stop, &done, &watched);
                scope.spawn(move || watch(&loops, stop, done));
                let stuck = scope.spawn(move || {
                    // FIFO where permitted; as SCHED_OTHER the demotion changes nothing, the stop
                    // does.
                    let _session = crate::session::ThreadSession::enter(None, SchedPolicy::Fifo(1));
                    watched.arm(process::tid());
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                    scheduler::get(0)
                });
                let policy = stuck.join().expect("no panic");
                done.store(true, Ordering::Release);
                policy
            });
            assert_eq!(policy, Ok(SchedPolicy::Other));
            watched.ended()
        };
        // On a busy machine it may truly not have had the CPU for so long.
        let mut ended = (0..10).map(|_| stuck_once());
        let demoted = ended.find(|force| *force != Some(Force::Starved)).flatten();
        assert_eq!(demoted, Some(Force::Demoted));
    }

    #[test]
    fn a_loop_that_blocks_is_not_one_that_did_not_get_the_cpu() {
        let (watched, stop) = (Watched::default(), AtomicBool::new(false));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let loops =
                [WatchedProgress { watched: &watched, progress: || 0, bound: Span::from_ms(100) }];
            let (stop, done, watched) = (&stop, &done, &watched);
            scope.spawn(move || watch(&loops, stop, done));
            let (wake, asleep) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                watched.arm(process::tid());
                let _woken = asleep.recv();
            });
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            drop(wake);
            done.store(true, Ordering::Release);
        });
        assert_eq!(watched.ended(), Some(Force::Blocked));
    }
}
