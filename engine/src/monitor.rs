//! The monitor: one thread beside the loops, which keeps them from taking the machine away.
//!
//! For loops, executives, supervisors and experiments. It looks at what the loops show it in atomic
//! numbers and acts by three rules: a loop that makes no progress is stopped and demoted
//! ([`WatchedProgress`]), a task elsewhere that runs on is demoted alone ([`RunawayRule`]), a task
//! that is to be terminated has its cancel token set. Never waits for a loop, never ends a process.

mod progress;
mod runaway;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::cycle::CancelToken;
use punctual_core::stop::StopRequest;
use punctual_core::time::{Instant, Span};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::sleep_until_ns;
use punctual_os::scheduler::SchedPolicy;

use crate::clocks::monotonic_now;
use crate::session::ThreadSession;
use crate::spawn::{self, OwnThread};

pub use progress::{Force, Watched, WatchedProgress};
pub use runaway::{Act, Demotable, RunawayRule, TICK, hang_bound};

/// The monitor's policy: above every loop.
pub const ABOVE: SchedPolicy = SchedPolicy::Fifo(99);

/// One thread's watch over loops and tasks; [`Monitor::run`] is the thread's body.
pub struct Monitor<'m, P> {
    /// Loops that must make progress.
    pub loops: &'m [WatchedProgress<'m, P>],
    /// Tasks in threads or processes of their own.
    pub rules: &'m mut [RunawayRule<'m>],
    /// The tokens of executives with tasks that are to be terminated.
    pub tokens: &'m [&'m CancelToken],
    /// Set while a task is there that is to be terminated: else the tokens are not looked at.
    pub cancels: &'m AtomicBool,
}

impl<P: Fn() -> u64> Monitor<'_, P> {
    /// Watches until `done` is set; a loop without progress sets `stop`. `now` reads the clock that
    /// the releases are on; `also` is called at each look.
    ///
    /// # Real-time: reader side
    pub fn run(
        self,
        mut now: impl FnMut() -> Instant,
        stop: &impl StopRequest,
        done: &AtomicBool,
        mut also: impl FnMut(),
    ) {
        let Self { loops, rules, tokens, cancels } = self;
        let mut idle = vec![progress::Idle::default(); loops.len()];
        let mut last = monotonic_now();
        let mut looked = last;
        while !done.load(Ordering::Acquire) {
            // Without tasks to cancel or to demote a look at the loops' progress is all there is.
            let seldom = rules.is_empty() && !cancels.load(Ordering::Relaxed);
            let tick = if seldom { progress::PROGRESS_TICK } else { TICK };
            // A signal that cuts this short costs an extra look.
            let _interrupted = sleep_until_ns((last + tick).as_ns());
            let monotonic = monotonic_now();
            if monotonic - looked >= progress::PROGRESS_TICK {
                progress::look(loops, &mut idle, (monotonic, monotonic - looked), stop);
                looked = monotonic;
            }
            if !seldom {
                let at = now();
                for rule in rules.iter_mut() {
                    match rule.tick(at, monotonic - last) {
                        Act::Nothing => {}
                        act => rule.act(act),
                    }
                }
                for token in tokens {
                    let _is_news = token.cancel_overrun(at);
                }
            }
            also();
            last = monotonic;
        }
    }
}

/// Watches `loops` until `done` is set. When one makes no progress for longer than its bound, it is
/// marked as ended and `stop` is set, for all. If it used the CPU for half of that time, or waited
/// for something else at each look, it is demoted to SCHED_OTHER; if not, another one may have kept
/// it from running, and all are; where it wanted its CPU at each look, they may also leave it.
///
/// # Real-time: reader side
pub fn watch<P: Fn() -> u64>(
    loops: &[WatchedProgress<'_, P>],
    stop: &impl StopRequest,
    done: &AtomicBool,
) {
    let cancels = &AtomicBool::new(false);
    let monitor = Monitor { loops, rules: &mut [], tokens: &[], cancels };
    monitor.run(monotonic_now, stop, done, || ());
}

/// Runs `watch` above all loops and on the CPUs of `aside`; where it may not go there it stays,
/// since its priority is above theirs.
///
/// # Real-time: reader side
pub fn above(aside: &CpuMask, watch: impl FnOnce()) {
    let _beside_them = affinity::set(0, aside);
    let _session = ThreadSession::enter(None, ABOVE);
    watch();
}

/// A loop in its caller's thread, as its [`Watchdog`] sees it from another thread.
pub trait WatchedLoop: Send + Sync + 'static {
    /// Its progress.
    ///
    /// # Real-time: reader side
    fn watched(&self) -> &Watched;
    /// The request that ends it.
    ///
    /// # Real-time: reader side
    fn stop(&self) -> &impl StopRequest;
}

/// The monitor of one loop in its caller's thread: a thread that ends when this is dropped.
#[derive(Debug)]
pub struct Watchdog {
    done: Arc<AtomicBool>,
    thread: OwnThread<()>,
}

impl Watchdog {
    /// Watches the loop that `watched_loop` is of, once it is armed: one that makes no progress for
    /// `bound` is stopped, and its thread demoted to SCHED_OTHER. The new thread runs where the
    /// calling one may.
    ///
    /// # Real-time: setup only
    pub fn over(watched_loop: Arc<impl WatchedLoop>, bound: Span) -> std::io::Result<Self> {
        let done = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&done);
        let thread = spawn::plain("punctual-watch", move || {
            // Above the loop where permitted; below it still runs where it has another CPU.
            let _session = ThreadSession::enter(None, ABOVE);
            let progress = || watched_loop.watched().beats();
            let loops = [WatchedProgress { watched: watched_loop.watched(), progress, bound }];
            watch(&loops, watched_loop.stop(), &over);
        })?;
        Ok(Self { done, thread: OwnThread::new(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        // It ends at its next look, in 50 ms.
        let _ended = self.thread.join();
    }
}

/// The CPUs for companions of loops: those on which no loop is, or all that are allowed
/// where there are no others.
///
/// # Real-time: setup only
pub fn aside(cpus: &[u32]) -> CpuMask {
    let allowed = affinity::get(0).unwrap_or(CpuMask::EMPTY);
    allowed.without(cpus.iter().copied()).unwrap_or(allowed)
}
