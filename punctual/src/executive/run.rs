//! An executive at work: threads up, all begin together, everything put back.
//!
//! Setup and the end; what runs in between is the loops'. A thread that cannot be started ends all
//! before anything has run.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
#[expect(clippy::disallowed_types, reason = "setup; no loop waits for it")]
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

use punctual_core::clock::Clock;
use punctual_core::cycle::{CancelToken, Ended};
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period, Span};
use punctual_engine::clocks::MachineClock;
use punctual_engine::counting::{CycleCounting, Keep, StatsPage, Words};
use punctual_engine::error::{Error, ErrorKind, Kind};
use punctual_engine::monitor::{Monitor, Progress, RunawayRule, above};
use punctual_engine::process::{Supervisor, TaskOutcome};
use punctual_engine::quiet::{self, Quiet};
use punctual_engine::recording::LoopRecording;
use punctual_engine::safety::check_period;
use punctual_engine::session::{Refusal, ThreadSession};
use punctual_engine::spawn;
use punctual_os::affinity::CpuMask;

use super::builder::Work;
use super::lane::{Lane, LaneEnd, LoopEnd};
use super::process::supervise;
use super::shared::Entry;
use super::shared::{Shared, pause};
use super::slot::Slot;
use super::thread::Released;
use super::thread::ThreadTask;
use super::{slot, thread};
use crate::loops::Phase;

/// From the end of setup to the first release, at least.
const LEAD: Span = Span::from_ms(1);

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
    /// The rings of recorded tasks, by entry.
    rings: Vec<Option<Words>>,
}

/// What the threads of one run share beside what handles see.
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
    pub(super) done: AtomicBool,
    setup: Mutex<Setup<C>>,
}

impl<'s, 'env, C: Clock + Clone + Send> Run<'s, 'env, C> {
    #[expect(clippy::disallowed_types, reason = "setup; no loop waits for it")]
    pub(super) fn new(
        shared: &'s Shared<'env>,
        discipline: fn(&mut C),
        strict: bool,
        (duration, grids): (Option<Span>, Vec<(Period, u64)>),
        (threads, waits_for_end): (usize, bool),
    ) -> Self {
        let setup = Setup {
            settled: None,
            times: None,
            failed: None,
            refused: Vec::new(),
            warnings: Vec::new(),
            rings: Vec::new(),
        };
        Self {
            shared,
            discipline,
            strict,
            duration,
            grids,
            waits_for_end,
            threads,
            ready: AtomicUsize::new(0),
            aborted: AtomicBool::new(false),
            done: AtomicBool::new(false),
            setup: Mutex::new(setup),
        }
    }

    fn with<R>(&self, read: impl FnOnce(&mut Setup<C>) -> R) -> R {
        read(&mut self.setup.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Nothing will run, because of this.
    pub(super) fn fail(&self, why: Error) {
        self.with(|setup| setup.failed.get_or_insert(why).kind() == ErrorKind::Thread);
        self.aborted.store(true, Ordering::Release);
        self.shared.ending.stop();
    }

    /// What failed, refusals and warnings.
    pub(super) fn outcome(self) -> (Option<Error>, Vec<Refusal>, Vec<String>) {
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

    pub(super) fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        self.with(|setup| setup.warnings.extend(warnings));
    }

    pub(super) fn record(&self, rings: Vec<Option<Words>>) {
        self.with(|setup| setup.rings = rings);
    }

    /// What keeps the cycles of a task, and those of its units where it has some.
    pub(super) fn counting(&self, entry: usize, epoch: Instant) -> Option<CycleCounting> {
        let Entry { stats, units, .. } = self.shared.tasks().entries[entry].clone();
        let Some(StatsPage::Own(stats)) = stats else { return None };
        let ring = self.with(|setup| setup.rings.get(entry).cloned().flatten());
        let counting = CycleCounting::on(stats, ring);
        Some(match &self.shared.rules.calendar {
            Some((calendar, _)) if units.len() > 1 => {
                let pages = units.into_iter().map(|(_, ready_ns, page)| (ready_ns, page));
                counting.by_unit(epoch, calendar.frame(), pages.collect())
            }
            _ => counting,
        })
    }

    /// The main loop has found its clock and its epoch.
    pub(super) fn settle(&self, clock: C, epoch: Instant) {
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
        while (self.waits_for_end || !self.shared.tasks().late.is_empty())
            && *ended == Ended::Finished
            && clock.now() < times.end
            && !self.shared.ending.stopped()
        {
            pause();
        }
    }

    /// Starts a thread; where there is none nothing will run.
    pub(super) fn start_thread<'scope, R: Send + 'scope>(
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

/// What the main loop begins with.
pub(super) struct MainStart<'env, C> {
    pub(super) clocking: Clocking<'env, C>,
    pub(super) phase: Phase,
    /// A divisor of all periods, as far as there is one.
    pub(super) common: Period,
    /// The shortest of all.
    pub(super) shortest: Option<Period>,
}

/// What all threads left.
pub(super) struct Ends {
    /// The main loop; none where it never began.
    pub(super) main: Option<LoopEnd>,
    /// Whether somebody stopped them before their time was up.
    pub(super) stopped: bool,
    pub(super) processes: Vec<TaskOutcome>,
}

/// The threads of one run.
pub(super) struct Team<'r, 'env, C> {
    pub(super) run: &'r Run<'r, 'env, C>,
    pub(super) threads: &'r [ThreadTask],
    pub(super) released: &'r [Released],
    pub(super) recording: Option<&'r LoopRecording>,
    /// How long each loop may make no progress.
    pub(super) bounds: Vec<Option<Span>>,
    /// Where the monitor runs.
    pub(super) aside: CpuMask,
}

impl<'r, 'env, C: Clock + Clone + Send> Team<'r, 'env, C> {
    /// Starts all threads and waits until they have ended; what they left, and what `beside`
    /// returned where there is one.
    pub(super) fn work<'scope, R>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        mut lanes: Vec<Lane<'env>>,
        (works, supervisor): (&'scope mut [Work<'env>], Option<(Supervisor, Vec<usize>)>),
        start: MainStart<'env, C>,
        beside: Option<impl FnOnce() -> R>,
    ) -> (Ends, Option<std::thread::Result<R>>) {
        let run = self.run;
        let monitor = run.start_thread(scope, "punctual-watch", || {
            above(&self.aside, || watch(run, &self.bounds, self.threads, self.released));
        });
        let others = lanes.split_off(1).into_iter();
        let others = others
            .filter_map(|lane| run.start_thread(scope, "punctual-loop", || other_loop(run, lane)));
        let others: Vec<_> = others.collect();
        let all = works.iter_mut().zip(self.threads.iter().zip(self.released)).enumerate();
        let tasks = all.filter_map(|(at, (work, (of, released)))| {
            run.start_thread(scope, "punctual-task", move || {
                thread::work(run, (at, of), work, released);
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let external = supervisor.and_then(|(supervisor, entries)| {
            run.start_thread(scope, "punctual-processes", move || {
                supervise(run, supervisor, &entries)
            })
        });
        let starter = run.start_thread(scope, "punctual-starter", || slot::start_added(run, scope));
        let (main, said) = self.main_and(scope, lanes.remove(0), start, beside);
        for other in others {
            // A loop that panicked outside its bodies is a fault of this library's.
            let _end = other.join().unwrap_or_else(|why| resume_unwind(why));
        }
        let stopped = run.shared.ending.stopped();
        run.shared.ending.stop();
        let (main, mut remotes) =
            main.map_or((None, Vec::new()), |(end, remotes)| (Some(end), remotes));
        thread::end(&remotes);
        // What panicked there was caught there.
        tasks.into_iter().for_each(|task| drop(task.join()));
        run.shared.starter.close();
        drop(starter.map(ScopedJoinHandle::join));
        run.shared.threads.iter().for_each(Slot::clear);
        if let Some((mut clock, _)) = run.await_settled() {
            let now = clock.now();
            let over = main.as_ref().map_or(now, |end| end.over);
            remotes.iter_mut().for_each(|post| post.close(now, over));
            // What came after the last one that it released.
            for (at, missed, end) in main.iter().flat_map(|end| &end.unreleased) {
                remotes[*at].kept.end(*missed, *end);
            }
        }
        let processes = external.and_then(|external| external.join().ok()).flatten();
        run.done.store(true, Ordering::Release);
        drop(monitor.map(ScopedJoinHandle::join));
        (Ends { main, stopped, processes: processes.unwrap_or_default() }, said)
    }

    /// The main loop here, or in a thread where something runs beside it here.
    fn main_and<'scope, R>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        lane: Lane<'env>,
        start: MainStart<'env, C>,
        beside: Option<impl FnOnce() -> R>,
    ) -> (Option<LaneEnd<'r>>, Option<std::thread::Result<R>>) {
        let Some(beside) = beside else { return (Some(self.main_loop(lane, start)), None) };
        let main = self.run.start_thread(scope, "punctual-loop", || self.main_loop(lane, start));
        // What it borrowed is not used again where it panicked.
        let ending = &self.run.shared.ending;
        let said = catch_unwind(AssertUnwindSafe(|| ending.callback(beside)));
        if said.is_err() {
            ending.stop();
        }
        let end = main.map(|main| main.join().unwrap_or_else(|why| resume_unwind(why)));
        (end, Some(said))
    }

    /// The main loop: finds the clock and the epoch for all.
    fn main_loop(&self, lane: Lane<'env>, start: MainStart<'env, C>) -> LaneEnd<'r> {
        let (run, MainStart { clocking, phase, common, shortest }) = (self.run, start);
        // A clock of the caller's may panic: the others wait for this thread.
        let _all = Abort(run);
        let session = ThreadSession::enter(lane.thread.pinned_to(), lane.thread.policy());
        run.refuse(session.refused());
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
        let all = self.threads.iter().zip(self.released);
        let remotes = all
            .filter_map(|(of, released)| released.post(of, epoch, run.counting(of.entry, epoch)?));
        let remotes: Vec<_> = remotes.collect();
        self.released.iter().for_each(Released::open);
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

/// A loop on another CPU.
fn other_loop<'r, 'env, C: Clock + Clone + Send>(
    run: &'r Run<'_, 'env, C>,
    lane: Lane<'env>,
) -> Option<LaneEnd<'r>> {
    let _all = Abort(run);
    let session = ThreadSession::enter(lane.thread.pinned_to(), lane.thread.policy());
    run.refuse(session.refused());
    let (clock, epoch) = run.await_settled()?;
    Some(lane.run(run, (clock, epoch, None), Vec::new(), session))
}

/// The monitor of all loops and of the tasks beside them.
pub(super) fn watch<C: Clock + Clone + Send>(
    run: &Run<'_, '_, C>,
    bounds: &[Option<Span>],
    threads: &[ThreadTask],
    released: &[Released],
) {
    let Some((mut clock, epoch)) = run.await_settled() else { return };
    let mut guards: Vec<RunawayRule<'_>> =
        threads.iter().zip(released).filter_map(|(of, at)| at.guard(of, epoch)).collect();
    let lanes = run.shared.lanes.iter().map(|lane| &lane.watched).zip(bounds.iter().copied());
    let bound = bounds.first().copied().flatten();
    let beside = run.shared.threads.iter().map(|slot| (&slot.watched, bound));
    let charges = lanes.chain(beside).filter_map(|(watched, bound)| {
        Some(Progress { watched, progress: move || watched.beats(), bound: bound? })
    });
    let loops: Vec<_> = charges.collect();
    let tokens = run.shared.lanes.iter().map(|lane| &lane.token);
    let tokens: Vec<&CancelToken> =
        tokens.chain(run.shared.threads.iter().map(|slot| &slot.token)).collect();
    let cancels = &run.shared.cancels;
    let monitor = Monitor { loops: &loops, rules: &mut guards, tokens: &tokens, cancels };
    monitor.run(|| clock.now(), &*run.shared.ending, &run.done, || ());
}

/// The clock of an executive, made on its own thread.
pub(super) struct Clocking<'env, C> {
    /// Makes it.
    pub(super) make: Box<dyn FnOnce() -> C + Send + 'env>,
    /// Takes in what was learned of its rate.
    pub(super) discipline: fn(&mut C),
    /// Finds a quiet phase, where its time is the kernel's.
    pub(super) quiet: fn(&mut C, Period) -> Option<Quiet>,
    /// Whether it is CLOCK_MONOTONIC's time.
    pub(super) is_machine: bool,
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
