//! A loop from outside: stop it, read what it did so far.
//!
//! For other threads. Never disturbs the loop.

use punctual_core::stats::{Counts, View};
use punctual_core::time::Span;
use punctual_core::wait::Stalls;

use super::control::Control;
use crate::counting::Words;
use crate::monitor::Force;
use crate::quantile;
use crate::summary::Stats;

/// A handle of a loop, for any thread; outlives it.
#[derive(Clone, Debug)]
pub struct LoopHandle {
    pub(super) control: Control,
    pub(super) words: Words,
}

impl LoopHandle {
    /// Ends the loop: its wait gives `None`, at once where it spins, at its next wake where it
    /// sleeps. Stays so. Releases from now on are none of its run: what was due before and never
    /// ran is missed. May be called in a signal handler.
    ///
    /// # Real-time: in loop
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Whether it is to stop, or has ended, or was dropped; true in a child that fork(2) made.
    ///
    /// # Real-time: in loop
    pub fn stopped(&self) -> bool {
        self.control.stopped()
    }

    /// What the loop did so far: one cycle behind, for the running one is not over.
    ///
    /// # Real-time: reader side
    pub fn stats(&self) -> Stats {
        Stats::of("loop", self.view().as_ref())
    }

    /// Its counts alone, which takes no walk through the histogram.
    ///
    /// # Real-time: reader side
    pub fn counts(&self) -> Counts {
        self.view().map(|view| view.counts()).unwrap_or_default()
    }

    /// A lateness that at least `share` of all releases did not exceed, at most 0.8 % too much;
    /// `None` before the first release and for a share outside [0, 1].
    ///
    /// # Real-time: reader side
    pub fn quantile(&self, share: f64) -> Option<Span> {
        quantile::of(&self.view()?, share)
    }

    /// Gaps inside spins; each number is whole, and they may be one cycle apart.
    ///
    /// # Real-time: reader side
    #[doc(hidden)]
    pub fn stalls(&self) -> Stalls {
        self.control.stalls()
    }

    /// How the watchdog ended the loop, if it did.
    ///
    /// # Real-time: reader side
    #[doc(hidden)]
    pub fn forced(&self) -> Option<Force> {
        self.control.forced()
    }

    fn view(&self) -> Option<View<'_>> {
        View::open(&self.words).ok()
    }
}
