//! The stop of an executive: for good where it is requested, of one run where that ends.
//!
//! Atomic words alone: for other threads, for tasks, and for signal handlers.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::SeqCst};

use punctual::StopHandle;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

/// The time between two checks of a run's end that no call stops it any more, ns.
const LOOK_NS: u64 = 100_000;

/// The request to stop an executive.
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// For good.
    requested: AtomicBool,
    /// True once the last run has ended.
    over: AtomicBool,
    /// Calls that may look at the run at present.
    callers: AtomicUsize,
    /// Of the run; null while there is none.
    run: AtomicPtr<StopHandle>,
}

impl Stop {
    /// Stops it for good.
    pub(super) fn request(&self) {
        self.requested.store(true, SeqCst);
        self.with(StopHandle::stop);
    }

    /// True once it was stopped for good.
    pub(super) fn is_requested(&self) -> bool {
        self.requested.load(SeqCst)
    }

    /// True where the run is to end, or has ended.
    pub(super) fn is_stopped(&self) -> bool {
        let ends = || self.with(StopHandle::stopped).unwrap_or(false);
        self.requested.load(SeqCst) || self.over.load(SeqCst) || ends()
    }

    /// Runs `run`, which `handle` stops; at once where its stop was requested.
    pub(super) fn during<R>(&self, handle: &StopHandle, run: impl FnOnce() -> R) -> R {
        /// Takes the handle back on every way out, a panic's too.
        struct End<'s>(&'s Stop);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.over.store(true, SeqCst);
                self.0.run.store(std::ptr::null_mut(), SeqCst);
                while self.0.callers.load(SeqCst) != 0 {
                    // A signal that cuts this short costs an extra look.
                    let _cut = sleep_until_ns(now_ns(ClockId::Monotonic) + LOOK_NS);
                }
            }
        }
        let _end = End(self);
        self.over.store(false, SeqCst);
        self.run.store(std::ptr::from_ref(handle).cast_mut(), SeqCst);
        // Who asks after this look finds the handle.
        if self.requested.load(SeqCst) {
            handle.stop();
        }
        run()
    }

    /// Calls `call` on the handle of the run; `None` without a run.
    fn with<R>(&self, call: impl FnOnce(&StopHandle) -> R) -> Option<R> {
        self.callers.fetch_add(1, SeqCst);
        // SAFETY: null, or what `during` borrows: it takes that back before it returns, and then
        // waits for all who may have read it before.
        let called = unsafe { self.run.load(SeqCst).as_ref() }.map(call);
        self.callers.fetch_sub(1, SeqCst);
        called
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual::{Executive, Period, Phase, RtThread, Task, WaitPolicy};

    use super::*;

    fn executive() -> Executive<'static> {
        let task = Task::every("a", Period::hz(1_000).expect("in range"));
        let thread = RtThread::any().other().wait(WaitPolicy::sleep());
        let builder = Executive::builder().task(task.budget(Duration::from_micros(1)), |_| ());
        let (executive, _) = builder.thread(thread).phase(Phase::Zero).build().expect("fine");
        executive
    }

    #[test]
    fn a_run_ends_once_and_a_stop_holds() {
        let stop = Stop::default();
        assert!(!stop.is_stopped());
        for _ in 0..2 {
            let executive = executive();
            let run = executive.stop_handle();
            stop.during(&run, || assert!(!stop.is_stopped() && !run.stopped()));
            assert!(stop.is_stopped() && !run.stopped());
        }
        let executive = executive();
        let run = executive.stop_handle();
        stop.during(&run, || {
            stop.request();
            assert!(stop.is_stopped() && run.stopped());
        });
        let next = executive.stop_handle();
        stop.during(&next, || assert!(next.stopped()));
    }

    #[test]
    fn who_stops_may_come_at_any_time() {
        let (stop, done) = (Stop::default(), AtomicBool::new(false));
        let run = executive().stop_handle();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    stop.is_stopped();
                }
            });
            for _ in 0..1_000 {
                stop.during(&run, || ());
            }
            done.store(true, SeqCst);
        });
        assert_eq!(stop.callers.load(SeqCst), 0);
    }
}
