//! The threads of an executive: all begin together, and all end.
//!
//! In the thread that runs it, which is the main loop's or waits for that.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::thread::{Scope, ScopedJoinHandle};

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Period, Span};
use punctual_os::affinity::CpuMask;

use super::clocking::Clocking;
use super::lane::{Lane, LaneEnd, LoopEnd};
use super::late;
use super::outside::supervise;
use super::released::Released;
use super::run::Run;
use super::slot::Slot;
use super::thread;
use super::thread_task::ThreadTask;
use super::watch::watch;
use super::work::Work;
use crate::checks::check_period;
use crate::counting::Keep;
use crate::error::Kind;
use crate::loops::Phase;
use crate::monitor::above;
use crate::process::{Supervisor, TaskOutcome};
use crate::recording::Recording;
use crate::session::ThreadSession;

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
    pub(super) recording: Option<&'r Recording>,
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
        let starter = run.start_thread(scope, "punctual-starter", || late::start(run, scope));
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
        let session = ThreadSession::enter(lane.thread.cpu, lane.thread.policy());
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
    let session = ThreadSession::enter(lane.thread.cpu, lane.thread.policy());
    run.refuse(session.refused());
    let (clock, epoch) = run.await_settled()?;
    Some(lane.run(run, (clock, epoch, None), Vec::new(), session))
}
