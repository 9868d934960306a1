//! What a loop's thread and those beside it share: the stop flag, the heartbeat, stalls.
//!
//! For handles, watchdogs and signal handlers: everything here is an atomic number.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::stop::{StopFlag, StopRequest};
use punctual_core::time::{Instant, Span};
use punctual_core::wait::Stalls;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::fork::Origin;
use punctual_os::process;

use crate::monitor::{Force, Shows, Watchdog, Watched};

/// A loop's controls, for any thread; they outlive it.
#[derive(Clone, Debug, Default)]
pub struct Control {
    pub(super) shared: Arc<Shared>,
}

/// What a loop shares.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The process that it runs in: a child has neither its watchdog nor its policy.
    pub(super) origin: Origin,
    pub(super) stop: StopFlag,
    pub(super) watched: Watched,
    stalls: AtomicU64,
    longest_stall_ns: AtomicU64,
    stalled_ns: AtomicU64,
}

impl Shows for Shared {
    fn watched(&self) -> &Watched {
        &self.watched
    }

    fn stop(&self) -> &impl StopRequest {
        &self.stop
    }
}

impl Watchdog {
    /// Watches the loop behind `control` once it is armed: one that makes no progress for `bound`
    /// is stopped, and its thread demoted to SCHED_OTHER. The new thread runs where the calling one
    /// may.
    ///
    /// # Errors
    /// That there is no thread.
    ///
    /// # Real-time: setup only
    pub fn start(control: &Control, bound: Span) -> std::io::Result<Self> {
        Self::over(Arc::clone(&control.shared), bound)
    }
}

/// One writer, so that no locked instruction is needed.
fn add(word: &AtomicU64, by: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

fn ns(span: Span) -> u64 {
    span.as_ns().max(0).unsigned_abs()
}

/// For the loop's own thread.
impl Control {
    /// What its waits look at.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn flag(&self) -> &AtomicBool {
        self.shared.stop.flag()
    }

    /// Has the calling thread watched from now on, if there is a [`super::Watchdog`].
    ///
    /// # Real-time: setup only
    pub fn arm(&self) {
        self.shared.watched.arm(process::tid());
    }

    /// Has nothing watched any more.
    ///
    /// # Real-time: setup only
    pub fn disarm(&self) {
        self.shared.watched.disarm();
    }

    /// One more cycle, for the watchdog.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn beat(&self) {
        self.shared.watched.beat();
    }

    /// Counts what [`punctual_core::wait::Wait::take_stalls`] gave.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn stalled(&self, stalls: Stalls) {
        let Shared { stalls: count, longest_stall_ns, stalled_ns, .. } = &*self.shared;
        if stalls.count > 0 {
            add(count, stalls.count);
            add(stalled_ns, ns(stalls.sum));
            let longest_ns = longest_stall_ns.load(Ordering::Relaxed).max(ns(stalls.longest));
            longest_stall_ns.store(longest_ns, Ordering::Relaxed);
        }
    }
}

/// For everybody else.
impl Control {
    /// Ends the loop: its wait gives `None`, at once where it spins, at its next wake where it
    /// sleeps. Stays so. Releases from now on are none of its run: what was due before and never
    /// ran is missed. May be called in a signal handler.
    ///
    /// # Real-time: in loop
    pub fn stop(&self) {
        self.shared.stop.request(Instant::from_ns(now_ns(ClockId::Monotonic)));
    }

    /// Whether `stop` was called, the watchdog stopped the loop, or that has ended; true in a child
    /// that fork(2) made.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn stopped(&self) -> bool {
        self.shared.stop.flag().load(Ordering::Relaxed) || self.is_forked()
    }

    /// Whether this process is a child of the loop's.
    ///
    /// # Real-time: in loop
    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        !self.shared.origin.is_here()
    }

    /// Gaps inside spins; each number is whole, and they may be one cycle apart.
    ///
    /// # Real-time: reader side
    pub fn stalls(&self) -> Stalls {
        let get = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let span = |ns| Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX));
        Stalls {
            count: get(&self.shared.stalls),
            longest: span(get(&self.shared.longest_stall_ns)),
            sum: span(get(&self.shared.stalled_ns)),
        }
    }

    /// How the watchdog ended the loop, if it did.
    ///
    /// # Real-time: reader side
    pub fn forced(&self) -> Option<Force> {
        self.shared.watched.ended()
    }
}
