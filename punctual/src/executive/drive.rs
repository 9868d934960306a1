//! How an executive runs, from its first thread to its summary.
//!
//! In the thread that runs it: starts those beside it, becomes the main loop, and puts all back.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::time::Period;
use punctual_core::wait::WaitStatus;
use punctual_os::scheduler::SchedPolicy;

use super::builder::Work;
use super::built::Executive;
use super::facts::facts;
use super::handle::Handle;
use super::lane::Lane;
use super::run::Run;
use super::run::{Ends, MainStart, Team};
use super::shared::{IDLE, RunState};
use super::thread::Released;
use super::thread::ThreadTask;
use crate::error::Error;
use crate::gcd;
use crate::monitor::aside;
use crate::recording::Recording;
use crate::rt_thread::span;
use crate::safety::Caution;
use crate::session::ProcessSession;
use crate::summary::{End, Samples, Summary};

/// The companion of an executive that has none.
type Nothing<'env> = fn(&Handle<'env>);

impl<'env, C: Clock + Clone + Send + 'env> Executive<'env, C> {
    /// Runs it in the calling thread until it is stopped: by a handle, by a task that says so or
    /// overran, by the watchdog or by a panic. Setup takes 50 ms for the clock, 300 ms to find a
    /// quiet phase, and what the waits take to learn: about two seconds by default, three and a
    /// half at most.
    ///
    /// A panic of a body ends it in order ([`End::Panicked`]); the program's panic hook runs at
    /// that body's priority.
    ///
    /// A child that fork(2) makes in a callback (a body, a trigger, background work, the
    /// companion of [`run_with`](Self::run_with)) must end, or become another program, before the
    /// callback returns: where it returns it is ended with status 70, for the threads that its copy
    /// of the executive would wait for are its parent's. Whatever else it has of its parent's
    /// executive answers with an error there, and its drop does nothing.
    ///
    /// A task in a thread of its own that never returns keeps this from returning: it has lost its
    /// real-time policy by then, and the others have ended.
    ///
    /// # Errors
    /// A thread that cannot be started, a sample file that cannot be written; with
    /// [`RtThread::strict`](crate::RtThread::strict) what the kernel refused. Nothing has run then,
    /// unless it is one of the two threads that release and watch tasks which are processes: they
    /// are started as all begins, and the other tasks may have run by then.
    ///
    /// # Real-time: setup only
    pub fn run(self) -> Result<Summary, Error> {
        self.drive(None, None::<Nothing<'env>>).map(|(summary, _)| summary)
    }

    /// Runs it in the calling thread as [`Executive::run`] does, for `duration` from its first
    /// release on.
    ///
    /// # Errors
    /// As [`Executive::run`].
    ///
    /// # Real-time: setup only
    pub fn run_for(self, duration: Duration) -> Result<Summary, Error> {
        self.drive(Some(duration), None::<Nothing<'env>>).map(|(summary, _)| summary)
    }

    /// Runs it for `duration` in threads of its own, with `beside` in the calling one, which may
    /// add and remove tasks, whose bodies may borrow; what `beside` returns, and what the tasks
    /// did. When it returns they go on until their time is up.
    ///
    /// # Errors
    /// As [`Executive::run`].
    ///
    /// # Panics
    /// When `beside` panics, after all has ended.
    ///
    /// # Real-time: setup only
    pub fn run_with<R>(
        self,
        duration: Duration,
        beside: impl FnOnce(&Handle<'env>) -> R,
    ) -> Result<(R, Summary), Error> {
        let (summary, said) = self.drive(Some(duration), Some(beside))?;
        let said = said.expect("what runs beside it has returned");
        Ok((said, summary))
    }
}

impl<'env, C: Clock + Clone + Send + 'env> Executive<'env, C> {
    /// Runs it for `duration` at most, with `beside` in the calling thread where there is one, and
    /// the main loop in another one then.
    fn drive<R>(
        self,
        duration: Option<Duration>,
        beside: Option<impl FnOnce(&Handle<'env>) -> R>,
    ) -> Result<(Summary, Option<R>), Error> {
        let Self { shared, closing, lanes, threads, supervisor, clocking, phase, .. } = self;
        let (threads, mut works): (Vec<ThreadTask>, Vec<Work<'env>>) = threads.into_iter().unzip();
        shared.ending.check_process()?;
        shared.enter(RunState::Starting);
        let main = &lanes[0].thread;
        let process = ProcessSession::ask(main.lock_memory, main.hold_idle_states);
        let count = lanes.len() + threads.len() + usize::from(supervisor.is_some());
        let waits = !threads.is_empty() || supervisor.is_some();
        let discipline = clocking.discipline;
        let grids = lanes.iter().flat_map(Lane::grids);
        let grids = grids.chain(threads.iter().filter_map(ThreadTask::grid));
        let processes = supervisor.iter().flat_map(|(supervisor, _)| supervisor.grids());
        let grids = grids.chain(processes).collect();
        let duration = (duration.map(span), grids);
        let run = Run::new(&shared, discipline, main.strict, duration, (count, waits));
        run.refuse(process.refused());
        run.warn(self.cautions.iter().map(Caution::to_string));
        let recording =
            self.samples.map(|path| record(&run, path, &lanes, &threads)).transpose()?;
        let released: Vec<Released> = threads.iter().map(|_| Released::new()).collect();
        let handle = Handle { shared: Arc::clone(&shared) };
        let team = Team {
            run: &run,
            threads: &threads,
            released: &released,
            recording: recording.as_ref(),
            bounds: lanes.iter().map(Lane::bound).collect(),
            aside: aside(&cpus(&lanes, &threads)),
        };
        let periods: Vec<Period> = lanes.iter().flat_map(Lane::periods).collect();
        let common = gcd::of_periods(&periods).unwrap_or(IDLE);
        let shortest = periods.iter().copied().chain(threads.iter().map(|of| of.task.period));
        let start = MainStart { clocking, phase, common, shortest: shortest.min() };
        let beside = beside.map(|beside| || beside(&handle));
        let (ends, said) = std::thread::scope(|scope| {
            team.work(scope, lanes, (&mut works, supervisor), start, beside)
        });
        drop(closing);
        let samples = recording.and_then(Recording::finish);
        let summary = summary(run, ends, (&threads, &released), samples);
        let said = said.map(|said| said.unwrap_or_else(|why| resume_unwind(why)));
        Ok((summary?, said))
    }
}

/// Begins to record; which task has which ring.
fn record<C: Clock + Clone + Send>(
    run: &Run<'_, '_, C>,
    path: PathBuf,
    lanes: &[Lane<'_>],
    threads: &[ThreadTask],
) -> Result<Recording, Error> {
    let (entries, facts) = facts(lanes, threads);
    let (recording, rings) = Recording::start(path, facts)?;
    let mut by_entry = vec![None; run.shared.tasks().entries.next()];
    entries.into_iter().zip(rings).for_each(|(at, ring)| by_entry[at] = Some(ring));
    run.record(by_entry);
    Ok(recording)
}

/// The CPUs that its loops and threads are pinned to.
fn cpus(lanes: &[Lane<'_>], threads: &[ThreadTask]) -> Vec<u32> {
    let loops = lanes.iter().filter_map(|lane| lane.thread.cpu);
    loops.chain(threads.iter().filter_map(|of| of.cpu)).collect()
}

/// What it did, once all threads have ended; or why nothing has run.
fn summary<C: Clock + Clone + Send>(
    run: Run<'_, '_, C>,
    ends: Ends,
    (threads, released): (&[ThreadTask], &[Released]),
    samples: Option<Samples>,
) -> Result<Summary, Error> {
    let shared = run.shared;
    let Ends { main, stopped, processes } = ends;
    let (mut policy, mut wait, mut quiet) = (SchedPolicy::Other, WaitStatus::default(), None);
    if let Some(main) = main {
        (policy, wait, quiet) = (main.policy, main.wait, main.quiet);
    }
    let (failed, refused, warnings) = run.outcome();
    if let Some(why) = failed {
        return Err(why);
    }
    let end = match (shared.forced(), shared.ending.why()) {
        // What prints a backtrace takes long, and the watchdog sees no more than that.
        (_, Some(panicked @ End::Panicked { .. })) => panicked,
        (Some(force), _) => force.into(),
        (None, Some(why)) => why,
        (None, None) if stopped => End::Stopped,
        (None, None) => End::Finished,
    };
    let mut tasks = shared.stats();
    for (thread, released) in threads.iter().zip(released) {
        tasks[thread.entry].demotions = released.demotions();
    }
    let epoch = shared.epoch();
    Ok(Summary {
        end,
        tasks,
        units: shared.units(),
        policy,
        refused,
        warnings,
        samples,
        idle_slices: shared.idle.read(),
        epoch,
        quiet,
        wait,
        processes,
    })
}
