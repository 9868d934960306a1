//! A lone loop from outside: stop it, see what its page does not hold.
//!
//! For other threads, and for signal handlers: everything here is an atomic number.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::time::Span;
use punctual_core::wait::Stalls;

use crate::watchdog::{Force, Watched};

/// A handle of a loop, for any thread; outlives it.
#[derive(Clone, Debug)]
pub struct Remote {
    pub(super) shared: Arc<Shared>,
}

/// What a loop shares.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    pub(super) watched: Watched,
    stalls: AtomicU64,
    longest_stall_ns: AtomicU64,
    stalled_ns: AtomicU64,
}

/// One writer, so that no locked instruction is needed.
fn add(word: &AtomicU64, by: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

fn ns(span: Span) -> u64 {
    span.as_ns().max(0).unsigned_abs()
}

impl Shared {
    pub(super) fn stalled(&self, stalls: Stalls) {
        if stalls.count > 0 {
            add(&self.stalls, stalls.count);
            add(&self.stalled_ns, ns(stalls.sum));
            let longest_ns = self.longest_stall_ns.load(Ordering::Relaxed);
            self.longest_stall_ns.store(longest_ns.max(ns(stalls.longest)), Ordering::Relaxed);
        }
    }
}

impl Remote {
    /// Ends the loop: its wait gives `None`, at once where it spins, at its next wake where it
    /// sleeps. Stays so. May be called in a signal handler.
    ///
    /// # Real-time: in loop
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it was told to stop.
    ///
    /// # Real-time: in loop
    pub fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// What its waits look at.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.shared.stop
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
