//! One threshold while it is watched: counts, and the extremal index from them.
//!
//! For the accumulator. Constant memory; touched only when the series crosses the threshold.

use serde::{Deserialize, Serialize};

use super::places::{Places, Separate};
use super::tails::ThresholdExceedances;

/// Gaps between clusters that an estimate needs.
const GAPS_MIN: u64 = 10;
/// Exceedances further apart than this belong to different clusters (runs estimator).
const RUN_GAP: u64 = 10;
/// Below this many clusters the runs estimator is used too.
const FEW: u64 = 30;
/// It is used only on thresholds that at most this share of the releases exceeds.
const RARE: f64 = 0.1;

/// What was counted about one threshold: additive over separate series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) threshold_ns: i64,
    #[serde(rename = "asked")]
    requested: bool,
    exceedances: u64,
    missed: u64,
    /// Series in which it was exceeded: each has one exceedance that no gap leads to.
    series: u64,
    /// Neighbouring exceedances (gaps of 1), and gaps of more than 1.
    neighbours: u64,
    gaps: u64,
    gap_max: u64,
    /// Σ(T − 1) and Σ(T − 1)(T − 2) over gaps T.
    #[serde(with = "crate::stored::decimal")]
    sum: u128,
    #[serde(with = "crate::stored::decimal")]
    squares: u128,
    clusters: u64,
    /// Where they were.
    #[serde(default)]
    places: Places,
}

/// One threshold while it is watched. Indices count releases, missed ones included.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) counts: Counts,
    /// Start of the present run of exceedances, while the series is above.
    run_start: u64,
    /// The last exceedance before the present run; `None` before the first.
    last: Option<u64>,
    /// Recorded exceedances before the present run started.
    recorded_at_start: u64,
}

impl Watch {
    pub(super) fn new(threshold_ns: i64, requested: bool) -> Self {
        let counts = Counts { threshold_ns, requested, gap_max: 1, ..Counts::default() };
        Self { counts, run_start: 0, last: None, recorded_at_start: 0 }
    }

    /// The same threshold, with nothing counted yet.
    pub(super) fn like(counts: &Counts) -> Self {
        Self::new(counts.threshold_ns, counts.requested)
    }

    pub(super) fn threshold_ns(&self) -> i64 {
        self.counts.threshold_ns
    }

    /// The series rose above the threshold at this index.
    pub(super) fn up(&mut self, index: u64, recorded: u64) {
        self.run_start = index;
        self.recorded_at_start = recorded;
        let counts = &mut self.counts;
        match self.last {
            Some(last) => {
                let gap = index - last;
                counts.gaps += 1;
                counts.gap_max = counts.gap_max.max(gap);
                counts.sum += u128::from(gap - 1);
                counts.squares += u128::from(gap - 1) * u128::from(gap.saturating_sub(2));
                counts.clusters += u64::from(gap > RUN_GAP);
            }
            None => (counts.clusters, counts.series) = (1, 1),
        }
    }

    /// The series is no longer above the threshold at this index.
    pub(super) fn down(&mut self, index: u64, recorded: u64) {
        self.counts.neighbours += index - self.run_start - 1;
        let recorded = recorded - self.recorded_at_start;
        self.counts.exceedances += recorded;
        self.counts.missed += index - self.run_start - recorded;
        self.counts.places.push(self.run_start, index);
        self.last = Some(index - 1);
    }
}

impl Counts {
    /// Counts missed releases that exceed the threshold and whose position is unknown.
    pub(super) fn miss(&mut self, count: u64) {
        self.missed = self.missed.saturating_add(count);
    }

    /// Adds those of another series, which began after `releases` of this one.
    pub(super) fn add(&mut self, releases: u64, other: &Self) {
        self.requested |= other.requested;
        self.exceedances += other.exceedances;
        self.missed = self.missed.saturating_add(other.missed);
        self.series += other.series;
        self.neighbours += other.neighbours;
        self.gaps += other.gaps;
        self.gap_max = self.gap_max.max(other.gap_max);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        self.clusters += other.clusters;
        self.places.append(releases, &other.places);
    }

    /// Whether no count is beyond `most`.
    pub(super) fn is_sound(&self, most: u64) -> bool {
        let all = [self.exceedances, self.missed, self.series, self.neighbours, self.gaps];
        all.into_iter().chain([self.gap_max, self.clusters]).all(|count| count <= most)
            && self.places.is_sound(most)
    }

    pub(super) fn finish(&self, releases: u64) -> ThresholdExceedances {
        ThresholdExceedances {
            threshold_ns: self.threshold_ns,
            exceedances: self.exceedances,
            unsure: 0,
            missed: self.missed,
            theta: self.intervals().map(|theta| with_doubt(theta, self.gaps)),
            theta_few: self.runs(releases),
            separate: self.separate(releases),
            requested: self.requested,
        }
    }

    /// How many separate clusters there were; unknown of counts that were kept without places.
    fn separate(&self, releases: u64) -> Separate {
        let known = self.places.count() == self.neighbours + self.gaps + self.series;
        if known { self.places.separate(releases) } else { Separate::Unknown }
    }

    /// Ferro and Segers' estimate from the gaps between exceedances.
    fn intervals(&self) -> Option<f64> {
        if self.gaps < GAPS_MIN {
            return None;
        }
        let times = (self.neighbours + self.gaps) as f64;
        let (sum, squares) = if self.gap_max <= 2 {
            // Gaps of 1 and 2 only: their sums follow from the counts.
            let (ones, twos) = (self.neighbours as f64, self.gaps as f64);
            (ones + 2.0 * twos, ones + 4.0 * twos)
        } else {
            (self.sum as f64, self.squares as f64)
        };
        Some((2.0 * sum * sum / (times * squares)).min(1.0))
    }

    /// Clusters per exceedance of a rare threshold, while there are few clusters; less what chance
    /// alone brings together. Used once some exceedances came together: then the size of clusters
    /// is known from few of them.
    fn runs(&self, releases: u64) -> Option<f64> {
        let events = self.neighbours + self.gaps + self.series;
        let share = events as f64 / releases as f64;
        if events == 0 || self.clusters >= FEW || share > RARE {
            return None;
        }
        let apart = (1.0 - share).powi(RUN_GAP as i32);
        let theta = (self.clusters as f64 / events as f64 / apart).min(1.0);
        Some(if self.clusters < events { with_doubt(theta, self.clusters) } else { theta })
    }
}

/// θ less one standard error (relative 1/√clusters): an estimate must not claim independence that
/// it could not have distinguished from dependence.
fn with_doubt(theta: f64, clusters: u64) -> f64 {
    theta * (1.0 - 1.0 / (clusters as f64 + 1.0).sqrt())
}
