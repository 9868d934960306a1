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
use punctual_core::gate::Gate;
use punctual_core::page::{Page, View};
use punctual_core::releases::Releases;
use punctual_core::time::Span;
use punctual_core::wait::exit::Trial;
use punctual_core::wait::{Approach, Learned, Strategy, Wait};
use punctual_os::scheduler::Policy;

use crate::clocks::MachineClock;
use crate::quiet::Quiet;
use crate::session::{Refusal, Thread};

pub use enter::{EnterError, LISTEN, Storage};
pub use guard::Guard;
pub use options::{BadOptions, Options, Place};
pub use punctual_core::executive::many::Cycle;
pub use rehearsal::{REHEARSAL_MAX, rehearse};
pub use remote::Remote;

/// From the first wait to the first release, at least: time to get into the wait.
const LEAD: Span = Span::from_us(100);

/// A loop on the thread that entered it, on the machine's clock or another one.
#[derive(Debug)]
pub struct Loop<'s, C: Clock = MachineClock> {
    options: Options,
    phase_ns: u64,
    quiet: Option<Quiet>,
    state: Where<'s, C>,
    view: View<'s>,
    remote: Remote,
    session: Thread,
    _watchdog: Option<Guard>,
}

/// A loop's own gate.
type Own<'s, C> = Gate<C, Strategy, Page<'s>>;

/// Where a loop is.
#[derive(Debug)]
enum Where<'s, C> {
    /// Before the first wait, which fixes the first release.
    Ready(C, Strategy, Page<'s>),
    /// At work.
    Running(Own<'s, C>),
    /// While one becomes the other, and never seen.
    Between,
}

impl<C: Clock> Loop<'_, C> {
    /// Waits for the next release to come and returns its cycle; `None` once the loop was told to
    /// stop. After a stall the oldest release runs; releases that passed since the last cycle
    /// otherwise are missed, and counted.
    ///
    /// The first call fixes which release is the first, one that is still to come, and starts the
    /// watchdog. A cycle is counted at the beginning of the next wait, so that nothing but the
    /// heartbeat stands between the wake and the return: readers are a cycle behind.
    ///
    /// # Real-time: in loop, waits
    #[inline]
    pub fn wait(&mut self) -> Option<Cycle<'static>> {
        if !matches!(self.state, Where::Running(_)) {
            self.begin();
        }
        let Where::Running(gate) = &mut self.state else { return None };
        // A wait that need not sleep looks at its release before it looks at the flag.
        if self.remote.stopped() {
            gate.finish();
            return None;
        }
        let stalls = Wait::<C>::take_stalls(&mut gate.wait);
        if stalls.count > 0 {
            self.remote.stalled(stalls);
        }
        let cycle = gate.wait(self.remote.flag()).ok();
        self.remote.beat();
        cycle
    }

    /// Counts the cycle that runs now, as if it were over: for whoever reads the counts in the
    /// loop's own thread.
    ///
    /// # Real-time: in loop
    pub fn count(&mut self) {
        if let Where::Running(gate) = &mut self.state {
            gate.count();
        }
    }

    /// Where the first wait finds itself.
    #[cold]
    fn begin(&mut self) {
        let Where::Ready(mut clock, wait, page) =
            std::mem::replace(&mut self.state, Where::Between)
        else {
            return;
        };
        self.remote.arm();
        let now = clock.poll();
        let releases = Releases::aligned(now + LEAD, self.options.period, self.phase_ns);
        self.state = Where::Running(Gate::new(clock, wait, page, releases, 0));
    }

    fn waiting(&self) -> Option<&Strategy> {
        match &self.state {
            Where::Ready(_, wait, _) => Some(wait),
            Where::Running(gate) => Some(&gate.wait),
            Where::Between => None,
        }
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
        self.waiting().map_or_else(Approach::default, Wait::<C>::approach)
    }

    /// What came of trying a corrected exit of its spins; `None` where none was tried.
    ///
    /// # Real-time: in loop
    pub fn exit(&self) -> Option<Trial> {
        self.waiting().and_then(Wait::<C>::exit)
    }

    /// What its wait learned of this machine; `None` for one that learns nothing.
    ///
    /// # Real-time: in loop
    pub fn learned(&self) -> Option<Learned> {
        self.waiting().and_then(Wait::<C>::learned)
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
        match &self.state {
            Where::Ready(clock, ..) => clock.name(),
            Where::Running(gate) => gate.clock.name(),
            Where::Between => "",
        }
    }
}

impl<'s, C: Clock> Loop<'s, C> {
    /// Its page: counts and histogram of lateness, for any thread, at any time. A cycle that was
    /// still running at the next release is counted as such with the cycle after it.
    ///
    /// # Real-time: setup only
    pub fn view(&self) -> View<'s> {
        self.view
    }
}

impl<C: Clock> Drop for Loop<'_, C> {
    fn drop(&mut self) {
        // Also where the body panicked: its cycle has run.
        if let Where::Running(gate) = &mut self.state {
            gate.finish();
        }
    }
}

#[cfg(test)]
mod tests;
