//! One periodic loop that is the caller's own: it says [`Loop::wait`], works, and says so again.
//!
//! For whoever has one period and one thread; many tasks are [`crate::periodic`]'s. Enters the
//! session of the calling thread, finds the quiet phase, lets the wait learn, and then is there at
//! each release: a cycle that runs over its next release makes that one missed, and the phase
//! stays. Memory is the session's of the process ([`crate::session::Process`]) and the caller's;
//! between the first wait and the last nothing is allocated, and nothing called but the clock.
//!
//! ```
//! use punctual::lone::{Options, Place, Storage};
//! use punctual::periodic::Period;
//! use punctual::session::Process;
//! use punctual::way::Way;
//!
//! let _process = Process::enter();
//! let mut storage = Storage::new();
//! let options = Options::new(Period::hz(1_000).expect("in range"));
//! # // What the defaults take two seconds to find out.
//! # let options = options.place(Place::Zero).way(Way::Sleep);
//! let mut each_ms = options.enter(&mut storage)?;
//! let (remote, view) = (each_ms.remote(), each_ms.view());
//! while let Some(cycle) = each_ms.wait() {
//!     // What is to be done, for cycle.dt since it was done last.
//!     if cycle.n >= 20 {
//!         remote.stop();
//!     }
//! }
//! let counts = view.counts();
//! println!("{} cycles, {} missed, at most {:?} late", counts.ran, counts.missed, counts.max);
//! # assert!(counts.ran <= 21);
//! # Ok::<(), punctual::lone::EnterError>(())
//! ```
//!
//! On the time of TAI, a PTP clock or a bus ([`crate::follow`]), by the clock that it is given:
//!
//! ```
//! use punctual::clocks::MachineClock;
//! use punctual::follow::{Follow, Reference};
//! # use punctual::lone::{Options, Place, Storage};
//! # use punctual::periodic::Period;
//! # use punctual::way::Way;
//!
//! let follower = Follow::new(Reference::Tai).start()?;
//! let mut storage = Storage::new();
//! let options = Options::new(Period::hz(1_000).expect("in range"));
//! # let options = options.place(Place::Zero).way(Way::Sleep);
//! let mut each_ms = options.enter_on(follower.clock(MachineClock::best()), &mut storage)?;
//! let cycle = each_ms.wait().expect("nobody stops it");
//! assert_eq!(cycle.release.as_ns() % 1_000_000, 0, "a whole millisecond of TAI");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod enter;
mod guard;
mod options;
mod rehearsal;
mod remote;

use punctual_core::clock::Clock;
use punctual_core::dispatch::Overruns;
use punctual_core::page::{At, Page, View};
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Span};
use punctual_core::wait::exit::Trial;
use punctual_core::wait::{Approach, Learned, Strategy, Wait};
use punctual_os::scheduler::Policy;

use crate::clocks::MachineClock;
use crate::quiet::Quiet;
use crate::session::{Refusal, Thread};

pub use enter::{EnterError, LISTEN, Storage};
pub use guard::Guard;
pub use options::{BadOptions, Options, Place};
pub use rehearsal::{REHEARSAL_MAX, rehearse};
pub use remote::Remote;

/// From the first wait to the first release, at least: time to get into the wait.
const LEAD: Span = Span::from_us(100);

/// One cycle of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Which: releases since the first one.
    pub n: u64,
    /// When it was due, on the loop's clock.
    pub release: Instant,
    /// wake − release.
    pub lateness: Span,
    /// Releases since the last cycle that never ran.
    pub missed: u64,
    /// From the release of the last cycle to this one, the period for the first: what an integrator
    /// has to go on by.
    pub dt: Span,
    /// When the next cycle is due: what runs beyond this is an overrun.
    pub next: Instant,
}

/// A loop on the thread that entered it, on the machine's clock or another one.
#[derive(Debug)]
pub struct Loop<'s, C = MachineClock> {
    options: Options,
    phase_ns: u64,
    quiet: Option<Quiet>,
    clock: C,
    wait: Strategy,
    page: Page<'s>,
    view: View<'s>,
    remote: Remote,
    /// Where it is; `None` before the first wait.
    at: Option<Course>,
    session: Thread,
    _watchdog: Option<Guard>,
}

/// The releases, and the last cycle that ran.
#[derive(Clone, Copy, Debug)]
struct Course {
    releases: Releases,
    last: Option<u64>,
}

impl<C: Clock> Loop<'_, C> {
    /// Waits for the next release to come and returns its cycle; `None` once the loop was told to
    /// stop. Releases that passed since the last cycle are missed, and counted.
    ///
    /// The first call fixes which release is the first, one that is still to come, and starts the
    /// watchdog.
    ///
    /// # Real-time: in loop, waits
    pub fn wait(&mut self) -> Option<Cycle> {
        let now = self.clock.poll();
        let Course { releases, last } = self.at.unwrap_or_else(|| self.begin(now));
        let n = last.map_or(0, |last| releases.next(last, now));
        let missed = last.map_or(0, |last| n - last - 1);
        let release = releases.release(n);
        // A wait that need not sleep looks at its release before it looks at the flag.
        let wake = match self.remote.stopped() {
            true => None,
            false => self.wait.until(&mut self.clock, release, self.remote.flag()),
        };
        let Some(wake) = wake else {
            if missed > 0 {
                self.page.missed(missed);
            }
            return None;
        };
        let lateness = wake - release;
        // Known only now, of the cycle before.
        let overruns = Overruns { over_release: missed > 0, ..Overruns::default() };
        self.page.keep(At { release, cycle: n }, lateness, missed, overruns);
        self.remote.stalled(Wait::<C>::take_stalls(&mut self.wait));
        self.remote.beat();
        self.at = Some(Course { releases, last: Some(n) });
        let next = releases.release(n + 1);
        let dt = last.map_or(next - release, |last| release - releases.release(last));
        Some(Cycle { n, release, lateness, missed, dt, next })
    }

    /// Where the first wait finds itself.
    fn begin(&self, now: Instant) -> Course {
        self.remote.arm();
        let releases = Releases::aligned(now + LEAD, self.options.period, self.phase_ns);
        Course { releases, last: None }
    }

    /// The handle for other threads.
    ///
    /// # Real-time: setup only
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// The offset of its releases from multiples of the period on its clock, ns.
    ///
    /// # Real-time: in loop
    pub fn phase_ns(&self) -> u64 {
        self.phase_ns
    }

    /// The quiet place that it took; `None` where none was asked for, or found.
    ///
    /// # Real-time: in loop
    pub fn quiet(&self) -> Option<Quiet> {
        self.quiet
    }

    /// How it approaches a release at present.
    ///
    /// # Real-time: in loop
    pub fn approach(&self) -> Approach {
        Wait::<C>::approach(&self.wait)
    }

    /// What came of trying a corrected exit of its spins; `None` where none was tried.
    ///
    /// # Real-time: in loop
    pub fn exit(&self) -> Option<Trial> {
        Wait::<C>::exit(&self.wait)
    }

    /// What its wait learned of this machine; `None` for one that learns nothing.
    ///
    /// # Real-time: in loop
    pub fn learned(&self) -> Option<Learned> {
        Wait::<C>::learned(&self.wait)
    }

    /// The policy that its thread really has.
    ///
    /// # Real-time: setup only
    pub fn policy(&self) -> Policy {
        self.session.policy()
    }

    /// What the kernel refused its thread.
    ///
    /// # Real-time: setup only
    pub fn refused(&self) -> &[Refusal] {
        self.session.refused()
    }
}

impl Loop<'_> {
    /// What its stamps are taken with.
    ///
    /// # Real-time: setup only
    pub fn clock_name(&self) -> &'static str {
        self.clock.name()
    }
}

impl<'s, C> Loop<'s, C> {
    /// Its page: counts and histogram of lateness, for any thread, at any time. A cycle that was
    /// still running at the next release is counted as such with the cycle after it.
    ///
    /// # Real-time: setup only
    pub fn view(&self) -> View<'s> {
        self.view
    }
}

#[cfg(test)]
mod tests;
