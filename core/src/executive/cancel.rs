//! The cancel token: how a watchdog on another CPU requests the end of a task that runs in the
//! executive's thread.
//!
//! For tasks with [`crate::table::OnOverrun::Terminate`]. The executive publishes which cycle runs
//! and until when it may run; a watchdog compares that with its clock and cancels this one cycle.
//! No task is interrupted: a termination takes effect when the task returns.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::time::Instant;

/// Cancels the cycle that runs, whichever it is.
pub(crate) const ALL: u64 = u64::MAX;
/// No cycle may be cancelled.
const NEVER_NS: u64 = u64::MAX;

/// What an executive and its watchdog share.
#[derive(Debug)]
pub struct Token {
    /// Cycles begun so far; the last one is the one that runs.
    begun: AtomicU64,
    /// When the cycle is to be cancelled, ns.
    until_ns: AtomicU64,
    /// The last cycle that was cancelled.
    pub(super) cancelled: AtomicU64,
}

impl Default for Token {
    fn default() -> Self {
        Self::new()
    }
}

impl Token {
    /// Nothing runs.
    ///
    /// # Real-time: setup only
    pub const fn new() -> Self {
        Self {
            begun: AtomicU64::new(0),
            until_ns: AtomicU64::new(NEVER_NS),
            cancelled: AtomicU64::new(0),
        }
    }

    /// A cycle begins, to be cancelled at `until`; its number.
    #[inline]
    pub(super) fn begin(&self, until: Instant) -> u64 {
        // One writer, so that no locked instruction is needed.
        let turn = self.begun.load(Ordering::Relaxed) + 1;
        // Release: a thread that sees this cycle sees that the one before is over.
        self.begun.store(turn, Ordering::Release);
        self.until_ns.store(until.as_ns(), Ordering::Release);
        turn
    }

    /// The cycle is over.
    #[inline]
    pub(super) fn end(&self) {
        self.until_ns.store(NEVER_NS, Ordering::Release);
    }

    /// Cancels the cycle that runs beyond its next release at `now`; whether this call did. For the
    /// watchdog, on another CPU: on the executive's own CPU it would run too late.
    ///
    /// # Real-time: reader side
    pub fn cancel_overrun(&self, now: Instant) -> bool {
        // Acquire: the cycle is that of this end or a later one; a later one has another end, so
        // that none is cancelled for the end of the one before.
        let until_ns = self.until_ns.load(Ordering::Acquire);
        let turn = self.begun.load(Ordering::Acquire);
        if now.as_ns() < until_ns || self.until_ns.load(Ordering::Acquire) != until_ns {
            return false;
        }
        self.cancelled.swap(turn, Ordering::Relaxed) != turn
    }
}

/// The cancel token of one cycle, as its task holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cancel<'c> {
    pub(crate) word: &'c AtomicU64,
    pub(crate) turn: u64,
}

impl Cancel<'_> {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        let cancelled = self.word.load(Ordering::Relaxed);
        cancelled == self.turn || cancelled == ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn only_the_turn_that_overran_is_cancelled_and_once() {
        let token = Token::new();
        assert!(!token.cancel_overrun(at(u64::MAX - 1)), "nothing runs");
        let turn = token.begin(at(100));
        let cancel = Cancel { word: &token.cancelled, turn };
        assert!(!token.cancel_overrun(at(99)) && !cancel.is_set());
        assert!(token.cancel_overrun(at(100)) && cancel.is_set());
        assert!(!token.cancel_overrun(at(101)), "no news");
        token.end();
        let turn = token.begin(at(300));
        let next = Cancel { word: &token.cancelled, turn };
        assert!(!next.is_set() && !token.cancel_overrun(at(299)));
        assert!(cancel.is_set(), "a late reader of the old one");
    }
}
