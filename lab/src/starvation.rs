//! Real-time threads of this process that others keep from their CPU.
//!
//! For each experiment: a loop has a watchdog of its own, which knows what the loop does; this one
//! looks only at whether the kernel runs a thread that wants to run, whatever the experiment does
//! on it. Without it an experiment would last as long as the thread above does, and could not be
//! interrupted.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, Thread};
use std::time::Duration;

use punctual_engine::rt_thread::give_way;
use punctual_engine::spawn;
use punctual_os::affinity;
use punctual_os::clock::thread_cpu_ns;
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::threads::{self, ThreadState};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);

/// Looks at which a thread was runnable and did not run: 4 s, twice what a loop's watchdog takes.
/// They are counted, for time in which this did not run either is no fault of others.
const LOOKS: u32 = 16;

/// The watch of the process's real-time threads.
#[derive(Debug)]
pub(crate) struct StarvationWatch {
    /// Looks in a row after which a thread counts as starved.
    looks: u32,
    is_over: AtomicBool,
    has_ended: AtomicBool,
}

/// The watch while it lasts: dropped, also by a panic, it ends.
#[derive(Debug)]
pub(crate) struct Watching<'a> {
    watch: &'a StarvationWatch,
    thread: Thread,
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.watch.is_over.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// A thread that was seen.
#[derive(Clone, Copy, Debug)]
struct SeenThread {
    tid: i32,
    cpu_ns: u64,
    /// Looks in a row at which it wanted a CPU and had none.
    looks: u32,
}

impl StarvationWatch {
    /// A watch that ends an experiment after 4 s.
    pub(crate) const fn new() -> Self {
        Self::after(LOOKS)
    }

    const fn after(looks: u32) -> Self {
        Self { looks, is_over: AtomicBool::new(false), has_ended: AtomicBool::new(false) }
    }

    /// Watches the real-time threads of the process that `is_watched` names by their number, until
    /// what it returns is dropped. Where one is starved, all of these become SCHED_OTHER on
    /// any CPU, and `stop` is set.
    ///
    /// # Errors
    /// No thread could be had.
    pub(crate) fn start<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        stop: &'env AtomicBool,
        is_watched: impl Fn(i32) -> bool + Send + 'scope,
    ) -> io::Result<Watching<'env>> {
        let started = spawn::scoped(scope, "punctual-starve", move || {
            let (mut seen, cpus) = (Vec::new(), affinity::get(0).ok());
            while !self.is_over.load(Ordering::Acquire) {
                thread::park_timeout(LOOK);
                seen = look(&seen, &is_watched);
                if seen.iter().any(|thread| thread.looks >= self.looks) {
                    for SeenThread { tid, .. } in &seen {
                        give_way(*tid, cpus.as_ref());
                    }
                    self.has_ended.store(true, Ordering::Release);
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
            }
        })?;
        Ok(Watching { watch: self, thread: started.thread().clone() })
    }

    /// Returns true where it ended the experiment.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }
}

/// Looks at those real-time threads of this process once more, and leaves the CPUs of those that
/// are bound to one.
fn look(before: &[SeenThread], is_watched: &impl Fn(i32) -> bool) -> Vec<SeenThread> {
    let (pid, mut seen) = (std::process::id().cast_signed(), Vec::new());
    let own = affinity::get(0).ok();
    let mut elsewhere = own;
    // Without its list nothing is known, and nothing is done.
    let _listed = threads::of(pid, |tid| {
        let policy = scheduler::get(tid).unwrap_or(SchedPolicy::Other);
        if policy == SchedPolicy::Other || !is_watched(tid) {
            return;
        }
        let Some(cpu_ns) = thread_cpu_ns(tid) else { return };
        let wants = threads::state(pid, tid) == Some(ThreadState::Runnable);
        let known = before.iter().find(|known| known.tid == tid && known.cpu_ns == cpu_ns);
        let looks = known.filter(|_| wants).map_or(0, |known| known.looks + 1);
        seen.push(SeenThread { tid, cpu_ns, looks });
        if let (Some(mask), Ok(bound)) = (&mut elsewhere, affinity::get(tid))
            && bound.count() == 1
        {
            bound.iter().for_each(|cpu| mask.remove(cpu));
        }
    });
    if let Some(mask) = elsewhere.filter(|mask| Some(*mask) != own && mask.count() > 0) {
        // It stays where it may not leave.
        let _stays = affinity::set(0, &mask);
    }
    seen
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI32;
    use std::sync::{Arc, mpsc};
    use std::time::Instant;

    use punctual_engine::session::ThreadSession;
    use punctual_os::process;
    use punctual_testkit::skip;

    use super::*;

    #[test]
    fn a_thread_that_others_keep_from_its_cpu_ends_the_experiment() {
        if !skip::need_native("real timing") || !skip::need_fifo() {
            return;
        }
        let cpu = affinity::get(0).expect("own").iter().last().expect("one");
        // Soon, for others need that CPU too.
        let (watch, stop) = (StarvationWatch::after(2), AtomicBool::new(false));
        let is_done = AtomicBool::new(false);
        let [(go, wait), (ready, is_ready)] = [(); 2].map(|()| mpsc::channel());
        let is_other = thread::scope(|scope| {
            // Other tests have real-time threads of their own.
            let own = Arc::new(AtomicI32::new(0));
            let is_own = {
                let own = own.clone();
                move |tid| own.load(Ordering::Relaxed) == tid
            };
            let _watching = watch.start(scope, &stop, is_own).expect("a thread");
            let below = scope.spawn({
                let ready = ready.clone();
                move || {
                    own.store(process::tid(), Ordering::Relaxed);
                    let _session = ThreadSession::enter(Some(cpu), SchedPolicy::Fifo(1));
                    ready.send(()).expect("waited for");
                    // From here on the other one has the CPU.
                    wait.recv().expect("it goes on");
                    scheduler::get(0) == Ok(SchedPolicy::Other)
                }
            });
            is_ready.recv().expect("it runs");
            let above = scope.spawn(|| {
                let _session = ThreadSession::enter(Some(cpu), SchedPolicy::Fifo(2));
                let begun = Instant::now();
                ready.send(()).expect("waited for");
                while !is_done.load(Ordering::Acquire) && begun.elapsed() < LOOK * LOOKS {
                    std::hint::spin_loop();
                }
            });
            is_ready.recv().expect("it runs");
            go.send(()).expect("it waits");
            while !stop.load(Ordering::Relaxed) && !above.is_finished() {
                thread::sleep(LOOK);
            }
            is_done.store(true, Ordering::Release);
            below.join().expect("no panic")
        });
        assert!(watch.has_ended() && is_other, "{watch:?}");
    }

    #[test]
    fn an_experiment_whose_threads_run_is_left_alone() {
        let (watch, stop) = (StarvationWatch::new(), AtomicBool::new(false));
        thread::scope(|scope| {
            let _watching = watch.start(scope, &stop, |_| true).expect("a thread");
        });
        assert!(!watch.has_ended() && !stop.load(Ordering::Relaxed));
    }
}
