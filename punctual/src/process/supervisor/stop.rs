//! When a supervisor ends, as its caller decides while it runs.
//!
//! Flags alone: a signal handler or another thread sets them. When one was set is known where it
//! keeps that.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::stop::{StopFlag, StopRequest};
use punctual_core::time::Instant;

use super::supervisor_loop::now;

/// What ends a supervisor.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'a> {
    flag: &'a AtomicBool,
    /// The same with its instant, where it has one.
    dated: Option<&'a StopFlag>,
    hurry: Option<&'a AtomicBool>,
}

impl<'a> Stop<'a> {
    /// It ends once `flag` is set.
    ///
    /// # Real-time: setup only
    pub const fn new(flag: &'a AtomicBool) -> Self {
        Self { flag, dated: None, hurry: None }
    }

    /// It ends once `stop` is set: what is due after its instant is none of its releases.
    pub(crate) fn dated(stop: &'a StopFlag) -> Self {
        Self { flag: stop.flag(), dated: Some(stop), hurry: None }
    }

    /// Once `flag` is set too, tasks get no time to leave: they are ended at once.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn hurry(self, flag: &'a AtomicBool) -> Self {
        Self { hurry: Some(flag), ..self }
    }

    pub(super) fn set(&self) {
        self.request(now());
    }

    pub(super) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    pub(super) fn is_hurried(&self) -> bool {
        self.hurry.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

impl StopRequest for Stop<'_> {
    fn flag(&self) -> &AtomicBool {
        self.flag
    }

    fn requested(&self) -> Option<Instant> {
        self.dated?.requested()
    }

    fn request(&self, at: Instant) {
        match self.dated {
            Some(stop) => stop.request(at),
            None => self.flag.request(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dated_stop_keeps_the_first_instant_and_a_flag_none() {
        let (dated, flag) = (StopFlag::default(), AtomicBool::new(false));
        let (first, stop) = (Instant::from_ns(30), Stop::dated(&dated));
        assert!(!stop.is_set());
        dated.request(first);
        // As it does itself at its end.
        stop.set();
        assert_eq!((stop.is_set(), stop.requested()), (true, Some(first)));
        let stop = Stop::new(&flag);
        stop.set();
        assert_eq!((stop.is_set(), stop.requested()), (true, None));
    }
}
