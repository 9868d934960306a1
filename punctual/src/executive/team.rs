//! An executive at work: threads up, all begin together, everything put back.
//!
//! Setup and the end; what runs in between is the loops'. A thread that cannot be started ends all
//! before anything has run.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::cycle::CancelToken;
use punctual_core::stop::StopRequest;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::WaitStatus;
use punctual_engine::clocks::{MachineClock, monotonic_now};
use punctual_engine::duration::span;
use punctual_engine::error::Error;
use punctual_engine::handover::LOOK;
use punctual_engine::monitor::{Monitor, RunawayRule, WatchedProgress, above, aside, watch};
use punctual_engine::outcome::{End, Samples};
use punctual_engine::periodic::common_period;
use punctual_engine::process::{Over, Stop, Supervisor, TaskOutcome};
use punctual_engine::quiet::{self, Quiet};
use punctual_engine::recording::LoopRecording;
use punctual_engine::release_span::RunLength;
use punctual_engine::safety::{check_lead, check_period};
use punctual_engine::session::ProcessSession;
use punctual_engine::wait_policy::{LearnPlace, ReadyWait, WarmUp};
use punctual_os::affinity::CpuMask;
use punctual_os::scheduler::SchedPolicy;

use super::handle::Handle;
use super::inline;
use super::lane::{EndedLoop, Lane, LoopEnd};
use super::run::Run;
use super::shared::{Closing, IDLE, RunState, Shared};
use super::startup::{Startup, try_start_thread};
use super::thread::{ThreadBlock, ThreadSlot, ThreadTask};
use super::work::Work;
use crate::loops::Phase;
use crate::summary::Summary;

/// All parts of an executive, laid out and checked, before it runs.
pub(super) struct Assembly<'env, C> {
    pub(super) shared: Arc<Shared<'env>>,
    pub(super) closing: Closing<'env>,
    pub(super) lanes: Vec<Lane<'env>>,
    pub(super) threads: Vec<(ThreadTask, Work<'env>)>,
    /// The supervisor of the tasks that are processes, and their numbers.
    pub(super) supervisor: Option<(Supervisor, Vec<usize>)>,
    pub(super) clocking: Clocking<'env, C>,
    pub(super) phase: Phase,
    pub(super) samples: Option<PathBuf>,
    /// Risks that are known before it runs, by budgets, waits and throttling: a sentence each.
    pub(super) cautions: Vec<String>,
}

impl<'env, C: Clock + Clone + Send + 'env> Assembly<'env, C> {
    /// Runs the executive for `duration` at most, with `beside` in the calling thread where there
    /// is one, and the main loop in another one then. Returns the summary, and the value of
    /// `beside`.
    pub(super) fn drive<R>(
        self,
        duration: Option<Duration>,
        beside: Option<impl FnOnce(&Handle<'env>) -> R>,
    ) -> Result<(Summary, Option<R>), Error> {
        let Self { shared, closing, lanes, threads, supervisor, clocking, phase, .. } = self;
        let Self { samples, cautions, .. } = self;
        let (threads, mut works): (Vec<ThreadTask>, Vec<Work<'env>>) = threads.into_iter().unzip();
        shared.ending.check_process()?;
        shared.enter(RunState::Starting);
        let main = &shared.rules.thread;
        let process = ProcessSession::ask(main.locks_memory(), main.holds_idle_states());
        let in_loops = lanes.iter().flat_map(Lane::grids);
        let in_threads = threads.iter().filter_map(ThreadTask::grid);
        let processes = supervisor.iter().flat_map(|(supervisor, _)| supervisor.grids());
        let frame = shared.rules.calendar.as_ref().map(|(calendar, _)| calendar.frame());
        let grids = in_loops.chain(in_threads).chain(processes);
        let length = RunLength::new(duration.map(span), frame, grids);
        let startup = Startup::new(
            Arc::clone(&shared.ending),
            length,
            lanes.len() + threads.len() + usize::from(supervisor.is_some()),
            clocking.discipline,
            main.is_strict(),
        );
        startup.refuse(process.refused());
        startup.warn(cautions);
        let recording = samples.map(|path| record(&startup, path, &lanes, &threads)).transpose()?;
        let run = Run::new(&shared, startup, !threads.is_empty() || supervisor.is_some());
        let blocks: Vec<ThreadBlock> = threads.iter().map(|_| ThreadBlock::new()).collect();
        let handle = Handle { shared: Arc::clone(&shared) };
        let of_loops = lanes.iter().filter_map(Lane::cpu);
        let cpus = of_loops.chain(threads.iter().filter_map(ThreadTask::cpu));
        let team = Team {
            run: &run,
            threads: &threads,
            blocks: &blocks,
            recording: recording.as_ref(),
            bounds: lanes.iter().map(Lane::bound).collect(),
            aside: aside(&cpus.collect::<Vec<u32>>()),
            done: AtomicBool::new(false),
        };
        let inline: Vec<_> = lanes.iter().map(Lane::inline_tasks).collect();
        let periods: Vec<Period> = lanes.iter().flat_map(Lane::periods).collect();
        let common = common_period(&periods).unwrap_or(IDLE);
        let shortest = periods.iter().copied().chain(threads.iter().map(ThreadTask::period)).min();
        let in_loops = lanes.iter().map(Lane::adapts_to);
        let longest = in_loops.chain(threads.iter().map(ThreadTask::period)).max().unwrap_or(IDLE);
        let sleeps = longest.as_span().min(LOOK);
        let has_processes = supervisor.is_some();
        let start = MainStart { clocking, phase, common, shortest, sleeps, has_processes };
        let beside = beside.map(|beside| || beside(&handle));
        let (ends, returned) = std::thread::scope(|scope| {
            team.work(scope, lanes, (&mut works, supervisor), start, beside)
        });
        drop(team);
        drop(closing);
        let samples = recording.and_then(LoopRecording::finish);
        let summary = summary(run, ends, (&threads, &blocks), samples).map(|mut summary| {
            let (_, long_slices) = summary.idle_slices;
            let unjudged = inline
                .iter()
                .filter_map(|lane| inline::unjudged(lane, &summary.tasks, long_slices));
            summary.warnings.extend(unjudged);
            summary
        });
        let returned = returned.map(|returned| returned.unwrap_or_else(|why| resume_unwind(why)));
        Ok((summary?, returned))
    }
}

/// Begins to record; gives each task its ring.
fn record<C: Clock + Clone + Send>(
    startup: &Startup<C>,
    path: PathBuf,
    lanes: &[Lane<'_>],
    threads: &[ThreadTask],
) -> Result<LoopRecording, Error> {
    let in_threads = threads.iter().filter_map(|thread| Some((thread.entry(), thread.facts()?)));
    let (entries, facts): (Vec<usize>, Vec<_>) =
        lanes.iter().flat_map(Lane::facts).chain(in_threads).unzip();
    let (recording, rings) = LoopRecording::start(path, facts)?;
    startup.record(entries.into_iter().zip(rings).collect());
    Ok(recording)
}

/// Sums up a run, once all threads have ended.
///
/// # Errors
/// The error for which nothing has run.
fn summary<C: Clock + Clone + Send>(
    run: Run<'_, '_, C>,
    ends: Ends,
    (threads, blocks): (&[ThreadTask], &[ThreadBlock]),
    samples: Option<Samples>,
) -> Result<Summary, Error> {
    let shared = run.shared();
    let Ends { main, stopped, processes } = ends;
    let (mut policy, mut wait, mut quiet) = (SchedPolicy::Other, WaitStatus::default(), None);
    if let Some(main) = main {
        (policy, wait, quiet) = (main.policy, main.wait, main.quiet);
    }
    let (failed, refused, mut warnings) = run.into_startup().outcome();
    warnings.extend(shared.warnings());
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
    for (thread, block) in threads.iter().zip(blocks) {
        tasks[thread.entry()].demotions = block.demotions();
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
        moves: 0,
        wait,
        processes,
    })
}

/// The settings of the main loop at its start.
struct MainStart<'env, C> {
    clocking: Clocking<'env, C>,
    phase: Phase,
    /// A divisor of all periods, where there is one.
    common: Period,
    /// The shortest of all periods; `None` without tasks.
    shortest: Option<Period>,
    /// The longest sleep of one of its threads.
    sleeps: Span,
    /// True where processes join it, which learn the epoch before any wait has learned.
    has_processes: bool,
}

/// The state in which all threads ended.
struct Ends {
    /// The main loop; none where it never began.
    main: Option<LoopEnd>,
    /// True where somebody stopped them before their time was up.
    stopped: bool,
    processes: Vec<TaskOutcome>,
}

/// The threads of one run.
struct Team<'r, 'env, C> {
    run: &'r Run<'r, 'env, C>,
    threads: &'r [ThreadTask],
    /// The memory shared with each thread, in their order.
    blocks: &'r [ThreadBlock],
    recording: Option<&'r LoopRecording>,
    /// The longest time that each loop may make no progress; `None` without a watchdog.
    bounds: Vec<Option<Span>>,
    /// The CPUs on which the monitor runs.
    aside: CpuMask,
    /// True once all others have ended: the monitor ends too.
    done: AtomicBool,
}

impl<'r, 'env, C: Clock + Clone + Send> Team<'r, 'env, C> {
    /// Starts all threads and waits until they have ended; returns the states in which they did,
    /// and the value of `beside` where there is one.
    fn work<'scope, R>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        mut lanes: Vec<Lane<'env>>,
        (works, supervisor): (&'scope mut [Work<'env>], Option<(Supervisor, Vec<usize>)>),
        start: MainStart<'env, C>,
        beside: Option<impl FnOnce() -> R>,
    ) -> (Ends, Option<std::thread::Result<R>>) {
        let run = self.run;
        // Also where the main loop panics in its setup: the others wait for these two.
        let _closes = CloseOnDrop(self);
        let (shared, startup) = (run.shared(), run.startup());
        let monitor = startup.start_thread(scope, "punctual-watch", || {
            above(&self.aside, || self.watch());
        });
        let side_lanes = lanes.split_off(1).into_iter();
        let side_loops: Vec<_> = side_lanes
            .filter_map(|lane| {
                startup.start_thread(scope, "punctual-loop", || side_loop(run, lane))
            })
            .collect();
        let threads = self.threads.iter().zip(self.blocks.iter().zip(&shared.threads));
        let tasks = works.iter_mut().zip(threads).filter_map(|(work, (task, block_and_slot))| {
            startup.start_thread(scope, "punctual-task", move || {
                work_in(task, work, run, block_and_slot);
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let external = supervisor.and_then(|(supervisor, entries)| {
            startup.start_thread(scope, "punctual-processes", move || {
                supervise(run, supervisor, &entries)
            })
        });
        let starter = startup.start_thread(scope, "punctual-starter", || start_added(run, scope));
        let (mut main, returned) = self.main_and(scope, lanes.remove(0), start, beside);
        for side_loop in side_loops {
            // A loop that panicked outside its bodies is a fault of this library's.
            let _end = side_loop.join().unwrap_or_else(|why| resume_unwind(why));
        }
        let stopped = shared.ending.stopped();
        shared.ending.stop();
        if let Some(main) = &main {
            main.end_remotes();
        }
        // What panicked there was caught there.
        tasks.into_iter().for_each(|task| drop(task.join()));
        shared.starter.close();
        drop(starter.map(ScopedJoinHandle::join));
        shared.threads.iter().for_each(ThreadSlot::clear);
        if let Some((mut clock, _)) = startup.await_settled(None)
            && let Some(main) = &mut main
        {
            main.close_remotes(clock.wake());
        }
        let processes = external.and_then(|external| external.join().ok()).flatten();
        self.done.store(true, Ordering::Release);
        drop(monitor.map(ScopedJoinHandle::join));
        let (main, processes) = (main.map(EndedLoop::into_end), processes.unwrap_or_default());
        (Ends { main, stopped, processes }, returned)
    }

    /// Runs the main loop here, or in a thread where something runs beside it here.
    fn main_and<'scope, R>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        lane: Lane<'env>,
        start: MainStart<'env, C>,
        beside: Option<impl FnOnce() -> R>,
    ) -> (Option<EndedLoop<'r>>, Option<std::thread::Result<R>>) {
        let Some(beside) = beside else { return (Some(self.main_loop(lane, start)), None) };
        let main =
            self.run.startup().start_thread(scope, "punctual-loop", || self.main_loop(lane, start));
        // What it borrowed is not used again where it panicked.
        let ending = &self.run.shared().ending;
        let returned = catch_unwind(AssertUnwindSafe(|| ending.callback(beside)));
        if returned.is_err() {
            ending.stop();
        }
        let end = main.map(|main| main.join().unwrap_or_else(|why| resume_unwind(why)));
        (end, Some(returned))
    }

    /// The main loop: finds the clock and the epoch for all.
    fn main_loop(&self, lane: Lane<'env>, start: MainStart<'env, C>) -> EndedLoop<'r> {
        let run = self.run;
        let MainStart { clocking, phase, common, shortest, sleeps, has_processes } = start;
        let startup = run.startup();
        // A clock of the caller's may panic: the others wait for this thread.
        let _abort = startup.abort_on_panic();
        let session = lane.enter(run);
        let watched = lane.watched(run);
        let mut clock = watched.in_setup(|| startup.ending().callback(clocking.make));
        if let Some(Err(why)) = shortest.map(|period| check_period(period, &mut clock)) {
            startup.fail(why);
        }
        if let Err(why) = check_lead(sleeps, &clock) {
            startup.fail(why);
        }
        let mut quiet = match phase {
            Phase::Quiet => watched
                .in_setup(|| (clocking.quiet)(&mut clock, common, startup.ending().stop.flag())),
            _ => None,
        };
        let mut epoch = Instant::from_ns(match (phase, quiet) {
            (Phase::At(ns), _) => ns,
            (_, quiet) => quiet.map_or(0, |quiet| quiet.phase_ns),
        });
        startup.settle(clock.clone(), epoch);
        if has_processes {
            startup.settle_epoch(epoch);
        }
        // Processes have been given the epoch.
        let movable = quiet.filter(|_| !has_processes).map(|place| (place, common));
        let (wait, moved) = lane.learn(run, &mut clock, (epoch, movable));
        if let Some(place) = moved {
            (quiet, epoch) = (moved, Instant::from_ns(place.phase_ns));
        }
        let threads = self.threads.iter().zip(self.blocks);
        let remotes = threads.filter_map(|(task, block)| {
            block.remote(task, epoch, run.counting(task.entry(), epoch)?)
        });
        let remotes: Vec<_> = remotes.collect();
        self.blocks.iter().for_each(ThreadBlock::open);
        if let Some(recording) = self.recording {
            recording.begin(epoch);
        }
        startup.settle_epoch(epoch);
        lane.run(run, (clock, epoch, quiet), (wait, remotes), session)
    }

    /// The monitor of all loops and of the tasks beside them.
    fn watch(&self) {
        let startup = self.run.startup();
        let Shared { lanes, threads: slots, cancels, ending, rules, .. } = self.run.shared();
        let in_loops = lanes.iter().map(|lane| &lane.watched).zip(self.bounds.iter().copied());
        // Each by its own period, where it has one; one that is added brings its bound with it.
        let main = self.bounds.first().copied().flatten();
        let own = self.threads.iter().map(|task| match task.has_period() {
            true => rules.thread.bound(task.period()),
            false => main,
        });
        let in_threads = slots.iter().map(ThreadSlot::watched);
        let in_threads = in_threads.zip(own.chain(std::iter::repeat(main)));
        let loops = in_loops.chain(in_threads).filter_map(|(watched, bound)| {
            Some(WatchedProgress { watched, progress: move || watched.beats(), bound: bound? })
        });
        let loops: Vec<_> = loops.collect();
        // As if there were tasks to cancel: it looks often, and so ends as soon as all is found.
        let looks_often = AtomicBool::new(true);
        let in_setup =
            Monitor { loops: &loops, rules: &mut [], tokens: &[], cancels: &looks_often };
        in_setup.run(monotonic_now, &**ending, startup.is_found(), || ());
        let found = startup.await_settled(None).zip(startup.await_epoch(None));
        let Some(((mut clock, _), epoch)) = found else {
            return watch(&loops, &**ending, &self.done);
        };
        let threads = self.threads.iter().zip(self.blocks);
        let mut rules: Vec<RunawayRule<'_>> =
            threads.filter_map(|(task, block)| block.rule(task, epoch)).collect();
        let tokens = lanes.iter().map(|lane| &lane.token);
        let tokens: Vec<&CancelToken> = tokens.chain(slots.iter().map(ThreadSlot::token)).collect();
        let monitor = Monitor { loops: &loops, rules: &mut rules, tokens: &tokens, cancels };
        // Read here alone, it is anchored anew at each look.
        monitor.run(|| clock.wake(), &**ending, &self.done, || ());
    }
}

/// Ends, when it is dropped, the threads of a run that wait for its end; where the main loop
/// panicked also those that it released.
struct CloseOnDrop<'s, 'r, 'env, C: Clock + Clone + Send>(&'s Team<'r, 'env, C>);

impl<C: Clock + Clone + Send> Drop for CloseOnDrop<'_, '_, '_, C> {
    fn drop(&mut self) {
        self.0.run.shared().starter.close();
        self.0.blocks.iter().for_each(ThreadBlock::end);
        self.0.done.store(true, Ordering::Release);
    }
}

/// Runs a loop on another CPU than the main one's to its end.
fn side_loop<'env, C: Clock + Clone + Send>(
    run: &Run<'_, 'env, C>,
    lane: Lane<'env>,
) -> Option<()> {
    let _abort = run.startup().abort_on_panic();
    let session = lane.enter(run);
    let watched = Some(lane.watched(run));
    let (mut clock, likely) = run.startup().await_settled(watched)?;
    let (wait, _) = lane.learn(run, &mut clock, (likely, None));
    let epoch = run.startup().await_epoch(watched)?;
    let _end = lane.run(run, (clock, epoch, None), (wait, Vec::new()), session);
    Some(())
}

/// Runs a task in its own thread, with its block and its slot.
fn work_in<C: Clock + Clone + Send>(
    task: &ThreadTask,
    work: &mut Work<'_>,
    run: &Run<'_, '_, C>,
    block_and_slot: (&ThreadBlock, &ThreadSlot<'_>),
) {
    task.work(work, run.startup(), block_and_slot, |epoch| run.counting(task.entry(), epoch));
}

/// Starts the tasks that are added, until the starter is closed; returns when all of them have
/// ended.
fn start_added<'scope, C: Clock + Clone + Send>(
    run: &'scope Run<'scope, '_, C>,
    scope: &'scope Scope<'scope, '_>,
) {
    let Shared { starter, threads, .. } = run.shared();
    let mut running = Vec::new();
    while !starter.is_closed() {
        let rung = starter.rung();
        for slot in threads {
            let Some(wanted) = slot.take() else { continue };
            let thread = try_start_thread(scope, "punctual-task", move || {
                let (task, body) = *wanted;
                let mut work = Work::Body(body);
                work_in(&task, &mut work, run, (&ThreadBlock::default(), slot));
                if let Work::Body(body) = work {
                    slot.over(body);
                }
            });
            match thread {
                Ok(thread) => running.push(thread),
                Err(why) => slot.fail(why),
            }
        }
        // One that is not joined keeps its stack.
        let (ended, still): (Vec<_>, Vec<_>) =
            running.into_iter().partition(ScopedJoinHandle::is_finished);
        ended.into_iter().for_each(|thread| drop(thread.join()));
        running = still;
        starter.wait(rung);
    }
    // What panicked there was caught there.
    running.into_iter().for_each(|thread| drop(thread.join()));
}

/// The clock of an executive, made on its own thread.
pub(super) struct Clocking<'env, C> {
    /// Makes it.
    make: Box<dyn FnOnce() -> C + Send + 'env>,
    /// Takes in what was learned of its rate.
    discipline: fn(&mut C),
    /// Finds a quiet phase, where its time is the kernel's, until it is stopped.
    quiet: fn(&mut C, Period, &AtomicBool) -> Option<Quiet>,
    /// True where its time is CLOCK_MONOTONIC's.
    is_machine: bool,
}

impl<C> Clocking<'_, C> {
    /// With this quiet phase, whatever its clock.
    #[cfg(test)]
    pub(super) fn quiet_at(&mut self, quiet: fn(&mut C, Period, &AtomicBool) -> Option<Quiet>) {
        self.quiet = quiet;
    }

    /// True where its time is CLOCK_MONOTONIC's.
    pub(super) fn is_machine(&self) -> bool {
        self.is_machine
    }
}

impl<'env> Clocking<'env, MachineClock> {
    /// The machine's, calibrated.
    pub(super) fn machine() -> Self {
        let quiet = |clock: &mut MachineClock, period, stop: &AtomicBool| {
            quiet::place(&quiet::listen(clock, quiet::LISTEN, stop), period)
        };
        Self {
            make: Box::new(MachineClock::best),
            discipline: MachineClock::discipline,
            quiet,
            is_machine: true,
        }
    }
}

impl<'env, C: Clock + Send + 'env> Clocking<'env, C> {
    /// One that is given.
    pub(super) fn given(clock: C) -> Self {
        Self {
            make: Box::new(move || clock),
            discipline: |_| {},
            quiet: |_, _, _| None,
            is_machine: false,
        }
    }
}

/// Runs the supervisor until the executive ends; returns the outcomes of its tasks.
fn supervise<C: Clock + Clone + Send>(
    run: &Run<'_, '_, C>,
    supervisor: Supervisor,
    entries: &[usize],
) -> Option<Vec<TaskOutcome>> {
    let (shared, startup) = (run.shared(), run.startup());
    let epoch = startup.await_epoch(None)?;
    let processes = match supervisor.epoch(epoch).build() {
        Ok(processes) => processes,
        Err(why) => {
            startup.fail(why);
            return None;
        }
    };
    for (name, page) in processes.pages() {
        shared.put_page(entries, name, page);
    }
    let shortest: Period = processes.shortest().unwrap_or(IDLE);
    let thread = &shared.rules.thread;
    let mut clock = MachineClock::best();
    let phase_ns = epoch.as_ns() % shortest.as_ns();
    let place = LearnPlace { period: shortest, phase_ns, quiet: None };
    let warm_up = WarmUp::until(shared.ending.stop.flag());
    let ReadyWait { wait, warnings, .. } =
        warm_up.ready(thread.wait_policy(), place, &mut clock, MachineClock::discipline);
    startup.warn(warnings);
    startup.ready();
    let span = startup.await_go(false, None, || epoch)?;
    // Its own stop: that no process is left is no reason for the other tasks to stop.
    let stop = Stop::dated(&shared.ending.processes);
    let finished = processes.run_between((clock, wait), span, stop, &mut |_| ());
    let finished = finished.map_err(|why: Error| startup.fail(why)).ok()?;
    if let Over::Overran(task) = &finished.over {
        shared.ending.overran(task);
    }
    startup.refuse(&finished.refused);
    Some(finished.tasks)
}
