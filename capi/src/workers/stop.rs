//! The stop of a crew: for good where it is asked for, of one run where that ends.
//!
//! Atomic flags alone: for other threads, and for signal handlers.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a crew is to stop.
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// For good.
    asked: AtomicBool,
    /// What a run looks at, and sets at its end.
    ends: AtomicBool,
}

impl Stop {
    /// Stops it for good.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
        self.ends.store(true, Ordering::SeqCst);
    }

    /// A run begins: what it is to look at; `None` where it was told to stop.
    pub(super) fn begin(&self) -> Option<&AtomicBool> {
        self.ends.store(false, Ordering::SeqCst);
        // Who asks after this look sets the other flag after it was cleared.
        (!self.asked.load(Ordering::SeqCst)).then_some(&self.ends)
    }

    /// Ends the run.
    pub(super) fn end(&self) {
        self.ends.store(true, Ordering::SeqCst);
    }

    /// Whether the run is to end, or has ended.
    pub(super) fn is_ending(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_once_and_a_stop_holds() {
        let stop = Stop::default();
        assert!(!stop.is_ending() && stop.begin().is_some());
        stop.end();
        assert!(stop.is_ending() && stop.begin().is_some() && !stop.is_ending());
        stop.ask();
        assert!(stop.is_ending() && stop.begin().is_none());
    }
}
