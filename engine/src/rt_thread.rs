//! The thread of a loop: its CPU, its policy, its wait, its watchdog.
//!
//! For whoever starts one: the one description of a loop's thread. Plain data with the best
//! defaults; [`RtThread::check`] refuses what cannot be before anything is touched.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use punctual_core::time::{Period, Span};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::process;
use punctual_os::scheduler::{self, SchedPolicy};

use crate::duration::span;
use crate::error::{Error, Kind};
use crate::session::ThreadSession;
use crate::spawn;
use crate::wait_policy::{WaitKind, WaitPolicy};

/// A loop that makes no progress for this long is stopped, where its periods are shorter.
const WATCHDOG: Span = Span::from_ms(2_000);

/// The time between two calls of [`give_way`] for a thread that has not ended.
const GIVE_WAY_AGAIN: Duration = Duration::from_millis(20);

/// The thread of a loop: CPU, policy, memory, idle states, wait and watchdog.
///
/// By default SCHED_FIFO 90 on any CPU, with all memory locked, CPUs kept out of deep idle states,
/// a wait that learns ([`WaitPolicy::adaptive`]), and a watchdog that stops a loop which does not
/// yield and takes its policy away. What the kernel refuses is left out and listed, unless
/// [`RtThread::strict`] makes it an error.
#[derive(Clone, Debug, PartialEq)]
pub struct RtThread {
    cpu: Option<u32>,
    /// None for the default of where it is used.
    policy: Option<SchedPolicy>,
    wait: WaitPolicy,
    watchdog: Option<Option<Span>>,
    lock_memory: bool,
    hold_idle_states: bool,
    strict: bool,
}

impl RtThread {
    /// A thread on any CPU that it may run on, with all defaults.
    ///
    /// # Real-time: setup only
    pub const fn any() -> Self {
        Self {
            cpu: None,
            policy: None,
            wait: WaitPolicy::adaptive(),
            watchdog: None,
            lock_memory: true,
            hold_idle_states: true,
            strict: false,
        }
    }

    /// A thread on this CPU alone, with all other defaults.
    ///
    /// # Real-time: setup only
    pub const fn cpu(cpu: u32) -> Self {
        Self { cpu: Some(cpu), ..Self::any() }
    }

    /// Sets SCHED_FIFO of this priority, in [1, 98]: 99 is the watchdog's.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn fifo(mut self, priority: u8) -> Self {
        self.policy = Some(SchedPolicy::Fifo(priority));
        self
    }

    /// Sets SCHED_OTHER, which needs no rights: anything else on the machine can make it late.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn other(mut self) -> Self {
        self.policy = Some(SchedPolicy::Other);
        self
    }

    /// Sets its wait for a release, all of it: so that a [`WaitKind`] alone brings the defaults of
    /// everything else.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn wait(mut self, wait: impl Into<WaitPolicy>) -> Self {
        self.wait = wait.into();
        self
    }

    /// Sets the longest time for which the loop may make no progress before the watchdog stops it
    /// and makes its thread SCHED_OTHER: at least two periods [default: three periods, and at least
    /// 2 s]. Each step of its setup may take 4 s without progress, whatever this says.
    ///
    /// The watchdog is a thread of this process: both it and the loop end with that, also by
    /// `kill -9`. One that alone does not run (stopped in a debugger) guards nothing meanwhile;
    /// what bounds a loop that does not yield then is the kernel's real-time throttling
    /// (`/proc/sys/kernel/sched_rt_runtime_us`), and RLIMIT_RTTIME where the process was started
    /// with that limit. This library sets none: it holds for all threads of a process.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn watchdog(mut self, bound: Duration) -> Self {
        self.watchdog = Some(Some(span(bound)));
        self
    }

    /// Starts no watchdog: a loop that does not yield then takes its CPU away for good, but for
    /// what the kernel's real-time throttling leaves.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn without_watchdog(mut self) -> Self {
        self.watchdog = Some(None);
        self
    }

    /// Sets whether all memory of the process is kept in RAM while the loop lives [default: true].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn lock_memory(mut self, lock: bool) -> Self {
        self.lock_memory = lock;
        self
    }

    /// Sets whether CPUs are kept out of deep idle states meanwhile, which costs power [default:
    /// true].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn hold_idle_states(mut self, hold: bool) -> Self {
        self.hold_idle_states = hold;
        self
    }

    /// Makes it an error when the kernel refuses any of this, and when an executive has a task
    /// inline with a budget above the period of a more urgent one that it may make late.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Sets the CPU that it runs on alone; `None` for any that the thread may run on.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn pinned(mut self, cpu: Option<u32>) -> Self {
        self.cpu = cpu;
        self
    }

    /// Sets its policy, where it is not known beforehand to be [`RtThread::fifo`] or
    /// [`RtThread::other`]: SCHED_RR, or what a user chose.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn with_policy(mut self, policy: SchedPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// The CPU that it is pinned to.
    ///
    /// # Real-time: setup only
    pub const fn pinned_to(&self) -> Option<u32> {
        self.cpu
    }

    /// The policy of a loop's own thread.
    ///
    /// # Real-time: setup only
    pub fn policy(&self) -> SchedPolicy {
        self.policy.unwrap_or(SchedPolicy::Fifo(90))
    }

    /// The kind of its wait.
    ///
    /// # Real-time: setup only
    pub const fn wait_kind(&self) -> WaitKind {
        self.wait.kind()
    }

    /// The policy of its wait for a release.
    ///
    /// # Real-time: setup only
    pub const fn wait_policy(&self) -> &WaitPolicy {
        &self.wait
    }

    /// The policy that it names; `None` for the default of where it is used.
    ///
    /// # Real-time: setup only
    pub const fn named_policy(&self) -> Option<SchedPolicy> {
        self.policy
    }

    /// Returns true where all memory of the process is kept in RAM while the loop lives.
    ///
    /// # Real-time: setup only
    pub const fn locks_memory(&self) -> bool {
        self.lock_memory
    }

    /// Returns true where CPUs are kept out of deep idle states meanwhile.
    ///
    /// # Real-time: setup only
    pub const fn holds_idle_states(&self) -> bool {
        self.hold_idle_states
    }

    /// Returns true where a refusal of the kernel is an error.
    ///
    /// # Real-time: setup only
    pub const fn is_strict(&self) -> bool {
        self.strict
    }

    /// Its SCHED_FIFO priority, where it names one.
    ///
    /// # Real-time: setup only
    pub const fn named_fifo(&self) -> Option<u8> {
        match self.policy {
            Some(SchedPolicy::Fifo(priority)) => Some(priority),
            _ => None,
        }
    }

    /// The longest time for which a loop of this (shortest) period may make no progress: by default
    /// three periods, and at least 2 s; `None` without a watchdog.
    ///
    /// # Real-time: setup only
    pub fn bound(&self, period: Period) -> Option<Span> {
        let three = i64::try_from(period.as_ns().saturating_mul(3)).unwrap_or(i64::MAX);
        self.watchdog.unwrap_or_else(|| Some(Span::from_ns(three).max(WATCHDOG)))
    }

    /// Checks that a loop of this period can run so.
    ///
    /// # Errors
    ///
    /// The first setting that cannot be: a priority, a wait that does not fit in the period, a
    /// watchdog's bound below two periods, a CPU that is not there or not allowed.
    ///
    /// # Real-time: setup only
    pub fn check(&self, period: Period) -> Result<(), Error> {
        match self.policy() {
            SchedPolicy::Fifo(1..=98) | SchedPolicy::RoundRobin(1..=98) | SchedPolicy::Other => {}
            SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority) => {
                return Err(Kind::Priority(priority).into());
            }
            SchedPolicy::Unknown(number) => return Err(Kind::Policy(number).into()),
        }
        self.check_cpu()?;
        self.wait.check(period)?;
        if let Some(Some(bound)) = self.watchdog
            && bound.as_ns().max(0).unsigned_abs() / 2 < period.as_ns()
        {
            return Err(Kind::Watchdog(bound, period).into());
        }
        Ok(())
    }

    /// Checks that the kernel lets a thread of this process run on its CPU: tried on a thread that
    /// is there for that alone.
    ///
    /// # Real-time: setup only
    pub fn check_cpu(&self) -> Result<(), Error> {
        let Some(cpu) = self.cpu else { return Ok(()) };
        let try_it = || affinity::set(0, &CpuMask::one(cpu));
        let tried = thread::scope(|scope| {
            let thread = spawn::scoped(scope, "punctual-cpu", try_it);
            thread.map(|thread| thread.join().unwrap_or(Ok(())))
        });
        match tried {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => {
                let allowed = affinity::get(0).unwrap_or(CpuMask::EMPTY);
                let allowed = allowed.iter().collect();
                Err(Kind::Cpu { cpu, why, allowed, task: None }.into())
            }
            Err(why) => Err(Kind::Thread(why).into()),
        }
    }
}

impl Default for RtThread {
    fn default() -> Self {
        Self::any()
    }
}

/// Starts a thread for what is beside the loop of the calling one: it runs on the CPUs that this
/// one had before it was a loop's, but not on the loop's own where there is another. There it would
/// run only where the loop leaves time, as an ordinary thread: what is to stop a loop that never
/// lets go would come when real-time throttling lets it. The policy is not inherited. The kernel
/// shows the first 15 bytes of `name`.
///
/// # Errors
/// [`ErrorKind::Thread`](crate::error::ErrorKind::Thread): the thread cannot be started, with its
/// name and the limit that was reached.
///
/// # Real-time: setup only
///
/// ```
/// # mod punctual { pub use punctual_engine::{error::Error, rt_thread::spawn_elsewhere}; }
/// let printer = punctual::spawn_elsewhere("printer", || 5)?;
/// assert_eq!(printer.join().expect("no panic"), 5);
/// # Ok::<(), punctual::Error>(())
/// ```
pub fn spawn_elsewhere<R: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>, Error> {
    // Inherited: a thread that had to leave the loop's CPU itself would wait for it first.
    let thread = ThreadSession::off_its_cpus(|| spawn::plain(name, run));
    thread.map_err(|why| Kind::Thread(why).into())
}

/// Runs what a loop needs to know beforehand on a thread as its own, and waits for it. `None` where
/// it panicked, or where it did not end within `bound` because others kept its CPU: then it is
/// moved off that CPU, as SCHED_OTHER, so that it ends.
///
/// # Errors
/// No thread could be had.
///
/// # Real-time: setup only
pub fn run_before<R: Send + 'static>(
    thread: &RtThread,
    name: &str,
    bound: Duration,
    run: impl FnOnce() -> R + Send + 'static,
) -> io::Result<Option<R>> {
    let (cpu, policy) = (thread.cpu, thread.policy());
    let tid = Arc::new(AtomicI32::new(0));
    let (running, ended) = mpsc::channel::<()>();
    let thread = spawn::plain(name, {
        let tid = Arc::clone(&tid);
        move || {
            tid.store(process::tid(), Ordering::Relaxed);
            let session = ThreadSession::enter(cpu, policy);
            let found = run();
            // First: whoever sees that it ended waits for this thread next.
            drop(session);
            drop(running);
            found
        }
    })?;
    let is_in_time = ended.recv_timeout(bound) != Err(RecvTimeoutError::Timeout);
    // A thread that waits for a CPU stays there while it may run there.
    let elsewhere = affinity::get(0).ok().map(|cpus| cpus.without(cpu).unwrap_or(cpus));
    let mut is_late = !is_in_time;
    // More than once: it may say its number, and take its CPU and its policy, after the first time.
    while is_late {
        match tid.load(Ordering::Relaxed) {
            0 => {} // It has not run yet.
            tid => give_way(tid, elsewhere.as_ref()),
        }
        is_late = ended.recv_timeout(GIVE_WAY_AGAIN) == Err(RecvTimeoutError::Timeout);
    }
    let found = thread.join().ok();
    Ok(found.filter(|_| is_in_time))
}

/// Takes its real-time policy from a thread that others keep from its CPU, and lets it run on
/// `cpus`, so that it can end.
///
/// # Real-time: setup only
pub fn give_way(tid: i32, cpus: Option<&CpuMask>) {
    // A thread that is gone needs neither.
    let _demoted = scheduler::demote(tid);
    let _moved = cpus.map(|cpus| affinity::set(tid, cpus));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use punctual_os::clock::{ClockId, now_ns};
    use punctual_testkit::skip;

    use super::*;

    #[test]
    fn what_cannot_run_is_refused_with_what_is_accepted() {
        let period = Period::hz(1_000).expect("in range");
        let refusal = |thread: RtThread| thread.check(period).expect_err("refused").to_string();
        assert!(refusal(RtThread::any().fifo(0)).contains("from 1 to 98 (got 0)"));
        assert!(refusal(RtThread::any().fifo(99)).contains("from 1 to 98 (got 99)"));
        let short = RtThread::any().watchdog(Duration::from_millis(1));
        assert!(refusal(short).contains("two periods"));
        let fine = RtThread::cpu(0).fifo(98).watchdog(Duration::from_millis(2));
        assert!(
            fine.check(period).is_ok()
                && RtThread::any().without_watchdog().other().check(period).is_ok()
        );
    }

    #[test]
    fn what_runs_beforehand_ends_where_others_keep_its_cpu() {
        if !skip::need_native("real timing") || !skip::need_fifo() {
            return;
        }
        let cpu = affinity::get(0).expect("own").iter().last().expect("one");
        let before = RtThread::cpu(cpu).fifo(1);
        let found = |bound| run_before(&before, "before", bound, || 5).expect("a thread");
        assert_eq!(found(20 * LONG), Some(5));
        let panics = || -> u32 { panic!("on purpose") };
        assert_eq!(run_before(&before, "panics", 20 * LONG, panics).expect("a thread"), None);
        // A thread above it, which runs for longer than it is waited for.
        let is_over = Arc::new(AtomicBool::new(false));
        let (started, waiting) = mpsc::channel();
        let above = spawn::plain("above", {
            let is_over = is_over.clone();
            move || {
                let _session = ThreadSession::enter(Some(cpu), SchedPolicy::Fifo(2));
                let begun_ns = now_ns(ClockId::Monotonic);
                started.send(()).expect("waited for");
                let so_far = || Duration::from_nanos(now_ns(ClockId::Monotonic) - begun_ns);
                while !is_over.load(Ordering::Relaxed) && so_far() < 20 * LONG {
                    std::hint::spin_loop();
                }
            }
        });
        let above = above.expect("a thread");
        waiting.recv().expect("it runs");
        // The kernel's fair server may lend it the CPU while it is no real-time thread yet, and no
        // other takes that until it gives it up.
        let yields = || thread::yield_now();
        assert_eq!(run_before(&before, "yields", LONG, yields).expect("a thread"), None);
        // It takes the CPU once more after it was taken from it.
        let again = move || {
            let _session = ThreadSession::enter(Some(cpu), SchedPolicy::Fifo(1));
            thread::yield_now();
        };
        assert_eq!(run_before(&before, "again", LONG, again).expect("a thread"), None);
        assert!(!above.is_finished(), "it was waited for");
        is_over.store(true, Ordering::Relaxed);
        above.join().expect("no panic");
    }

    /// Waited for a thread.
    const LONG: Duration = Duration::from_millis(300);

    #[test]
    fn the_default_watchdog_is_patient_with_long_periods() {
        let bound = |ms: u64| RtThread::any().bound(Period::from_ns(ms * 1_000_000).expect("fits"));
        assert_eq!(bound(1), Some(Span::from_ms(2_000)));
        assert_eq!(bound(10_000), Some(Span::from_ms(30_000)));
        assert_eq!(RtThread::any().without_watchdog().bound(Period::hz(1).expect("fits")), None);
    }

    #[test]
    fn a_thread_elsewhere_has_the_cpus_from_before_but_its_starters() {
        let cpus = || affinity::get(0).expect("own");
        let found = cpus();
        let last = found.iter().last().expect("one at least");
        let loop_thread = spawn::plain("punctual-loop", move || {
            let _session = ThreadSession::enter(Some(last), SchedPolicy::Other);
            // One within another: what the first found counts.
            let _inner = ThreadSession::enter(Some(last), SchedPolicy::Other);
            let beside = spawn::plain("beside", cpus).expect("there are threads");
            let elsewhere = spawn_elsewhere("elsewhere", cpus).expect("there are threads");
            (cpus(), beside.join().expect("no panic"), elsewhere.join().expect("no panic"))
        });
        let pinned = CpuMask::one(last);
        let seen = loop_thread.expect("there are threads").join().expect("no panic");
        let mut beside = found;
        beside.remove(last);
        let beside = if beside.count() == 0 { found } else { beside };
        assert_eq!(seen, (pinned, pinned, beside));
        // Where nothing was changed it is as any other.
        assert_eq!(spawn_elsewhere("plain", cpus).expect("one").join().expect("no panic"), found);
    }
}
