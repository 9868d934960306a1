//! The gate of a loop of one period: waits for the next release, and returns its cycle and the
//! releases missed before it.
//!
//! For such loops: the library's own and every experiment. The observer is called at the beginning
//! of the next wait, so that nothing runs between the wake's stamp and the loop's body. Never
//! allocates, never fails, calls nothing but the clock, the wait and the observer that it is given.
//!
//! After a stall in the wait the oldest release runs, and carries the whole lateness; the others
//! that passed are missed, and so are those that pass while the body runs. A missed release never
//! runs later, and the loop keeps its phase.

use core::sync::atomic::Ordering;

use crate::clock::Clock;
use crate::cycle::{Cycle, Ended, Job, Missed, Observe, Overruns};
use crate::releases::Releases;
use crate::stop::StopRequest;
use crate::time::{Instant, Span};
use crate::wait::Wait;

/// A loop of one period: a clock, a wait, and an observer of each cycle.
#[derive(Debug)]
pub struct Gate<C, W, O> {
    /// Reads and sleeps.
    pub clock: C,
    /// Waits for a release.
    pub wait: W,
    /// Counts each cycle, once it has finished.
    pub observe: O,
    releases: Releases,
    /// The number of the first release that does not run any more.
    end: u64,
    /// The first release that has neither run nor passed.
    next: u64,
    /// The cycle that runs: the observer counts it later.
    running: Option<(Job, Instant)>,
    /// The last cycle that ran.
    last: Option<u64>,
}

impl<C: Clock, W: Wait, O: Observe> Gate<C, W, O> {
    /// A loop whose first release is number `first` of `releases`.
    ///
    /// # Real-time: setup only
    pub fn new(clock: C, wait: W, observe: O, releases: Releases, first: u64) -> Self {
        let (end, next) = (u64::MAX, first);
        Self { clock, wait, observe, releases, end, next, running: None, last: None }
    }

    /// The same with an end: releases at or after it do not run.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn until(mut self, end: Instant) -> Self {
        self.end_at(end);
        self
    }

    /// From now on releases at or after `end` do not run.
    ///
    /// # Real-time: in loop
    pub fn end_at(&mut self, end: Instant) {
        self.end = self.releases.at_or_after(end);
    }

    /// Begins anew with release 0 of `releases`.
    ///
    /// # Real-time: in loop
    pub fn begin(&mut self, releases: Releases) {
        (self.releases, self.next, self.last, self.running) = (releases, 0, None, None);
    }

    /// Waits for the next release that is still to come, and returns its cycle.
    ///
    /// # Errors
    ///
    /// Why there is none: the end has come, or `stop` was set. The observer has counted
    /// everything then.
    ///
    /// # Real-time: in loop, waits
    #[inline]
    pub fn wait(&mut self, stop: &impl StopRequest) -> Result<Cycle<'static>, Ended> {
        if self.last.is_some() {
            let finish = self.clock.poll();
            self.observe_end(finish);
            if finish >= self.releases.release(self.next) {
                // They passed while the body ran.
                self.next = self.releases.released(finish).min(self.end);
            }
        }
        let n = self.next;
        if n >= self.end {
            let now = self.clock.now();
            return Err(self.ended(Ended::Finished, now));
        }
        let release = self.releases.release(n);
        let Some(wake) = self.wait.until(&mut self.clock, release, stop.flag()) else {
            // A wait looks at its release first: that one was still to come.
            let at = stop.requested_on(&mut self.clock).unwrap_or(release - Span::from_ns(1));
            return Err(self.ended(Ended::Stopped, at));
        };
        if stop.flag().load(Ordering::Relaxed)
            && let Some(at) = stop.requested_on(&mut self.clock).filter(|&at| at < release)
        {
            // It was slept for when the stop was requested.
            return Err(self.ended(Ended::Stopped, at));
        }
        let mut following = n + 1;
        let mut next = self.releases.release(following);
        if wake >= next {
            // They passed in a stall of the wait, or of the machine.
            following = self.releases.released(wake);
            next = self.releases.release(following);
            following = following.min(self.end);
        }
        let missed = self.last.map_or(0, |last| n - last - 1);
        let before = self.last.map_or(release, |last| self.releases.release(last));
        let (passed, period) = (following - n - 1, self.releases.period());
        let job = Job { rank: 0, cycle: n, part: 0, release, next, missed, passed, period };
        // A first cycle has its period to go on by.
        let dt = match self.last {
            Some(_) => release - before,
            None => Span::from_ns(i64::try_from(period.as_ns()).unwrap_or(i64::MAX)),
        };
        (self.last, self.next) = (Some(n), following);
        self.running = Some((job, wake));
        Ok(Cycle::new(&job, wake, dt))
    }

    /// Runs to the end, or until `stop` is set, with a body that does nothing: what an experiment
    /// measures.
    ///
    /// # Real-time: in loop, waits
    pub fn run(&mut self, stop: &impl StopRequest) -> Ended {
        loop {
            if let Err(ended) = self.wait(stop) {
                return ended;
            }
        }
    }

    /// Gives the observer the cycle that ran up to now, and what passed since, up to `stop` where
    /// that was requested: for the end of a loop that breaks off. Does nothing where
    /// [`Gate::wait`] has returned an end.
    ///
    /// # Real-time: in loop
    pub fn finish(&mut self, stop: &impl StopRequest) {
        if self.last.is_some() {
            self.count();
            let now = self.clock.now();
            let at = stop.requested_on(&mut self.clock).unwrap_or(now);
            let _why = self.ended(Ended::Stopped, at);
        }
    }

    /// Gives the observer the cycle that runs, as if it were over now: for a body that reads the
    /// observer's counters.
    ///
    /// # Real-time: in loop
    pub fn count(&mut self) {
        if self.running.is_some() {
            let finish = self.clock.poll();
            self.observe_end(finish);
        }
    }

    /// When the releases are.
    ///
    /// # Real-time: in loop
    pub fn releases(&self) -> &Releases {
        &self.releases
    }

    /// The cycle that ran is over.
    #[inline]
    fn observe_end(&mut self, finish: Instant) {
        if let Some((job, start)) = self.running.take() {
            let over_release = finish >= job.next;
            let overruns = Overruns { over_release, ..Overruns::default() };
            self.observe.ran(&job, start, finish, overruns);
        }
    }

    /// Gives the observer what passed since the last cycle up to `at`, and is missed.
    #[cold]
    fn ended(&mut self, ended: Ended, at: Instant) -> Ended {
        let first = self.last.map_or(self.next, |last| last + 1);
        let released = self.releases.released(at).min(self.end).max(first);
        let count = released - first;
        if count > 0 {
            let missed = Missed { releases: self.releases, first, count };
            self.observe.never_ran(0, missed, at);
        }
        (self.next, self.last) = (released, None);
        ended
    }
}

#[cfg(test)]
mod tests;
