//! The start of all threads of one run: each is set up, all begin together; where one cannot be
//! started nothing runs.

#[expect(clippy::disallowed_types, reason = "setup; no loop waits for it")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use punctual_core::clock::Clock;
use punctual_core::time::Instant;
use punctual_engine::counting::Words;
use punctual_engine::error::{Error, ErrorKind, Kind};
use punctual_engine::monitor::Watched;
use punctual_engine::release_span::{ReleaseSpan, RunLength};
use punctual_engine::session::Refusal;
use punctual_engine::spawn;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use super::ending::Ending;

/// The time between two looks of a thread that is no loop at the thing that it waits for, ns.
const LOOK_NS: u64 = 500_000;

/// Runs a step of the setup of the calling thread, whose progress is `watched`; `None` where nobody
/// looks at it.
pub(super) fn in_setup<R>(watched: Option<&Watched>, step: impl FnOnce() -> R) -> R {
    match watched {
        Some(watched) => watched.in_setup(step),
        None => step(),
    }
}

/// Sleeps from one look to the next.
pub(super) fn pause() {
    // A signal that cuts this short costs an extra look.
    let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + LOOK_NS);
}

/// The progress of the setup of all threads.
struct Setup<C> {
    /// The clock and the likely epoch, once the main loop has found them.
    settled: Option<(C, Instant)>,
    /// The epoch, once the main loop's wait has learned: it may have met the kernel's tick.
    epoch: Option<Instant>,
    /// The span of all releases; `None` until it is decided.
    span: Option<ReleaseSpan>,
    /// The error for which nothing will run.
    failed: Option<Error>,
    refused: Vec<Refusal>,
    warnings: Vec<String>,
    /// The rings of recorded tasks, each with the task's number.
    rings: Vec<(usize, Words)>,
}

/// The start of all threads of one run, on a clock that the main loop finds for all.
#[expect(clippy::disallowed_types, reason = "setup; no loop waits for it")]
pub(super) struct Startup<C> {
    ending: Arc<Ending>,
    length: RunLength,
    /// The number of threads that must be ready before all begin.
    threads: usize,
    /// Takes in what was learned of the clock's rate.
    discipline: fn(&mut C),
    /// True where nothing runs once the kernel has refused something.
    strict: bool,
    ready: AtomicUsize,
    aborted: AtomicBool,
    /// True once the epoch is fixed, or nothing will run.
    is_found: AtomicBool,
    setup: Mutex<Setup<C>>,
}

impl<C> Setup<C> {
    /// Nothing is set up yet.
    #[expect(clippy::disallowed_types, reason = "setup; no loop waits for it")]
    fn shared() -> Mutex<Self> {
        Mutex::new(Self {
            settled: None,
            epoch: None,
            span: None,
            failed: None,
            refused: Vec::new(),
            warnings: Vec::new(),
            rings: Vec::new(),
        })
    }
}

impl<C: Clock + Clone + Send> Startup<C> {
    /// The start of this many threads, none of which is ready.
    pub(super) fn new(
        ending: Arc<Ending>,
        length: RunLength,
        threads: usize,
        discipline: fn(&mut C),
        strict: bool,
    ) -> Self {
        let [aborted, is_found] = [(); 2].map(|()| AtomicBool::new(false));
        let (ready, setup) = (AtomicUsize::new(0), Setup::shared());
        Self { ending, length, threads, discipline, strict, ready, aborted, is_found, setup }
    }

    /// The stop of the run.
    pub(super) fn ending(&self) -> &Ending {
        &self.ending
    }

    /// The function that takes in what was learned of the clock's rate.
    pub(super) fn discipline(&self) -> fn(&mut C) {
        self.discipline
    }

    /// True where nothing runs once the kernel has refused something.
    pub(super) fn is_strict(&self) -> bool {
        self.strict
    }

    fn with<R>(&self, read: impl FnOnce(&mut Setup<C>) -> R) -> R {
        read(&mut self.setup.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Nothing will run, because of this.
    pub(super) fn fail(&self, why: Error) {
        self.with(|setup| setup.failed.get_or_insert(why).kind() == ErrorKind::Thread);
        self.aborted.store(true, Ordering::Release);
        self.is_found.store(true, Ordering::Release);
        self.ending.stop();
    }

    /// Has nothing run where the calling thread panics before this is dropped: the others wait for
    /// its setup.
    pub(super) fn abort_on_panic(&self) -> Abort<'_, C> {
        Abort(self)
    }

    /// True once the epoch is fixed, or nothing will run.
    pub(super) fn is_found(&self) -> &AtomicBool {
        &self.is_found
    }

    /// The error for which nothing ran, the refusals and the warnings.
    pub(super) fn outcome(self) -> (Option<Error>, Vec<Refusal>, Vec<String>) {
        let Setup { failed, refused, warnings, .. } =
            self.setup.into_inner().unwrap_or_else(PoisonError::into_inner);
        (failed, refused, warnings)
    }

    /// Takes note of the kernel's refusals; each once.
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

    /// Takes note of a warning, unless it is noted already.
    pub(super) fn warn_once(&self, warning: Option<String>) {
        self.with(|setup| {
            let new = warning.filter(|words| !setup.warnings.contains(words));
            setup.warnings.extend(new);
        });
    }

    /// Tasks are recorded in these rings, each with the task's number.
    pub(super) fn record(&self, rings: Vec<(usize, Words)>) {
        self.with(|setup| setup.rings = rings);
    }

    /// The ring of the task of this number, where it is recorded.
    pub(super) fn ring(&self, entry: usize) -> Option<Words> {
        self.with(|setup| {
            let mut rings = setup.rings.iter();
            rings.find(|(number, _)| *number == entry).map(|(_, ring)| ring.clone())
        })
    }

    /// Notes the clock that the main loop has found, and the likely epoch.
    pub(super) fn settle(&self, clock: C, epoch: Instant) {
        self.with(|setup| setup.settled = Some((clock, epoch)));
    }

    /// Notes the epoch, which stays.
    pub(super) fn settle_epoch(&self, epoch: Instant) {
        self.with(|setup| setup.epoch = Some(epoch));
        self.is_found.store(true, Ordering::Release);
    }

    /// Waits for the clock and the likely epoch, for waits to learn on; `None` where nothing will
    /// run. This and the next two are a step of the setup of the thread that is `watched`.
    pub(super) fn await_settled(&self, watched: Option<&Watched>) -> Option<(C, Instant)> {
        self.await_some(watched, |setup| setup.settled.clone())
    }

    /// Waits for the epoch, until the main loop's wait has learned; `None` where nothing will run.
    pub(super) fn await_epoch(&self, watched: Option<&Watched>) -> Option<Instant> {
        self.await_some(watched, |setup| setup.epoch)
    }

    fn await_some<R>(
        &self,
        watched: Option<&Watched>,
        read: impl Fn(&mut Setup<C>) -> Option<R>,
    ) -> Option<R> {
        let found = || loop {
            if self.aborted.load(Ordering::Acquire) {
                return None;
            }
            if let Some(found) = self.with(&read) {
                return Some(found);
            }
            pause();
            watched.inspect(|watched| watched.beat());
        };
        in_setup(watched, found)
    }

    /// One more thread is ready.
    pub(super) fn ready(&self) {
        self.ready.fetch_add(1, Ordering::Release);
    }

    /// Waits until all begin, and returns the span of their releases; `None` where nothing will
    /// run. The main loop decides.
    pub(super) fn await_go(
        &self,
        is_main: bool,
        watched: Option<&Watched>,
        now: impl FnOnce() -> Instant,
    ) -> Option<ReleaseSpan> {
        if is_main {
            let is_ready = || self.ready.load(Ordering::Acquire) >= self.threads;
            self.await_some(watched, |_| is_ready().then_some(()))?;
            if self.strict {
                let refused = self.with(|setup| setup.refused.clone());
                if !refused.is_empty() {
                    self.fail(Kind::Refused(refused).into());
                    return None;
                }
            }
            let ready = now();
            self.with(|setup| {
                let epoch = setup.epoch.unwrap_or(ready);
                setup.span = Some(self.length.span(epoch, ready));
            });
        }
        self.await_some(watched, |setup| setup.span)
    }

    /// Starts a thread; where there is none nothing will run.
    pub(super) fn start_thread<'scope, R: Send + 'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        run: impl FnOnce() -> R + Send + 'scope,
    ) -> Option<ScopedJoinHandle<'scope, R>> {
        try_start_thread(scope, name, run).map_err(|why| self.fail(why)).ok()
    }
}

/// Starts a thread while all run.
pub(super) fn try_start_thread<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    run: impl FnOnce() -> R + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, R>, Error> {
    spawn::scoped(scope, name, run).map_err(|why| Kind::Thread(why).into())
}

/// A start that fails where the thread that has it panics.
pub(super) struct Abort<'a, C: Clock + Clone + Send>(&'a Startup<C>);

impl<C: Clock + Clone + Send> Drop for Abort<'_, C> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (who, when) = ("the executive".to_owned(), "in its setup".to_owned());
            self.0.fail(Kind::Panicked(who, when).into());
        }
    }
}
