//! One periodic loop in the caller's own thread: it calls [`Loop::wait`], works, and calls it
//! again.
//!
//! For whoever has one period and one thread. Makes the calling thread a real-time one, finds the
//! quiet phase, lets the wait learn, and then wakes at each release: a cycle that runs over its
//! next release makes that one missed, and the phase stays. Between the first wait and the last
//! nothing is allocated, and nothing called but the clock.

mod builder;
mod control;
mod handle;
mod properties;
mod start;
mod warm_up;

use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::executive::Ended;
use punctual_core::executive::many::Flow;
use punctual_core::gate::Gate;
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::{Strategy, Wait};

use crate::clocks::MachineClock;
use crate::counting::Counting;
use crate::neighbours::Neighbour;
use crate::quiet::Quiet;
use crate::recording::Recording;
use crate::rt_thread::span;
use crate::session::{ProcessSession, Refusal, ThreadSession};
use crate::summary::{End, Summary};

pub use crate::monitor::Watchdog;
pub use builder::{LoopBuilder, Phase};
pub use control::Control;
pub use handle::LoopHandle;
pub use punctual_core::executive::many::Cycle;
pub use start::{LISTEN, strategy};
pub(crate) use warm_up::ready;
pub use warm_up::{WARM_UP_MAX, warm_up};

/// From the first wait to the first release, at least: time to get into the wait.
const LEAD: Span = Span::from_us(100);

/// A periodic loop on the thread that started it.
///
/// A child that fork(2) makes of its process has the memory, not the threads, and SCHED_OTHER:
/// there [`Loop::wait`] gives `None`, [`Loop::finish`] says [`End::Forked`], and the drop does
/// nothing.
///
/// ```
/// use punctual::{Loop, Period};
/// # use punctual::{Phase, RtThread, WaitPolicy};
///
/// let each_ms = Loop::builder(Period::hz(1_000).expect("in range"));
/// # // What the defaults take two seconds to find out.
/// # let thread = RtThread::any().wait(WaitPolicy::sleep());
/// # let each_ms = each_ms.phase(Phase::Zero).thread(thread);
/// let mut each_ms = each_ms.start()?;
/// while let Some(cycle) = each_ms.wait() {
///     // What is to be done, for cycle.dt since it was done last.
///     if cycle.n >= 20 {
///         break;
///     }
/// }
/// println!("{}", each_ms.finish());
/// # Ok::<(), punctual::Error>(())
/// ```
///
/// On the time of TAI, a PTP clock or a bus ([`crate::follow`]), by the clock that it is given:
///
/// ```
/// use punctual::follow::{Follow, Reference};
/// use punctual::{Loop, Period};
/// # use punctual::{RtThread, WaitPolicy};
///
/// let follower = Follow::new(Reference::Tai).start()?;
/// let each_ms = Loop::builder(Period::hz(1_000).expect("in range"));
/// # let each_ms = each_ms.thread(RtThread::any().wait(WaitPolicy::sleep()));
/// let mut each_ms = each_ms.start_on(follower.clock())?;
/// let cycle = each_ms.wait().expect("it is not stopped");
/// assert_eq!(cycle.release.as_ns() % 1_000_000, 0, "a whole millisecond of TAI");
/// # Ok::<(), punctual::Error>(())
/// ```
#[derive(Debug)]
pub struct Loop<C: Clock = MachineClock> {
    period: Period,
    phase_ns: u64,
    quiet: Option<Quiet>,
    gate: Gate<C, Strategy, Counting>,
    begun: bool,
    /// Whether its time was up.
    finished: bool,
    /// The instant of its release 0; zero before the first wait.
    first: Instant,
    handle: LoopHandle,
    // In the order in which they end.
    recording: Option<Recording>,
    _watchdog: Option<Watchdog>,
    session: ThreadSession,
    process: ProcessSession,
    _neighbour: Neighbour,
    refused: Vec<Refusal>,
    warnings: Vec<String>,
}

impl Loop {
    /// A loop of this period to be.
    ///
    /// # Real-time: setup only
    pub fn builder(period: Period) -> LoopBuilder {
        LoopBuilder::new(period)
    }

    /// What its stamps are taken with.
    ///
    /// # Real-time: setup only
    #[doc(hidden)]
    pub fn clock_name(&self) -> &'static str {
        self.gate.clock.name()
    }
}

impl<C: Clock> Loop<C> {
    /// Waits for the next release to come and returns its cycle; `None` once the loop was stopped.
    /// After a stall the oldest release runs; other releases that passed since the last cycle are
    /// missed, and counted.
    ///
    /// The first call fixes which release is the first, one that is still to come, and starts the
    /// watchdog. A cycle is counted at the beginning of the next wait, so that nothing but the
    /// heartbeat stands between the wake and the return: readers are a cycle behind.
    ///
    /// # Real-time: in loop, waits
    #[inline]
    pub fn wait(&mut self) -> Option<Cycle<'static>> {
        if !self.begun {
            self.begin();
        }
        // A wait that need not sleep looks at its release before it looks at the flag.
        if self.handle.stopped() {
            self.gate.finish(&self.handle.control.shared.stop);
            return None;
        }
        let stalls = Wait::<C>::take_stalls(&mut self.gate.wait);
        if stalls.count > 0 {
            self.handle.control.stalled(stalls);
        }
        let cycle = self.gate.wait(&self.handle.control.shared.stop);
        self.handle.control.beat();
        cycle.map_err(|ended| self.finished = ended == Ended::Finished).ok()
    }

    /// Runs `body` in each cycle for `duration`, from its first release on where nothing has run
    /// yet, or until it is stopped; [`Flow::Stop`] from the body stops it. Ends the loop as
    /// [`Loop::finish`] does.
    ///
    /// A panic of the body ends the loop in order and goes on in the caller.
    ///
    /// # Real-time: setup only
    pub fn run_for<R: Into<Flow>>(
        mut self,
        duration: Duration,
        mut body: impl FnMut(&mut Cycle<'_>) -> R,
    ) -> Summary {
        let from = if self.begun {
            self.gate.clock.now()
        } else {
            self.begin();
            self.first
        };
        self.gate.end_at(from + span(duration));
        while let Some(mut cycle) = self.wait() {
            if body(&mut cycle).into() == Flow::Stop {
                break;
            }
        }
        self.finish()
    }

    /// Where the first wait finds itself.
    #[cold]
    fn begin(&mut self) {
        self.begun = true;
        self.handle.control.arm();
        let now = self.gate.clock.poll();
        let releases = Releases::aligned(now + LEAD, self.period, self.phase_ns);
        self.first = releases.first();
        self.gate.begin(releases);
        if let Some(recording) = &self.recording {
            recording.begin(releases.first());
        }
    }

    /// Counts the cycle that runs now, as if it were over: for whoever reads the counts in the
    /// loop's own thread.
    ///
    /// # Real-time: in loop
    #[doc(hidden)]
    pub fn count(&mut self) {
        self.gate.count();
    }

    /// A handle for other threads, which outlives the loop: stop it, read what it did so far.
    ///
    /// # Real-time: setup only
    pub fn handle(&self) -> LoopHandle {
        self.handle.clone()
    }

    /// Nothing runs any more: counts all, and says so to its handles.
    fn end(&mut self) {
        // A body that panicked has run its cycle too.
        self.gate.finish(&self.handle.control.shared.stop);
        self.handle.control.disarm();
        self.handle.control.stop();
    }

    /// Ends the loop: everything is put back and its sample file is complete. Gives a summary of
    /// what it did.
    ///
    /// # Real-time: setup only
    pub fn finish(mut self) -> Summary {
        self.end();
        let end = match self.handle.forced() {
            _ if self.handle.control.is_forked() => End::Forked,
            Some(force) => force.into(),
            None if self.finished => End::Finished,
            None => End::Stopped,
        };
        let samples = self.recording.take().and_then(Recording::finish);
        let policy = self.policy();
        let Self { refused, warnings, handle, .. } = &mut self;
        let (refused, warnings) = (std::mem::take(refused), std::mem::take(warnings));
        let tasks = vec![handle.stats()];
        Summary {
            end,
            tasks,
            units: Vec::new(),
            policy,
            refused,
            warnings,
            samples,
            idle_slices: (0, 0),
            epoch: self.first,
            quiet: self.quiet,
            wait: self.wait_status(),
            processes: Vec::new(),
        }
    }
}

impl<C: Clock> Drop for Loop<C> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
