//! An executive at work: threads up, all begin together, everything put back.
//!
//! Setup and the end; what runs in between is the loops'. A thread that cannot be started ends all
//! before anything has run.

#[expect(clippy::disallowed_types, reason = "setup; no loop waits for it")]
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

use punctual_core::clock::Clock;
use punctual_core::executive::Ended;
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period, Span};

use super::entries::Entry;
use super::shared::{Shared, pause};
use crate::counting::{Counting, Stats as Memory, Words};
use crate::error::{Error, Kind};
use crate::session::Refusal;
use crate::spawn;

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
        self.with(|setup| setup.failed.get_or_insert(why).is_thread());
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
    pub(super) fn counting(&self, entry: usize, epoch: Instant) -> Option<Counting> {
        let Entry { stats, units, .. } = self.shared.tasks().entries[entry].clone();
        let Some(Memory::Own(stats)) = stats else { return None };
        let ring = self.with(|setup| setup.rings.get(entry).cloned().flatten());
        let counting = Counting::on(stats, ring);
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
