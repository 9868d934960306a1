//! A run's time series as a page holds it: an envelope, and every outlier by name.
//!
//! One pass over the samples in constant memory. An outlier is a cycle later than a threshold that
//! the caller knows, its 99.9 % quantile; all are counted, the latest are kept.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use punctual_core::sample::Sample;

use super::envelope::Envelope;
use crate::release::Walk;

/// A cycle later than the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LateCycle {
    /// Its lateness, ns.
    pub lateness_ns: i64,
    /// Its cycle.
    pub cycle: u64,
}

/// How much is kept and what is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinnerConfig {
    /// The most bins of the envelope.
    pub bins: usize,
    /// The most outliers.
    pub outliers: usize,
    /// A cycle later than this is an outlier; `None`: no cycle is.
    pub outlier_above_ns: Option<i64>,
    /// Leave cold cycles out, as the figures do.
    pub leave_out_cold: bool,
}

/// A time series while its samples come in.
#[derive(Clone, Debug)]
pub struct Thinner {
    bounds: ThinnerConfig,
    envelope: Envelope,
    latest: BinaryHeap<Reverse<LateCycle>>,
    beyond: u64,
    walk: Walk,
}

/// A time series, thinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thinned {
    /// All cycles, in few bins.
    pub envelope: Envelope,
    /// The outliers in order of their cycle; the latest, where there were too many.
    pub outliers: Vec<LateCycle>,
    /// How many outliers there were: more than are listed where the list was cut.
    pub outliers_in_all: u64,
    /// The threshold that they are later than, ns.
    pub outlier_above_ns: Option<i64>,
    /// Samples that came in, cold ones included.
    pub samples: u64,
}

impl Thinner {
    /// Nothing yet.
    pub fn new(bounds: ThinnerConfig) -> Self {
        Self {
            envelope: Envelope::new(bounds.bins),
            latest: BinaryHeap::new(),
            beyond: 0,
            walk: Walk::new(0, bounds.leave_out_cold),
            bounds,
        }
    }

    /// Takes in the next samples; cycles must not decrease.
    pub fn extend(&mut self, samples: &[Sample]) {
        for sample in samples {
            self.push(sample);
        }
    }

    #[inline]
    fn push(&mut self, sample: &Sample) {
        let lateness_ns = sample.lateness.as_ns();
        let step = self.walk.step(sample, lateness_ns);
        if step.left_out {
            return;
        }
        let missed = step.gap.map_or(0, |gap| gap.missed());
        self.envelope.push(sample.cycle, lateness_ns, missed);
        if self.bounds.outlier_above_ns.is_some_and(|above| lateness_ns > above) {
            self.keep(LateCycle { lateness_ns, cycle: sample.cycle });
        }
    }

    #[cold]
    fn keep(&mut self, outlier: LateCycle) {
        self.beyond += 1;
        self.latest.push(Reverse(outlier));
        if self.latest.len() > self.bounds.outliers {
            self.latest.pop();
        }
    }

    /// The time series.
    pub fn finish(self) -> Thinned {
        let mut outliers: Vec<LateCycle> = self.latest.into_iter().map(|kept| kept.0).collect();
        outliers.sort_unstable_by_key(|outlier| (outlier.cycle, outlier.lateness_ns));
        Thinned {
            envelope: self.envelope,
            outliers,
            outliers_in_all: self.beyond,
            outlier_above_ns: self.bounds.outlier_above_ns,
            samples: self.walk.samples(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::sample::Flags;
    use punctual_core::time::Span;

    fn sample(cycle: u64, lateness_ns: i64, flags: Flags) -> Sample {
        Sample { cycle, lateness: Span::from_ns(lateness_ns), flags }
    }

    fn bounds() -> ThinnerConfig {
        ThinnerConfig { bins: 8, outliers: 3, outlier_above_ns: Some(50), leave_out_cold: true }
    }

    #[test]
    fn the_latest_outliers_are_kept_and_all_are_counted() {
        let mut thinner = Thinner::new(bounds());
        for cycle in 0..100 {
            thinner.push(&sample(cycle, (cycle as i64 * 37) % 100, Flags::NONE));
        }
        let thinned = thinner.finish();
        assert_eq!(thinned.outliers_in_all, 49);
        let mut kept: Vec<i64> = thinned.outliers.iter().map(|o| o.lateness_ns).collect();
        assert!(thinned.outliers.windows(2).all(|pair| pair[0].cycle < pair[1].cycle));
        kept.sort_unstable();
        assert_eq!(kept, [97, 98, 99]);
        assert!(thinned.envelope.bins().len() <= 8);
    }

    #[test]
    fn cold_cycles_are_left_out_and_gaps_within_a_segment_are_missed() {
        let mut thinner = Thinner::new(bounds());
        thinner.extend(&[
            sample(0, 900, Flags::FIRST.with(Flags::COLD)),
            sample(1, 5, Flags::NONE),
            sample(4, 60, Flags::NONE),
            sample(90, 7, Flags::FIRST),
        ]);
        let thinned = thinner.finish();
        assert_eq!((thinned.samples, thinned.outliers_in_all), (4, 1));
        let bins = thinned.envelope.bins();
        let seen: Vec<_> = bins.iter().map(|s| (s.first, s.max_ns, s.missed)).collect();
        assert_eq!(seen, [(1, 5, 0), (4, 60, 2), (90, 7, 0)]);
    }
}
