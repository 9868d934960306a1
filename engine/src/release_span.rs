//! The span of a run's releases: the one rule that says where a duration begins and ends.
//!
//! For whoever starts tasks for a time: the executive's threads and a supervisor of processes. Pure
//! arithmetic; reads no clock. A loop of one period has one grid, and the same rule: its end is its
//! first release and the duration.

use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period, Span};

/// The least time from the end of setup to the first release.
const LEAD: Span = Span::from_ms(1);

/// The instants at which the first release is due at the earliest, and from which on none runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseSpan {
    /// No release is due before.
    pub from: Instant,
    /// Releases at or after it do not run.
    pub end: Instant,
}

/// The length of a run, and the grids of all that has releases in it.
#[derive(Clone, Debug)]
pub struct RunLength {
    duration: Option<Span>,
    frame: Option<Period>,
    grids: Vec<(Period, u64)>,
}

impl RunLength {
    /// A run for `duration` from its first release on, without end where it is `None`: of a
    /// calendar of this frame, and of what is released in these periods, at these phases in ns.
    /// The units of a calendar are one grid: the frame, and the place of the first of them.
    ///
    /// # Real-time: setup only
    pub fn new(
        duration: Option<Span>,
        frame: Option<Period>,
        grids: impl IntoIterator<Item = (Period, u64)>,
    ) -> Self {
        Self { duration, frame, grids: grids.into_iter().collect() }
    }

    /// The span of the releases of a run that is ready at `ready`, with all grids at `epoch`. A
    /// task whose period the duration is a multiple of has duration / period releases in it.
    ///
    /// # Real-time: setup only
    pub fn span(&self, epoch: Instant, ready: Instant) -> ReleaseSpan {
        let next = |(period, phase_ns): (Period, u64), from| {
            let first = Instant::from_ns(epoch.as_ns().saturating_add(phase_ns));
            let releases = Releases::new(first, period);
            releases.release(releases.at_or_after(from))
        };
        let from = ready + LEAD;
        // No frame is begun in its middle, and nothing else runs before the first one: of each task
        // as many releases are within the duration as it has room for.
        let from = self.frame.map_or(from, |frame| next((frame, 0), from));
        let first = self.grids.iter().map(|grid| next(*grid, from)).min().unwrap_or(from);
        let end = self.duration.map_or(Instant::from_ns(u64::MAX), |span| first + span);
        ReleaseSpan { from, end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn period(ms: u64) -> Period {
        Period::from_ns(ms * MS).expect("in range")
    }

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * MS)
    }

    #[test]
    fn a_duration_counts_from_the_first_release_of_all() {
        let grids = [(period(10), 7 * MS), (period(4), 2 * MS)];
        let span = |ready_ms, frame| {
            RunLength::new(Some(Span::from_ms(40)), frame, grids).span(at(100), at(ready_ms))
        };
        // Ready at 211 with the lead: releases are due at 214 and 217.
        assert_eq!(span(210, None), ReleaseSpan { from: at(211), end: at(254) });
        // The next frame begins at 220, and its first release is at 222.
        assert_eq!(span(210, Some(period(20))), ReleaseSpan { from: at(220), end: at(262) });
        let endless = RunLength::new(None, None, grids).span(at(100), at(210));
        assert_eq!(endless, ReleaseSpan { from: at(211), end: Instant::from_ns(u64::MAX) });
    }

    #[test]
    fn wherever_it_is_ready_each_task_has_the_releases_that_the_duration_has_room_for() {
        let grids = [(period(10), 7 * MS), (period(4), 2 * MS), (period(20), 0)];
        let length = RunLength::new(Some(Span::from_ms(60)), None, grids);
        for ready_us in (200_000..240_000).step_by(370) {
            let ReleaseSpan { from, end } =
                length.span(at(100), Instant::from_ns(ready_us * 1_000));
            for ((period, phase_ns), room) in grids.into_iter().zip([6, 15, 3]) {
                let releases = Releases::new(at(100) + Span::from_ns(phase_ns as i64), period);
                let count = releases.at_or_after(end) - releases.at_or_after(from);
                assert_eq!(count, room, "{period:?}, ready at {ready_us} µs");
            }
        }
    }
}
