//! A supervisor at work: threads up, tasks started, everything put back.
//!
//! The calling thread supervises, under no real-time policy, aside of the tasks where there is a
//! CPU for that.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::bucket;
use punctual_core::executive::Ended;
use punctual_core::stats::{Page, View};
use punctual_core::time::{Instant, Span};
use punctual_core::wait::Strategy;
use punctual_os::{affinity, signal};

use super::super::stop::Stop;
use super::super::supervisor_loop::{Poller, SupervisorLoop, TaskProcess, now};
use super::super::task_block::TaskBlock;
use super::super::{Event, Figures, Finished, Over, TaskOutcome};
use super::Ready;
use super::execute::{Executed, Extent, RunSetup};
use crate::clocks::MachineClock;
use crate::error::{Error, Kind};
use crate::monitor::{Watched, aside};
use crate::process::cgroup::Home;
use crate::remote::RemoteTasks;
use crate::spawn;

impl Ready {
    /// Starts all tasks and stays with them for `duration`, or until `stop` is set, a task that may
    /// stops everything, or none is left. What happens goes to `say`, which must not wait: nobody
    /// is ended, reaped or let in meanwhile. `stop` is set at the end.
    ///
    /// A loop that sleeps sees `stop` at its next release; at once in a process that catches SIGURG
    /// ([`signal::catch_interrupt`]), which is sent to its thread. The calling thread starts the
    /// processes, and the kernel ends them when it ends.
    ///
    /// # Errors
    ///
    /// A thread cannot be started: no process was started then.
    ///
    /// # Real-time: setup only
    pub fn run(
        self,
        wait: Strategy,
        duration: Option<Span>,
        stop: Stop<'_>,
        say: &mut dyn FnMut(Event),
    ) -> Result<Finished, Error> {
        self.run_over((MachineClock::best(), wait), Extent::Lasting(duration), stop, say)
    }

    /// As [`Ready::run`], on a clock that is made already, with all releases that are due from
    /// `from` on and before `end`.
    pub(crate) fn run_between(
        self,
        wait: (MachineClock, Strategy),
        (from, end): (Instant, Instant),
        stop: Stop<'_>,
        say: &mut dyn FnMut(Event),
    ) -> Result<Finished, Error> {
        self.run_over(wait, Extent::Between(from, end), stop, say)
    }

    fn run_over(
        mut self,
        (clock, wait): (MachineClock, Strategy),
        extent: Extent,
        stop: Stop<'_>,
        say: &mut dyn FnMut(Event),
    ) -> Result<Finished, Error> {
        let listener = self.listener.take();
        let before = affinity::get(0).ok();
        let cpus: Vec<u32> =
            self.blocks.iter().filter_map(|block| block.cpu).chain(self.thread.cpu).collect();
        let setup = RunSetup {
            stop,
            done: AtomicBool::new(false),
            aside: aside(&cpus),
            extent,
            beats: AtomicU64::new(0),
            watched: Watched::default(),
        };
        let ready = &self;
        let mut all: Vec<TaskProcess> =
            ready.blocks.iter().map(|block| TaskProcess::new(block, now())).collect();
        let executed = std::thread::scope(|scope| {
            let setup = &setup;
            // Also where `say` panics: then the processes end with their occupants.
            let _end = End(setup);
            spawn::scoped(scope, "punctual-watch", move || setup.monitor(ready))?;
            let tasks = remotes(ready, &setup.beats);
            let execute = move || setup.execute(ready, tasks, wait, clock);
            let executive = spawn::scoped(scope, "punctual-loop", execute)?;
            let _beside_them = affinity::set(0, &setup.aside);
            let (poller, home) = (Poller::new(), Home::find());
            let mut looped =
                SupervisorLoop { ready, all: &mut all, say, poller, stop, home, stopped_by: None };
            let gone = looped.supervise(listener, || executive.is_finished());
            while !executive.is_finished() {
                // Again and again: it may be about to sleep.
                let _awake = setup.watched.thread().map(signal::interrupt);
                looped.rest(None);
            }
            let mut executed = executive.join().expect("the loop never panics");
            executed.remotes.stopped_by = executed.remotes.stopped_by.or(looped.stopped_by);
            looped.wind_down();
            executed.close(now());
            let over = ready.over(&executed, gone);
            Ok::<_, std::io::Error>((over, executed.policy, executed.refused, executed.throttled))
        });
        if let Some(before) = before {
            let _restored = affinity::set(0, &before);
        }
        let (over, policy, refused, throttled) = executed.map_err(Kind::Thread)?;
        let tasks = all.iter().enumerate().map(|(rank, one)| ready.outcome(rank, one)).collect();
        let releases = figures(ready.page.mapping.words());
        let forced = setup.watched.ended();
        Ok(Finished { over, policy, refused, forced, throttled, releases, tasks })
    }

    /// Why it ended; `gone`: because nobody was left.
    fn over(&self, executed: &Executed<'_>, gone: bool) -> Over {
        match (executed.remotes.stopped_by, executed.ended) {
            (Some(rank), _) => Over::Overran(self.plan.name(rank).to_owned()),
            (None, _) if gone => Over::AllGone,
            (None, Ended::Finished) => Over::Finished,
            (None, _) => Over::Stopped,
        }
    }

    fn outcome(&self, rank: usize, one: &TaskProcess) -> TaskOutcome {
        let block = &self.blocks[rank];
        TaskOutcome {
            name: block.spec.task.name.clone(),
            period_ns: self.plan.period_ns(rank),
            phase_ns: self.plan.phase_ns(rank),
            figures: figures(block.page.mapping.words()),
            policy: one.policy,
            starts: one.starts,
            registered: one.registered,
            restarts: one.lifecycle.restarts.all,
            overran: block.counts.overran(),
            terminated: one.terminated,
            demoted: (block.guarded.demotions(), block.guarded.restored()),
            threads_demoted: block.others.demoted(),
            unattended: block.counts.unattended(),
            after_end: block.counts.after_end(),
            invalid: block.counts.invalid(),
            failed: one.failed,
            exit: one.exit,
        }
    }
}

/// Ends the threads of a supervisor when it is dropped.
struct End<'s>(&'s RunSetup<'s>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.stop.set();
        self.0.done.store(true, Ordering::Release);
    }
}

/// All remotes, by rank; outputs begin as the safe values.
fn remotes<'r>(ready: &'r Ready, beats: &'r AtomicU64) -> RemoteTasks<'r, Page<'r>> {
    let all = ready.blocks.iter().filter_map(TaskBlock::post).collect();
    ready.blocks.iter().for_each(TaskBlock::take_over);
    RemoteTasks { all, beats, stopped_by: None }
}

/// A page as it is now.
fn figures(words: &[AtomicU64]) -> Figures {
    let mut buckets = Box::new([0; bucket::COUNT]);
    let counts = View::open(words).map(|page| page.read(&mut buckets)).unwrap_or_default();
    Figures { counts, buckets: buckets.to_vec() }
}
