//! The watchdog: ends a loop that does not yield, before it takes the machine away.
//!
//! For experiments and executives, on a thread of its own, on another CPU where there is one. Looks
//! at the loop's progress and at nothing else; demotes the loop's thread to SCHED_OTHER and asks it
//! to stop. On a machine with one CPU the kernel's real-time throttling has to let it run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::time::{Instant, Span};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::{self, Policy};

/// How often the watchdog looks.
const TICK: Span = Span::from_ms(50);

/// What a loop shows to its watchdog. The loop's owner arms it before a segment and disarms it
/// after.
#[derive(Debug, Default)]
pub struct Watched {
    /// The thread of the loop; 0 while nothing is watched.
    tid: AtomicU64,
    /// Set once the loop was ended by force.
    ended: AtomicBool,
}

impl Watched {
    /// Watches thread `tid` from now on.
    ///
    /// # Real-time: setup only
    pub fn arm(&self, tid: i32) {
        self.tid.store(u64::from(tid.unsigned_abs()), Ordering::Release);
    }

    /// Watches nothing.
    ///
    /// # Real-time: setup only
    pub fn disarm(&self) {
        self.tid.store(0, Ordering::Release);
    }

    /// Whether the loop was ended by force.
    ///
    /// # Real-time: reader side
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// A loop as its watchdog sees it.
pub struct Charge<'a, P> {
    /// Where the loop says that it is at work.
    pub watched: &'a Watched,
    /// A number that changes whenever the loop gets on; cycles pushed, say.
    pub progress: P,
    /// How long the loop may get nowhere.
    pub bound: Span,
}

/// How long each charge has got nowhere, counted by the watchdog's own ticks: time in which the
/// watchdog did not run either (suspend, a halted guest) is no fault of the loop.
#[derive(Clone, Copy, Debug, Default)]
struct Idle {
    progress: u64,
    span: Span,
}

impl Idle {
    /// One tick later; whether the bound is passed.
    fn tick(&mut self, armed: bool, progress: u64, elapsed: Span, bound: Span) -> bool {
        if !armed || progress != self.progress {
            *self = Self { progress, span: Span::ZERO };
            return false;
        }
        let fair = elapsed.min(Span::from_ns(2 * TICK.as_ns()));
        self.span = Span::from_ns(self.span.as_ns().saturating_add(fair.as_ns()));
        self.span > bound
    }
}

/// Watches `charges` until `done` is set. A charge that gets nowhere for longer than its bound is
/// demoted to SCHED_OTHER, marked as ended, and `stop` is set, for all.
///
/// # Real-time: reader side
pub fn watch<P: Fn() -> u64>(charges: &[Charge<'_, P>], stop: &AtomicBool, done: &AtomicBool) {
    let mut idle = vec![Idle::default(); charges.len()];
    let mut last = Instant::from_ns(now_ns(ClockId::Monotonic));
    while !done.load(Ordering::Acquire) {
        // A signal that cuts this short costs an extra look.
        let _interrupted = sleep_until_ns((last + TICK).as_ns());
        let now = Instant::from_ns(now_ns(ClockId::Monotonic));
        for (charge, idle) in charges.iter().zip(&mut idle) {
            let tid = charge.watched.tid.load(Ordering::Acquire);
            if idle.tick(tid != 0, (charge.progress)(), now - last, charge.bound) {
                // The thread may just have ended; then there is nothing left to demote.
                let _demoted = scheduler::set(i32::try_from(tid).unwrap_or(0), Policy::Other);
                charge.watched.ended.store(true, Ordering::Release);
                stop.store(true, Ordering::Relaxed);
            }
        }
        last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_armed_loop_that_gets_nowhere_passes_its_bound() {
        let bound = Span::from_ms(200);
        let mut idle = Idle::default();
        assert!((1..100).all(|n| !idle.tick(true, n, TICK, bound)), "it gets on");
        assert!((0..100).all(|_| !idle.tick(false, 99, TICK, bound)), "it is not armed");
        let mut idle = Idle::default();
        let ticks = (1..).find(|_| idle.tick(true, 7, TICK, bound)).expect("unbounded");
        assert_eq!(ticks, 6, "one to see the number, four to the bound, one beyond");
    }

    #[test]
    fn time_in_which_the_watchdog_slept_too_is_no_fault() {
        let mut idle = Idle::default();
        assert!(!idle.tick(true, 7, TICK, Span::from_ms(500)));
        assert!(!idle.tick(true, 7, Span::from_ms(3_600_000), Span::from_ms(500)));
    }

    #[test]
    fn a_loop_that_does_not_yield_is_demoted_and_stopped() {
        let (watched, stop, done) =
            (Watched::default(), AtomicBool::new(false), AtomicBool::new(false));
        let policy = std::thread::scope(|scope| {
            let charges = [Charge { watched: &watched, progress: || 0, bound: Span::from_ms(100) }];
            let (stop, done, watched) = (&stop, &done, &watched);
            scope.spawn(move || watch(&charges, stop, done));
            let stuck = scope.spawn(move || {
                // FIFO where permitted; as SCHED_OTHER the demotion changes nothing, the stop does.
                let _session = crate::session::Thread::enter(None, Policy::Fifo(1));
                watched.arm(punctual_os::process::tid());
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                scheduler::get(0)
            });
            let policy = stuck.join().expect("no panic");
            done.store(true, Ordering::Release);
            policy
        });
        assert_eq!(policy, Ok(Policy::Other));
        assert!(watched.ended());
    }
}
