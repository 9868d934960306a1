//! Many tasks: one builder, whatever runs them and wherever they run.
//!
//! For whoever has more than one loop. The parts are laid out and checked before anything runs;
//! then each CPU's tasks share one loop, tasks that take long have threads or processes of their
//! own, and one monitor watches them all. Between the first release and the last nothing is
//! allocated in a loop, and nothing called but the clock, the bodies and, where a task runs
//! elsewhere, futex.

mod builder;
mod calendar;
mod ending;
mod handle;
mod idle;
mod lane;
mod process;
mod run;
mod shared;
mod slot;
mod thread;

use std::fmt;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::time::Period;
use punctual_core::wait::WaitStatus;
use punctual_engine::clocks::MachineClock;
use punctual_engine::error::{Error, ExecutiveError, Kind};
use punctual_engine::file_facts::RunFacts;
use punctual_engine::monitor::aside;
use punctual_engine::outcome::{End, Samples};
use punctual_engine::periodic::common_period;
use punctual_engine::process::Supervisor;
use punctual_engine::recording::LoopRecording;
use punctual_engine::rt_thread::span;
use punctual_engine::safety::Caution;
use punctual_engine::session::ProcessSession;
use punctual_engine::spawn::{self, OwnThread};
use punctual_os::scheduler::SchedPolicy;

use crate::loops::Phase;
use crate::summary::Summary;
use builder::Work;
use lane::Lane;
use run::{Clocking, Ends, MainStart, Run, Team};
use shared::{Closing, IDLE, RunState, Shared};
use thread::{Pace, Released, ThreadTask};

pub use builder::ExecutiveBuilder;
pub use calendar::Calendar;
pub use ending::StopHandle;
pub use handle::{Handle, Placed, TaskId};
pub use process::Process;
pub use thread::Trigger;

/// Many periodic tasks, ready to run once.
///
/// ```
/// use std::time::Duration;
/// use punctual::{Executive, OnOverrun, Period, Task};
/// # use punctual::{Phase, RtThread, WaitPolicy};
///
/// let servo = Task::every("servo", Period::hz(1_000).expect("in range"));
/// let log = Task::every("log", Period::hz(50).expect("in range"));
/// let mut position = 0.0;
/// let builder = Executive::builder()
///     .task(servo.budget(Duration::from_micros(200)), |cycle| {
///         position += 0.25 * cycle.dt.as_ns() as f64 * 1e-9;
///     })
///     .task(log.on_overrun(OnOverrun::Burst(3)), |_| ());
/// # // What the defaults take two seconds to find out.
/// # let thread = RtThread::any().wait(WaitPolicy::sleep());
/// # let builder = builder.phase(Phase::Zero).thread(thread);
/// let (plan, _ids) = builder.build()?;
/// println!("{}", plan.run_for(Duration::from_millis(30))?.ok()?);
/// assert!(position > 0.0);
/// # Ok::<(), punctual::Error>(())
/// ```
#[must_use = "it does nothing until it runs"]
pub struct Executive<'env, C = MachineClock> {
    shared: Arc<Shared<'env>>,
    closing: Closing<'env>,
    lanes: Vec<Lane<'env>>,
    threads: Vec<(ThreadTask, Work<'env>)>,
    supervisor: Option<(Supervisor, Vec<usize>)>,
    clocking: Clocking<'env, C>,
    phase: Phase,
    samples: Option<PathBuf>,
    peak: u64,
    /// What throttling will do, by budgets and waits.
    cautions: Vec<Caution>,
}

impl<C> fmt::Debug for Executive<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executive").field("tasks", &self.layout()).finish_non_exhaustive()
    }
}

impl Executive<'_> {
    /// An executive to be, without tasks yet.
    ///
    /// # Real-time: setup only
    pub fn builder<'env>() -> ExecutiveBuilder<'env> {
        ExecutiveBuilder::new()
    }
}

impl<'env, C> Executive<'env, C> {
    /// A handle for other threads, which outlives it: stop it, read what its tasks do, add and
    /// remove tasks while it runs.
    ///
    /// # Real-time: setup only
    pub fn handle(&self) -> Handle<'env> {
        Handle { shared: Arc::clone(&self.shared) }
    }

    /// What stops it, and needs no more than a signal handler has.
    ///
    /// # Real-time: setup only
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.shared.ending))
    }

    /// Where each task is that a loop or a thread of the executive runs.
    ///
    /// # Real-time: setup only
    pub fn layout(&self) -> Vec<Placed> {
        let mut all = Vec::new();
        for lane in &self.lanes {
            let units = lane.calendar.as_ref().map_or(0, |(plan, _)| plan.tasks());
            for (rank, task) in lane.ranks.iter().enumerate() {
                let phase_ns = match (rank.checked_sub(units), &lane.calendar) {
                    (None, Some((plan, _))) => plan.ready_ns(rank),
                    (of, _) => of.map(|rank| lane.plan.phase_ns(rank)),
                };
                let thread =
                    self.threads.iter().map(|(of, _)| of).find(|of| of.task.name() == task.name);
                all.push(Placed {
                    name: task.name.clone(),
                    cpu: thread.map_or(lane.thread.pinned_to(), |of| of.cpu),
                    phase: phase_ns.map(Duration::from_nanos),
                    rank: Some(rank),
                });
            }
        }
        for (of, _) in &self.threads {
            let phase_ns = match &of.pace {
                Pace::Remote { .. } => continue,
                Pace::Own(plan) => Some(plan.phase_ns(0)),
                Pace::Triggered => None,
            };
            all.push(Placed {
                name: of.task.name().to_owned(),
                cpu: of.cpu,
                phase: phase_ns.map(Duration::from_nanos),
                rank: None,
            });
        }
        all
    }

    /// The most releases of its main loop that fall on one instant; an upper bound of it where the
    /// periods have a long common multiple.
    ///
    /// # Real-time: setup only
    pub fn peak(&self) -> u64 {
        self.peak
    }
}

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
        let process = ProcessSession::ask(main.locks_memory(), main.holds_idle_states());
        let count = lanes.len() + threads.len() + usize::from(supervisor.is_some());
        let waits = !threads.is_empty() || supervisor.is_some();
        let discipline = clocking.discipline;
        let grids = lanes.iter().flat_map(Lane::grids);
        let grids = grids.chain(threads.iter().filter_map(ThreadTask::grid));
        let processes = supervisor.iter().flat_map(|(supervisor, _)| supervisor.grids());
        let grids = grids.chain(processes).collect();
        let duration = (duration.map(span), grids);
        let run = Run::new(&shared, discipline, main.is_strict(), duration, (count, waits));
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
        let common = common_period(&periods).unwrap_or(IDLE);
        let shortest = periods.iter().copied().chain(threads.iter().map(|of| of.task.period()));
        let start = MainStart { clocking, phase, common, shortest: shortest.min() };
        let beside = beside.map(|beside| || beside(&handle));
        let (ends, said) = std::thread::scope(|scope| {
            team.work(scope, lanes, (&mut works, supervisor), start, beside)
        });
        drop(closing);
        let samples = recording.and_then(LoopRecording::finish);
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
) -> Result<LoopRecording, Error> {
    let (entries, facts) = facts(lanes, threads);
    let (recording, rings) = LoopRecording::start(path, facts)?;
    let mut by_entry = vec![None; run.shared.tasks().entries.next()];
    entries.into_iter().zip(rings).for_each(|(at, ring)| by_entry[at] = Some(ring));
    run.record(by_entry);
    Ok(recording)
}

/// The CPUs that its loops and threads are pinned to.
fn cpus(lanes: &[Lane<'_>], threads: &[ThreadTask]) -> Vec<u32> {
    let loops = lanes.iter().filter_map(|lane| lane.thread.pinned_to());
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

/// What a sample file says of the tasks that it has, each with its number.
fn facts(lanes: &[Lane<'_>], threads: &[ThreadTask]) -> (Vec<usize>, Vec<RunFacts>) {
    let mut all = Vec::new();
    for lane in lanes {
        let wait = lane.thread.wait_policy().name();
        let policy = lane.thread.policy();
        let of = |name: &str, period, phase_ns| RunFacts {
            name: name.to_owned(),
            cpu: lane.thread.pinned_to(),
            period,
            phase_ns,
            epoch_ns: phase_ns,
            policy,
            wait,
            experiment: None,
        };
        let units = lane.calendar.as_ref().map_or(0, |(plan, _)| plan.tasks());
        for (rank, task) in lane.ranks.iter().enumerate() {
            let Some(entry) = task.entry else { continue };
            let facts = match (rank.checked_sub(units), &lane.calendar) {
                (None, Some((plan, _))) => {
                    of(&task.name, plan.frame(), plan.ready_ns(rank).unwrap_or(0))
                }
                (rank, _) => {
                    let rank = rank.unwrap_or(0);
                    of(&task.name, lane.plan.period(rank), lane.plan.phase_ns(rank))
                }
            };
            all.push((entry, facts));
        }
    }
    for of in threads {
        let phase_ns = match &of.pace {
            Pace::Remote { phase_ns, .. } => *phase_ns,
            Pace::Own(plan) => plan.phase_ns(0),
            Pace::Triggered => continue,
        };
        let facts = RunFacts {
            name: of.task.name().to_owned(),
            cpu: of.cpu,
            period: of.task.period(),
            phase_ns,
            epoch_ns: phase_ns,
            policy: of.policy,
            wait: "thread",
            experiment: None,
        };
        all.push((of.entry, facts));
    }
    all.into_iter().unzip()
}

/// An executive that runs: its [`Handle`], and its end. Dropping it stops the executive and waits
/// for its end.
#[derive(Debug)]
pub struct Running {
    handle: Handle<'static>,
    thread: OwnThread<Result<Summary, Error>>,
}

impl Deref for Running {
    type Target = Handle<'static>;

    fn deref(&self) -> &Handle<'static> {
        &self.handle
    }
}

impl Running {
    /// A handle for other threads.
    ///
    /// # Real-time: setup only
    pub fn handle(&self) -> Handle<'static> {
        self.handle.clone()
    }

    /// Waits until the executive has ended by itself; what it did.
    ///
    /// # Errors
    /// As [`Executive::run`].
    ///
    /// # Real-time: setup only
    pub fn join(mut self) -> Result<Summary, Error> {
        self.end()
    }

    /// Stops the executive and waits for its end; what it did.
    ///
    /// # Errors
    /// As [`Executive::run`].
    ///
    /// # Real-time: setup only
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.handle.stop();
        self.end()
    }

    fn end(&mut self) -> Result<Summary, Error> {
        self.handle.shared.ending.check_process()?;
        let ended = self.thread.join().ok_or_else(|| Error::from(ExecutiveError::NotRunning))?;
        ended.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        let _ended = self.thread.join();
    }
}

impl<C: Clock + Clone + Send + 'static> Executive<'static, C> {
    /// Runs it as [`Executive::run`] does, in threads of its own, while the caller goes on.
    ///
    /// # Errors
    /// That there is no thread; what else can be wrong [`Running::join`] says.
    ///
    /// # Real-time: setup only
    pub fn start(self) -> Result<Running, Error> {
        self.shared.ending.check_process()?;
        let handle = self.handle();
        self.shared.enter(RunState::Starting);
        let thread = spawn::plain("punctual-loop", move || self.run()).map_err(|why| {
            handle.shared.enter(RunState::Over);
            Kind::Thread(why)
        })?;
        Ok(Running { handle, thread: OwnThread::new(thread) })
    }
}

#[cfg(test)]
mod tests;
