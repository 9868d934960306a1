//! One run, sample by sample: which releases lie between two samples, and what interval.
//!
//! For every accumulator that is fed with samples. Holds one sample and a few counts.

use punctual_core::sample::{Flags, Sample};

use super::{Ends, ReleaseGap, Trailing};

/// Where a run has come to.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// The nominal period, ns; 0 where there is none.
    period_ns: i64,
    /// The time from release to release, which is another where releases are fitted.
    spacing_ns: i64,
    leave_out_cold: bool,
    /// The latest sample, and its lateness, which is another where releases are fitted.
    previous: Option<(Sample, i64)>,
    /// Whether it was left out, so that no interval starts there.
    previous_left_out: bool,
    samples: u64,
    cold: u64,
    cold_max_ns: Option<i64>,
    gaps: u64,
    ends: Ends,
}

/// What one more sample makes known.
#[derive(Clone, Copy, Debug)]
pub struct WalkStep {
    /// The releases between the sample before and this one.
    pub gap: Option<ReleaseGap>,
    /// wake − previous wake − period, where the loop ran just before.
    pub interval_ns: Option<i64>,
    /// Whether the sample itself is left out of every figure.
    pub left_out: bool,
}

/// What is known of releases without a sample, once a run is over.
#[derive(Clone, Debug, Default)]
pub struct StartPlacement {
    /// Whether each release in a gap was missed. Where cycles went unrecorded that is not known.
    pub gaps: bool,
    /// Releases that were missed at the end of a segment, with their lateness.
    pub trailing: Vec<Trailing>,
    /// Missed releases of which only is known that they were late by a period at least.
    pub censored: u64,
    /// That period, ns; 0 where there is none.
    pub censored_from_ns: i64,
}

impl Walk {
    /// A run of which nothing came yet, of cycles `period_ns` apart; 0 where there is no period.
    pub fn new(period_ns: i64, leave_out_cold: bool) -> Self {
        Self { period_ns, spacing_ns: period_ns, leave_out_cold, ..Self::default() }
    }

    /// The same, where releases are `spacing_ns` apart, not a nominal period.
    #[must_use]
    pub fn spaced(self, spacing_ns: i64) -> Self {
        Self { spacing_ns, ..self }
    }

    /// Takes in the next sample, which was `lateness_ns` late. Cycles must not decrease.
    #[inline]
    pub fn step(&mut self, sample: &Sample, lateness_ns: i64) -> WalkStep {
        self.samples += 1;
        let before = self.previous.replace((*sample, lateness_ns));
        let before = if sample.flags.has(Flags::FIRST) { self.ended(before) } else { before };
        let gap = before.and_then(|(previous, before_ns)| {
            let missed = sample.cycle.saturating_sub(previous.cycle).saturating_sub(1);
            self.gaps = self.gaps.saturating_add(missed);
            (missed > 0).then(|| ReleaseGap::new(missed, before_ns, lateness_ns, self.spacing_ns))
        });
        let cold = sample.flags.has(Flags::COLD);
        if cold {
            self.cold += 1;
            self.cold_max_ns = self.cold_max_ns.max(Some(sample.lateness.as_ns()));
        }
        let left_out = cold && self.leave_out_cold;
        let kept = before.filter(|_| !self.previous_left_out && !left_out);
        self.previous_left_out = left_out;
        let interval_ns = kept.map(|(previous, _)| interval_ns(&previous, sample, self.period_ns));
        WalkStep { gap, interval_ns, left_out }
    }

    /// A segment ended before this sample.
    #[cold]
    fn ended(&mut self, last: Option<(Sample, i64)>) -> Option<(Sample, i64)> {
        if let Some((sample, lateness_ns)) = last {
            self.ends.push(sample.cycle, lateness_ns, self.spacing_ns);
        }
        None
    }

    /// The latest sample, where the next one can simply follow it.
    #[inline]
    pub fn follows(&self) -> Option<&Sample> {
        self.previous.as_ref().filter(|_| !self.previous_left_out).map(|(sample, _)| sample)
    }

    /// Takes in `count` samples that follow each other without a gap or a flag, up to `last`.
    #[inline]
    pub fn stride(&mut self, count: u64, last: Option<&Sample>) {
        self.samples += count;
        self.previous = last.map(|sample| (*sample, sample.lateness.as_ns())).or(self.previous);
    }

    /// Samples so far, cold ones included.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Samples that were flagged cold so far.
    pub fn cold(&self) -> u64 {
        self.cold
    }

    /// The largest lateness of a cold one, about the nominal grid.
    pub fn cold_max_ns(&self) -> Option<i64> {
        self.cold_max_ns
    }

    /// Releases so far that lie in a gap: missed, or run but unrecorded.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// What is known of the releases without a sample: `missed` never ran, `unrecorded` ran.
    pub fn placement(&self, missed: u64, unrecorded: u64) -> StartPlacement {
        let censored_from_ns = self.spacing_ns;
        if unrecorded > 0 || missed < self.gaps {
            let trailing = Vec::new();
            return StartPlacement { gaps: false, trailing, censored: missed, censored_from_ns };
        }
        let mut ends = self.ends.clone();
        if let Some((sample, lateness_ns)) = self.previous {
            ends.push(sample.cycle, lateness_ns, self.spacing_ns);
        }
        let (trailing, censored) = ends.place(missed - self.gaps, self.spacing_ns);
        StartPlacement { gaps: true, trailing, censored, censored_from_ns }
    }
}

/// wake − previous wake − one period, saturating: a missed release shows as at least one period.
#[inline]
fn interval_ns(previous: &Sample, sample: &Sample, period_ns: i64) -> i64 {
    let difference = sample.lateness.as_ns().saturating_sub(previous.lateness.as_ns());
    if sample.cycle == previous.cycle.wrapping_add(1) {
        return difference;
    }
    let releases = i128::from(sample.cycle) - i128::from(previous.cycle) - 1;
    let apart = releases * i128::from(period_ns);
    let apart = apart.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
    difference.saturating_add(apart)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::time::Span;

    fn sample(cycle: u64, lateness_ns: i64, flags: Flags) -> Sample {
        Sample { cycle, lateness: Span::from_ns(lateness_ns), flags }
    }

    #[test]
    fn gaps_lie_inside_segments_and_what_was_missed_after_one_has_no_gap() {
        let mut walk = Walk::new(1_000, true);
        let mut step = |cycle, ns, flags| walk.step(&sample(cycle, ns, flags), ns);
        let first = step(5, 900, Flags::FIRST.with(Flags::COLD));
        assert!(first.left_out && first.gap.is_none() && first.interval_ns.is_none());
        let second = step(7, 20, Flags::NONE);
        assert_eq!(second.gap, Some(ReleaseGap::new(1, 900, 20, 1_000)));
        assert_eq!(second.interval_ns, None, "the cycle before it was left out");
        assert_eq!(step(8, 2_500, Flags::NONE).interval_ns, Some(2_480));
        // Two releases passed before that wake, and the segment ended.
        assert!(step(90, 10, Flags::FIRST).gap.is_none());
        assert_eq!((walk.samples(), walk.cold(), walk.gaps()), (4, 1, 1));
        let placed = walk.placement(3, 0);
        let pieces = placed.trailing.iter().flat_map(|end| end.pieces);
        let late: Vec<_> = pieces.filter_map(|piece| piece.next_ns()).collect();
        assert_eq!(placed.trailing[0].after, 8);
        assert_eq!((placed.gaps, late, placed.censored), (true, vec![1_500, 1_000], 0));
        let lost = walk.placement(3, 2);
        assert!(!lost.gaps && lost.trailing.is_empty() && lost.censored == 3, "{lost:?}");
        assert!(!walk.placement(0, 0).gaps, "a gap that the recorder does not know of");
    }
}
