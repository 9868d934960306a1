//! When a supervisor ends, as its caller decides while it runs.
//!
//! Flags alone: a signal handler or another thread sets them.

use std::sync::atomic::{AtomicBool, Ordering};

/// What ends a supervisor.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'a> {
    pub(super) flag: &'a AtomicBool,
    hurry: Option<&'a AtomicBool>,
}

impl<'a> Stop<'a> {
    /// It ends once `flag` is set.
    ///
    /// # Real-time: setup only
    pub const fn new(flag: &'a AtomicBool) -> Self {
        Self { flag, hurry: None }
    }

    /// Once `flag` is set too, tasks get no time to leave: they are ended at once.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn hurry(self, flag: &'a AtomicBool) -> Self {
        Self { hurry: Some(flag), ..self }
    }

    pub(super) fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    pub(super) fn is_hurried(&self) -> bool {
        self.hurry.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}
