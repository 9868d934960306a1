//! The stop of an executive, from any thread and from signal handlers, and the reason of its end.
//!
//! A loop reads atomics here, and nothing else.

use std::sync::Arc;
#[expect(clippy::disallowed_types, reason = "set once, when all ends")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::stop::{StopFlag, StopRequest};
use punctual_core::time::Instant;
use punctual_engine::error::{Error, Kind};
use punctual_engine::outcome::End;
use punctual_engine::signals::stop_by_signals;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::fork::Origin;

/// Stops an executive from any thread, and from a signal handler; outlives it.
#[derive(Clone, Debug)]
pub struct StopHandle(pub(super) Arc<Ending>);

impl StopHandle {
    /// Ends the executive: at once where it spins, within 100 ms where it sleeps, whatever its
    /// periods, where a task runs when that returns, and in its setup within some 50 ms. Stays so.
    /// Releases from now on are none of its run: what was due before and never ran is missed.
    ///
    /// # Real-time: in loop
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Has SIGINT (Ctrl-C), SIGTERM and SIGHUP stop it, unless SIGHUP is ignored as under nohup(1):
    /// in the handler itself, as [`StopHandle::stop`] does. Counts, summary and sample file stay
    /// whole. A second signal half a second later, or more, ends the process. Where one came
    /// before, also for another executive, it stops at once.
    ///
    /// The program's own handlers of the three are replaced, for good. A signal handler may run at
    /// any time, so that what this handle refers to, some hundred bytes, is never freed.
    ///
    /// # Errors
    /// 64 loops that run are stopped by signals already (an executive counts as two).
    ///
    /// # Real-time: setup only
    ///
    /// ```
    /// use punctual::{Executive, Flow, Period, Task};
    /// # use punctual::{Phase, RtThread, WaitPolicy};
    ///
    /// let builder = Executive::builder();
    /// # let thread = RtThread::any().wait(WaitPolicy::sleep());
    /// # let builder = builder.phase(Phase::Zero).thread(thread);
    /// let servo = Task::every("servo", Period::hz(1_000).expect("in range"));
    /// let (executive, _ids) = builder.task(servo, |_| {
    ///     // Until Ctrl-C.
    /// #   Flow::Stop
    /// }).build()?;
    /// executive.stop_handle().stop_on_signals()?;
    /// println!("{}", executive.run()?);
    /// # Ok::<(), punctual::Error>(())
    /// ```
    pub fn stop_on_signals(&self) -> Result<(), Error> {
        let ending: &'static Arc<Ending> = Box::leak(Box::new(Arc::clone(&self.0)));
        stop_by_signals([&ending.processes, &ending.stop])
    }

    /// Returns true where the executive is to stop, or has ended, or was dropped.
    ///
    /// # Real-time: in loop
    pub fn stopped(&self) -> bool {
        self.0.is_over()
    }
}

/// The stop flags of an executive, and the reason of its end.
#[derive(Debug, Default)]
#[expect(clippy::disallowed_types, reason = "set once, when all ends")]
pub(super) struct Ending {
    /// The process that it runs in: a child has none of its threads.
    origin: Origin,
    /// The flag that ends all loops.
    pub(super) stop: StopFlag,
    /// The flag that ends the supervisor of its processes, which may end before the others do.
    pub(super) processes: StopFlag,
    /// True once its time is up, before its threads have ended.
    is_time_up: AtomicBool,
    why: OnceLock<End>,
}

impl Ending {
    /// Stops all, on request.
    pub(super) fn stop(&self) {
        self.request(Instant::from_ns(now_ns(ClockId::Monotonic)));
    }

    /// Returns true where all are to stop.
    pub(super) fn stopped(&self) -> bool {
        self.stop.flag().load(Ordering::Relaxed) || !self.origin.is_here()
    }

    /// Its time is up: nobody stopped it, and nothing is released any more.
    pub(super) fn time_is_up(&self) {
        self.is_time_up.store(true, Ordering::Relaxed);
    }

    /// Returns true where all are to stop, or its time is up.
    pub(super) fn is_over(&self) -> bool {
        self.stopped() || self.is_time_up.load(Ordering::Relaxed)
    }

    /// Refuses a process other than the one that made the executive: a child by fork(2).
    pub(super) fn check_process(&self) -> Result<(), Error> {
        if self.origin.is_here() { Ok(()) } else { Err(Kind::Forked.into()) }
    }

    /// Runs a function of the caller's. A child that fork(2) made in it and that comes back from
    /// it, by a panic too, is ended: the threads that its copy of the executive would wait for are
    /// its parent's.
    #[inline]
    pub(super) fn callback<R>(&self, run: impl FnOnce() -> R) -> R {
        self.origin.callback(run)
    }

    /// Stops all for this reason; the first reason stays.
    pub(super) fn because(&self, end: End) {
        let _first = self.why.set(end);
        self.stop();
    }

    /// A task's body panicked.
    #[cold]
    pub(super) fn panicked(&self, task: &str, text: &str) {
        self.because(End::Panicked { task: task.to_owned(), text: text.to_owned() });
    }

    /// A task overran that is to stop everything then.
    #[cold]
    pub(super) fn overran(&self, task: &str) {
        self.because(End::Overran(task.to_owned()));
    }

    /// The reason of its end, where one was given.
    pub(super) fn why(&self) -> Option<End> {
        self.why.get().cloned()
    }
}

impl StopRequest for Ending {
    #[inline]
    fn flag(&self) -> &AtomicBool {
        self.stop.flag()
    }

    fn requested(&self) -> Option<Instant> {
        self.stop.requested()
    }

    fn request(&self, at: Instant) {
        self.processes.request(at);
        self.stop.request(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_stop_with_all_others_at_the_same_instant_and_may_stop_alone() {
        let (ending, alone) = (Ending::default(), Ending::default());
        for at in [50, 30] {
            ending.request(Instant::from_ns(at));
        }
        ending.stop();
        assert_eq!(ending.stop.requested(), Some(Instant::from_ns(30)));
        assert_eq!(ending.processes.requested(), ending.stop.requested());
        alone.processes.request(Instant::from_ns(30));
        assert!(!alone.stopped(), "the others go on");
    }
}
