//! A run that ends at its first release that is later than a limit.
//!
//! For `check` and `measure periodic` with `--stop-over`. Each loop looks at its own releases, so
//! that the late one is the last that its run has. Touches nothing but the flag that stops all.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::cycle::{Job, Missed, Observe, Overruns};
use punctual_core::ring::Ring;
use punctual_core::time::{Instant, Span};
use punctual_engine::counting::SampleRecorder;
use punctual_os::clock::{ClockId, now_ns};

/// Ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopOver {
    /// At the first release that is later than this.
    pub above: Span,
    /// True where the cold cycles at the start of a block count too.
    pub counts_cold: bool,
}

/// The release that ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateRelease {
    /// The stream.
    pub stream: usize,
    /// The condition that it ran under.
    pub condition: usize,
    /// Its number on the grid of its run.
    pub cycle: u64,
    /// The lateness of its cycle.
    pub lateness: Span,
    /// The instant at which it was due, on the clock of its grid.
    pub release: Instant,
    /// The time of day at which it was seen, ns since 1970.
    pub seen_unix_ns: u64,
    /// The limit that it passed.
    pub above: Span,
}

/// The state that the loops of a run share: the limit, and the first release that passed it.
#[derive(Debug)]
pub(super) struct LateWatch<'a> {
    over: Option<StopOver>,
    stop: &'a AtomicBool,
    first: OnceLock<LateRelease>,
}

impl<'a> LateWatch<'a> {
    /// Sets `stop` at the first release that is later than that; never without a limit.
    pub(super) fn new(over: Option<StopOver>, stop: &'a AtomicBool) -> Self {
        Self { over, stop, first: OnceLock::new() }
    }

    /// The release that ended the run, if one did.
    pub(super) fn first(&self) -> Option<LateRelease> {
        self.first.get().copied()
    }
}

/// The recorder of a stream under a condition, which stops the run at a release that is too late.
#[derive(Debug)]
pub(super) struct StoppingRecorder<'a> {
    recorder: SampleRecorder<'a>,
    watch: &'a LateWatch<'a>,
    /// The stream and the condition.
    run: (usize, usize),
    /// Cycles that are still cold.
    cold: u32,
    counts: bool,
}

impl<'a> StoppingRecorder<'a> {
    /// Into `ring`, for this stream and condition.
    pub(super) fn new(ring: Ring<'a>, watch: &'a LateWatch<'a>, run: (usize, usize)) -> Self {
        Self { recorder: SampleRecorder::new(ring, 0), watch, run, cold: 0, counts: true }
    }

    /// As [`SampleRecorder::begin`].
    pub(super) fn begin(&mut self, cold: u32) {
        self.recorder.begin(cold);
        self.cold = cold;
    }

    /// As [`SampleRecorder::begin_uncounted`]; such a segment ends nothing.
    pub(super) fn begin_uncounted(&mut self) {
        self.recorder.begin_uncounted();
        self.counts = false;
    }

    /// Stops the run if this release is later than its limit.
    #[inline]
    fn look(&mut self, job: &Job, start: Instant) {
        // As in its sample: one that let releases pass is not.
        let is_cold = self.cold > 0 && job.passed == 0;
        self.cold = self.cold.saturating_sub(1);
        let Some(over) = self.watch.over.filter(|over| over.counts_cold || !is_cold) else {
            return;
        };
        let lateness = start - job.release;
        if lateness > over.above && self.counts {
            self.end_at(job, lateness, over.above);
        }
    }

    /// Once a run: after it the loop has no release to keep.
    #[cold]
    fn end_at(&self, job: &Job, lateness: Span, above: Span) {
        let (stream, condition) = self.run;
        let late = LateRelease {
            stream,
            condition,
            cycle: job.cycle,
            lateness,
            release: job.release,
            seen_unix_ns: now_ns(ClockId::Realtime),
            above,
        };
        // Another loop was first.
        let _later = self.watch.first.set(late);
        self.watch.stop.store(true, Ordering::Relaxed);
    }
}

impl Observe for StoppingRecorder<'_> {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        self.recorder.ran(job, start, finish, overruns);
        self.look(job, start);
    }

    fn never_ran(&mut self, rank: usize, missed: Missed, end: Instant) {
        self.recorder.never_ran(rank, missed, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::releases::Releases;
    use punctual_core::ring::{SplitRing, split};
    use punctual_core::time::Period;
    use punctual_engine::counting::ring_of;

    /// The releases of a run in turn, this late each, in ns; the one that ended it, and how many
    /// were recorded.
    fn ended(over: StopOver, cold: u32, counts: bool, late_ns: &[i64]) -> (Option<u64>, u64) {
        let period = Period::from_ns(1_000).expect("in range");
        let grid = Releases::new(Instant::from_ns(5_000), period);
        let (memory, stop) = (ring_of(period), AtomicBool::new(false));
        let SplitRing { ring, view, .. } = split(&memory).expect("large enough");
        let watch = LateWatch::new(Some(over), &stop);
        let mut recorder = StoppingRecorder::new(ring, &watch, (1, 2));
        if counts {
            recorder.begin(cold);
        } else {
            recorder.begin_uncounted();
        }
        for (cycle, &late_ns) in (0..).zip(late_ns) {
            let release = grid.release(cycle);
            let job = Job {
                rank: 0,
                cycle,
                part: 0,
                release,
                next: grid.release(cycle + 1),
                missed: 0,
                passed: late_ns as u64 / 1_000,
                period,
            };
            let start = release + Span::from_ns(late_ns);
            recorder.ran(&job, start, start, Overruns::default());
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        let first = watch.first();
        if let Some(first) = first {
            assert_eq!((first.stream, first.condition, first.above), (1, 2, over.above));
            assert_eq!(first.lateness.as_ns(), late_ns[first.cycle as usize]);
            assert_eq!(first.release, grid.release(first.cycle));
        }
        (first.map(|first| first.cycle), view.count())
    }

    #[test]
    fn the_first_release_that_is_later_is_the_last_and_cold_ones_end_nothing() {
        let over = StopOver { above: Span::from_ns(500), counts_cold: false };
        assert_eq!(ended(over, 0, true, &[500, 20, 501, 900]), (Some(2), 3), "strictly later");
        assert_eq!(ended(over, 2, true, &[900, 900, 20, 501, 1]), (Some(3), 4));
        assert_eq!(ended(over, 2, true, &[900, 900, 20]), (None, 3));
        assert_eq!(ended(over, 2, true, &[900, 1_000, 20]), (Some(1), 2), "a release passed");
        let over = StopOver { counts_cold: true, ..over };
        assert_eq!(ended(over, 2, true, &[900, 900]), (Some(0), 1));
        assert_eq!(ended(over, 0, false, &[900, 900]), (None, 0), "behind the measurement");
    }
}
