//! An executive at work: threads up, all begin together, everything put back.
//!
//! Setup and the end; what runs in between is the loops'. A thread that cannot be started ends all
//! before anything has run.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
#[expect(clippy::disallowed_types, reason = "setup; no loop waits for it")]
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::cycle::{CancelToken, Ended};
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::WaitStatus;
use punctual_engine::clocks::MachineClock;
use punctual_engine::counting::{CycleCounting, Words};
use punctual_engine::duration::span;
use punctual_engine::error::{Error, ErrorKind, Kind};
use punctual_engine::monitor::{Monitor, RunawayRule, WatchedProgress, above, aside};
use punctual_engine::outcome::{End, Samples};
use punctual_engine::periodic::common_period;
use punctual_engine::process::{Supervisor, TaskOutcome};
use punctual_engine::quiet::{self, Quiet};
use punctual_engine::recording::LoopRecording;
use punctual_engine::safety::{Caution, check_period};
use punctual_engine::session::{ProcessSession, Refusal};
use punctual_engine::spawn;
use punctual_os::affinity::CpuMask;
use punctual_os::scheduler::SchedPolicy;

use super::Executive;
use super::builder::Work;
use super::handle::Handle;
use super::lane::{EndedLoop, Lane, LoopEnd};
use super::process::supervise;
use super::shared::{IDLE, RunState, Shared, pause};
use super::thread::{Starter, ThreadBlock, ThreadSlot, ThreadTask};
use crate::loops::Phase;
use crate::summary::Summary;

/// From the end of setup to the first release, at least.
const LEAD: Span = Span::from_ms(1);

/// Runs an executive for `duration` at most, with `beside` in the calling thread where there is
/// one, and the main loop in another one then. What it did, and what `beside` returned.
pub(super) fn drive<'env, C: Clock + Clone + Send + 'env, R>(
    executive: Executive<'env, C>,
    duration: Option<Duration>,
    beside: Option<impl FnOnce(&Handle<'env>) -> R>,
) -> Result<(Summary, Option<R>), Error> {
    let Executive { shared, closing, lanes, threads, supervisor, clocking, phase, .. } = executive;
    let Executive { samples, cautions, .. } = executive;
    let (threads, mut works): (Vec<ThreadTask>, Vec<Work<'env>>) = threads.into_iter().unzip();
    shared.ending.check_process()?;
    shared.enter(RunState::Starting);
    let main = &shared.rules.thread;
    let process = ProcessSession::ask(main.locks_memory(), main.holds_idle_states());
    let grids = lanes.iter().flat_map(Lane::grids);
    let grids = grids.chain(threads.iter().filter_map(ThreadTask::grid));
    let processes = supervisor.iter().flat_map(|(supervisor, _)| supervisor.grids());
    let grids = grids.chain(processes).collect();
    let run = Run {
        shared: &shared,
        discipline: clocking.discipline,
        strict: main.is_strict(),
        duration: duration.map(span),
        grids,
        waits_for_end: !threads.is_empty() || supervisor.is_some(),
        threads: lanes.len() + threads.len() + usize::from(supervisor.is_some()),
        ready: AtomicUsize::new(0),
        aborted: AtomicBool::new(false),
        done: AtomicBool::new(false),
        setup: Setup::shared(),
    };
    run.refuse(process.refused());
    run.warn(cautions.iter().map(Caution::to_string));
    let recording = samples.map(|path| record(&run, path, &lanes, &threads)).transpose()?;
    let blocks: Vec<ThreadBlock> = threads.iter().map(|_| ThreadBlock::new()).collect();
    let handle = Handle { shared: Arc::clone(&shared) };
    let cpus = lanes.iter().filter_map(Lane::cpu).chain(threads.iter().filter_map(ThreadTask::cpu));
    let team = Team {
        run: &run,
        threads: &threads,
        blocks: &blocks,
        recording: recording.as_ref(),
        bounds: lanes.iter().map(Lane::bound).collect(),
        aside: aside(&cpus.collect::<Vec<u32>>()),
    };
    let periods: Vec<Period> = lanes.iter().flat_map(Lane::periods).collect();
    let common = common_period(&periods).unwrap_or(IDLE);
    let shortest = periods.iter().copied().chain(threads.iter().map(ThreadTask::period)).min();
    let start = MainStart { clocking, phase, common, shortest };
    let beside = beside.map(|beside| || beside(&handle));
    let (ends, returned) = std::thread::scope(|scope| {
        team.work(scope, lanes, (&mut works, supervisor), start, beside)
    });
    drop(closing);
    let samples = recording.and_then(LoopRecording::finish);
    let summary = summary(run, ends, (&threads, &blocks), samples);
    let returned = returned.map(|returned| returned.unwrap_or_else(|why| resume_unwind(why)));
    Ok((summary?, returned))
}

/// Begins to record; which task has which ring.
fn record<C: Clock + Clone + Send>(
    run: &Run<'_, '_, C>,
    path: PathBuf,
    lanes: &[Lane<'_>],
    threads: &[ThreadTask],
) -> Result<LoopRecording, Error> {
    let of_threads = threads.iter().filter_map(|thread| Some((thread.entry(), thread.facts()?)));
    let (entries, facts): (Vec<usize>, Vec<_>) =
        lanes.iter().flat_map(Lane::facts).chain(of_threads).unzip();
    let (recording, rings) = LoopRecording::start(path, facts)?;
    run.with(|setup| setup.rings = entries.into_iter().zip(rings).collect());
    Ok(recording)
}

/// Sums up what it did, once all threads have ended.
///
/// # Errors
/// Why nothing has run.
fn summary<C: Clock + Clone + Send>(
    run: Run<'_, '_, C>,
    ends: Ends,
    (threads, blocks): (&[ThreadTask], &[ThreadBlock]),
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
        wait,
        processes,
    })
}

/// When the first release is due at the earliest, and from when on none runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) from: Instant,
    pub(super) end: Instant,
}

/// How far the setup of all threads is.
struct Setup<C> {
    /// The clock and the epoch, once the main loop has found them.
    settled: Option<(C, Instant)>,
    /// When all begin.
    times: Option<Times>,
    /// Nothing will run, and why.
    failed: Option<Error>,
    refused: Vec<Refusal>,
    warnings: Vec<String>,
    /// The rings of recorded tasks, each with the task's number.
    rings: Vec<(usize, Words)>,
}

/// The state of one run that its threads share, beside what handles see.
#[expect(clippy::disallowed_types, reason = "setup; no loop waits for it")]
pub(super) struct Run<'s, 'env, C> {
    pub(super) shared: &'s Shared<'env>,
    pub(super) discipline: fn(&mut C),
    pub(super) strict: bool,
    duration: Option<Span>,
    /// Period and phase of all that has releases, ns.
    grids: Vec<(Period, u64)>,
    /// Whether tasks run elsewhere, which have until the end.
    waits_for_end: bool,
    threads: usize,
    ready: AtomicUsize,
    aborted: AtomicBool,
    done: AtomicBool,
    setup: Mutex<Setup<C>>,
}

impl<C> Setup<C> {
    /// Nothing is set up yet.
    #[expect(clippy::disallowed_types, reason = "setup; no loop waits for it")]
    fn shared() -> Mutex<Self> {
        Mutex::new(Self {
            settled: None,
            times: None,
            failed: None,
            refused: Vec::new(),
            warnings: Vec::new(),
            rings: Vec::new(),
        })
    }
}

impl<C: Clock + Clone + Send> Run<'_, '_, C> {
    fn with<R>(&self, read: impl FnOnce(&mut Setup<C>) -> R) -> R {
        read(&mut self.setup.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Nothing will run, because of this.
    pub(super) fn fail(&self, why: Error) {
        self.with(|setup| setup.failed.get_or_insert(why).kind() == ErrorKind::Thread);
        self.aborted.store(true, Ordering::Release);
        self.shared.ending.stop();
    }

    /// The error that nothing ran for, the refusals and the warnings.
    fn outcome(self) -> (Option<Error>, Vec<Refusal>, Vec<String>) {
        let Setup { failed, refused, warnings, .. } =
            self.setup.into_inner().unwrap_or_else(PoisonError::into_inner);
        (failed, refused, warnings)
    }

    /// Takes note of what the kernel refused; each once.
    pub(super) fn refuse(&self, refused: &[Refusal]) {
        self.with(|setup| {
            for refusal in refused {
                if !setup.refused.contains(refusal) {
                    setup.refused.push(*refusal);
                }
            }
        });
    }

    /// Takes note of warnings.
    pub(super) fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        self.with(|setup| setup.warnings.extend(warnings));
    }

    /// The observer of a task's cycles; `None` for a process.
    pub(super) fn counting(&self, entry: usize, epoch: Instant) -> Option<CycleCounting> {
        let ring = self.with(|setup| {
            let mut rings = setup.rings.iter();
            rings.find(|(number, _)| *number == entry).map(|(_, ring)| ring.clone())
        });
        self.shared.counting(entry, epoch, ring)
    }

    /// The main loop has found its clock and its epoch.
    fn settle(&self, clock: C, epoch: Instant) {
        self.with(|setup| setup.settled = Some((clock, epoch)));
    }

    /// The clock and the epoch, once they are found; `None` where nothing will run.
    pub(super) fn await_settled(&self) -> Option<(C, Instant)> {
        loop {
            if self.aborted.load(Ordering::Acquire) {
                return None;
            }
            if let Some(settled) = self.with(|setup| setup.settled.clone()) {
                return Some(settled);
            }
            pause();
        }
    }

    /// One more thread is ready.
    pub(super) fn ready(&self) {
        self.ready.fetch_add(1, Ordering::Release);
    }

    /// Waits until all begin, and says when; `None` where nothing will run. The main loop decides.
    pub(super) fn await_go(&self, is_main: bool, now: impl FnOnce() -> Instant) -> Option<Times> {
        if is_main {
            while self.ready.load(Ordering::Acquire) < self.threads {
                if self.aborted.load(Ordering::Acquire) {
                    return None;
                }
                pause();
            }
            if self.strict {
                let refused = self.with(|setup| setup.refused.clone());
                if !refused.is_empty() {
                    self.fail(Kind::Refused(refused).into());
                    return None;
                }
            }
            let from = now() + LEAD;
            let epoch = self.with(|setup| {
                let epoch = setup.settled.as_ref().map_or(from, |settled| settled.1);
                setup.times = Some(self.times(epoch, from));
                epoch
            });
            self.shared.begin(epoch);
        }
        loop {
            if self.aborted.load(Ordering::Acquire) {
                return None;
            }
            if let Some(times) = self.with(|setup| setup.times) {
                return Some(times);
            }
            pause();
        }
    }

    /// When all begin, at `from` at the earliest, and when they end.
    fn times(&self, epoch: Instant, from: Instant) -> Times {
        let next = |(period, phase_ns): (Period, u64), from| {
            let first = Instant::from_ns(epoch.as_ns().saturating_add(phase_ns));
            let releases = Releases::new(first, period);
            releases.release(releases.at_or_after(from))
        };
        // No frame is begun in its middle, and nothing else runs before the first one: of each task
        // as many releases are within the duration as it has room for.
        let frame = self.shared.rules.calendar.as_ref().map(|(calendar, _)| calendar.frame());
        let from = frame.map_or(from, |frame| next((frame, 0), from));
        let first = self.grids.iter().map(|grid| next(*grid, from)).min().unwrap_or(from);
        let end = self.duration.map_or(Instant::from_ns(u64::MAX), |span| first + span);
        Times { from, end }
    }

    /// A loop has come to its end: where tasks run elsewhere they have until the end of all.
    pub(super) fn rest(&self, ended: &Ended, times: &Times, clock: &mut C) {
        while (self.waits_for_end || self.shared.has_added())
            && *ended == Ended::Finished
            && clock.now() < times.end
            && !self.shared.ending.stopped()
        {
            pause();
        }
    }

    /// Starts a thread; where there is none nothing will run.
    fn start_thread<'scope, R: Send + 'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        run: impl FnOnce() -> R + Send + 'scope,
    ) -> Option<ScopedJoinHandle<'scope, R>> {
        self.try_start_thread(scope, name, run).map_err(|why| self.fail(why)).ok()
    }

    /// Starts a thread while all run.
    pub(super) fn try_start_thread<'scope, R: Send + 'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        run: impl FnOnce() -> R + Send + 'scope,
    ) -> Result<ScopedJoinHandle<'scope, R>, Error> {
        spawn::scoped(scope, name, run).map_err(|why| Kind::Thread(why).into())
    }
}

/// What the main loop is given at its start.
struct MainStart<'env, C> {
    clocking: Clocking<'env, C>,
    phase: Phase,
    /// A divisor of all periods, as far as there is one.
    common: Period,
    /// The shortest of all.
    shortest: Option<Period>,
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
    /// By thread.
    blocks: &'r [ThreadBlock],
    recording: Option<&'r LoopRecording>,
    /// How long each loop may make no progress.
    bounds: Vec<Option<Span>>,
    /// Where the monitor runs.
    aside: CpuMask,
}

impl<'r, 'env, C: Clock + Clone + Send> Team<'r, 'env, C> {
    /// Starts all threads and waits until they have ended; what they left, and what `beside`
    /// returned where there is one.
    fn work<'scope, R>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        mut lanes: Vec<Lane<'env>>,
        (works, supervisor): (&'scope mut [Work<'env>], Option<(Supervisor, Vec<usize>)>),
        start: MainStart<'env, C>,
        beside: Option<impl FnOnce() -> R>,
    ) -> (Ends, Option<std::thread::Result<R>>) {
        let run = self.run;
        let monitor = run.start_thread(scope, "punctual-watch", || {
            above(&self.aside, || watch(run, &self.bounds, self.threads, self.blocks));
        });
        let side_lanes = lanes.split_off(1).into_iter();
        let side_loops: Vec<_> = side_lanes
            .filter_map(|lane| run.start_thread(scope, "punctual-loop", || side_loop(run, lane)))
            .collect();
        let threads = works.iter_mut().zip(self.threads.iter().zip(self.blocks)).enumerate();
        let tasks = threads.filter_map(|(at, (work, (task, block)))| {
            run.start_thread(scope, "punctual-task", move || task.work(at, work, run, block))
        });
        let tasks: Vec<_> = tasks.collect();
        let external = supervisor.and_then(|(supervisor, entries)| {
            run.start_thread(scope, "punctual-processes", move || {
                supervise(run, supervisor, &entries)
            })
        });
        let starter = run.start_thread(scope, "punctual-starter", || Starter::run(run, scope));
        let (mut main, returned) = self.main_and(scope, lanes.remove(0), start, beside);
        for side_loop in side_loops {
            // A loop that panicked outside its bodies is a fault of this library's.
            let _end = side_loop.join().unwrap_or_else(|why| resume_unwind(why));
        }
        let stopped = run.shared.ending.stopped();
        run.shared.ending.stop();
        if let Some(main) = &main {
            main.end_remotes();
        }
        // What panicked there was caught there.
        tasks.into_iter().for_each(|task| drop(task.join()));
        run.shared.starter.close();
        drop(starter.map(ScopedJoinHandle::join));
        run.shared.threads.iter().for_each(ThreadSlot::clear);
        if let Some((mut clock, _)) = run.await_settled()
            && let Some(main) = &mut main
        {
            main.close_remotes(clock.now());
        }
        let processes = external.and_then(|external| external.join().ok()).flatten();
        run.done.store(true, Ordering::Release);
        drop(monitor.map(ScopedJoinHandle::join));
        let (main, processes) = (main.map(EndedLoop::into_end), processes.unwrap_or_default());
        (Ends { main, stopped, processes }, returned)
    }

    /// The main loop here, or in a thread where something runs beside it here.
    fn main_and<'scope, R>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        lane: Lane<'env>,
        start: MainStart<'env, C>,
        beside: Option<impl FnOnce() -> R>,
    ) -> (Option<EndedLoop<'r>>, Option<std::thread::Result<R>>) {
        let Some(beside) = beside else { return (Some(self.main_loop(lane, start)), None) };
        let main = self.run.start_thread(scope, "punctual-loop", || self.main_loop(lane, start));
        // What it borrowed is not used again where it panicked.
        let ending = &self.run.shared.ending;
        let returned = catch_unwind(AssertUnwindSafe(|| ending.callback(beside)));
        if returned.is_err() {
            ending.stop();
        }
        let end = main.map(|main| main.join().unwrap_or_else(|why| resume_unwind(why)));
        (end, Some(returned))
    }

    /// The main loop: finds the clock and the epoch for all.
    fn main_loop(&self, lane: Lane<'env>, start: MainStart<'env, C>) -> EndedLoop<'r> {
        let (run, MainStart { clocking, phase, common, shortest }) = (self.run, start);
        // A clock of the caller's may panic: the others wait for this thread.
        let _abort = Abort(run);
        let session = lane.enter(run);
        let mut clock = run.shared.ending.callback(clocking.make);
        if let Some(Err(why)) = shortest.map(|period| check_period(period, &mut clock)) {
            run.fail(why);
        }
        let quiet = match phase {
            Phase::Quiet => (clocking.quiet)(&mut clock, common),
            _ => None,
        };
        let epoch = Instant::from_ns(match (phase, quiet) {
            (Phase::At(ns), _) => ns,
            (_, quiet) => quiet.map_or(0, |quiet| quiet.phase_ns),
        });
        let threads = self.threads.iter().zip(self.blocks);
        let remotes = threads.filter_map(|(task, block)| {
            block.remote(task, epoch, run.counting(task.entry(), epoch)?)
        });
        let remotes: Vec<_> = remotes.collect();
        self.blocks.iter().for_each(ThreadBlock::open);
        if let Some(recording) = self.recording {
            recording.begin(epoch);
        }
        run.settle(clock.clone(), epoch);
        lane.run(run, (clock, epoch, quiet), remotes, session)
    }
}

/// Ends all where the thread that has it panics.
struct Abort<'a, 's, 'env, C: Clock + Clone + Send>(&'a Run<'s, 'env, C>);

impl<C: Clock + Clone + Send> Drop for Abort<'_, '_, '_, C> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .fail(Kind::Panicked("the executive".to_owned(), "in its setup".to_owned()).into());
        }
    }
}

/// Runs a loop on another CPU than the main one's to its end.
fn side_loop<'env, C: Clock + Clone + Send>(
    run: &Run<'_, 'env, C>,
    lane: Lane<'env>,
) -> Option<()> {
    let _abort = Abort(run);
    let session = lane.enter(run);
    let (clock, epoch) = run.await_settled()?;
    let _end = lane.run(run, (clock, epoch, None), Vec::new(), session);
    Some(())
}

/// The monitor of all loops and of the tasks beside them.
fn watch<C: Clock + Clone + Send>(
    run: &Run<'_, '_, C>,
    bounds: &[Option<Span>],
    threads: &[ThreadTask],
    blocks: &[ThreadBlock],
) {
    let Some((mut clock, epoch)) = run.await_settled() else { return };
    let Shared { lanes, threads: slots, cancels, ending, .. } = run.shared;
    let threads = threads.iter().zip(blocks);
    let mut rules: Vec<RunawayRule<'_>> =
        threads.filter_map(|(task, block)| block.rule(task, epoch)).collect();
    let bound = bounds.first().copied().flatten();
    let of_lanes = lanes.iter().map(|lane| &lane.watched).zip(bounds.iter().copied());
    let of_threads = slots.iter().map(|slot| (slot.watched(), bound));
    let loops = of_lanes.chain(of_threads).filter_map(|(watched, bound)| {
        Some(WatchedProgress { watched, progress: move || watched.beats(), bound: bound? })
    });
    let loops: Vec<_> = loops.collect();
    let tokens = lanes.iter().map(|lane| &lane.token);
    let tokens: Vec<&CancelToken> = tokens.chain(slots.iter().map(ThreadSlot::token)).collect();
    let monitor = Monitor { loops: &loops, rules: &mut rules, tokens: &tokens, cancels };
    monitor.run(|| clock.now(), &**ending, &run.done, || ());
}

/// The clock of an executive, made on its own thread.
pub(super) struct Clocking<'env, C> {
    /// Makes it.
    make: Box<dyn FnOnce() -> C + Send + 'env>,
    /// Takes in what was learned of its rate.
    discipline: fn(&mut C),
    /// Finds a quiet phase, where its time is the kernel's.
    quiet: fn(&mut C, Period) -> Option<Quiet>,
    /// True where its time is CLOCK_MONOTONIC's.
    is_machine: bool,
}

impl<C> Clocking<'_, C> {
    /// True where its time is CLOCK_MONOTONIC's.
    pub(super) fn is_machine(&self) -> bool {
        self.is_machine
    }
}

impl<'env> Clocking<'env, MachineClock> {
    /// The machine's, calibrated.
    pub(super) fn machine() -> Self {
        let quiet = |clock: &mut MachineClock, period| {
            quiet::place(&quiet::listen(clock, quiet::LISTEN), period)
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
            quiet: |_, _| None,
            is_machine: false,
        }
    }
}
