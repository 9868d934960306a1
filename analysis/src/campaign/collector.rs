//! One run during one batch: samples in, what a campaign keeps of them out.
//!
//! Constant memory, no allocation per sample; the grid is not fitted, because no grid continues
//! across boots.

use punctual_core::sample::Sample;
use punctual_core::time::{Instant, Period};

use super::total::Total;
use crate::campaign::total::Maxima;
use crate::campaign::total::WatchedThresholds;
use crate::campaign::total::{Outlier, Outliers};
use crate::claim::dependence::{Exceedances, Pooled};
use crate::recording::{MISSED, ReleaseKind};
use crate::release::{Lateness, ReleaseGap, Releases, Walk};
use crate::summary::Distribution;

/// What must be known of a batch before its first sample.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The nominal period.
    pub period: Period,
    /// Instant of release 0 on CLOCK_MONOTONIC.
    pub epoch: Instant,
    /// CLOCK_REALTIME − CLOCK_MONOTONIC, ns.
    pub time_of_day_ns: i64,
    /// Leave samples flagged cold out of every figure (they are counted).
    pub leave_out_cold: bool,
    /// The number of the boot.
    pub boot: u32,
}

/// Watches the thresholds that a total watches, or the requested ones where it has none yet.
fn more(period_ns: i64, total: &Pooled, thresholds_ns: &[i64]) -> Exceedances {
    if total.recorded() == 0 {
        Exceedances::new(period_ns, thresholds_ns)
    } else {
        Exceedances::like(period_ns, total)
    }
}

/// The accumulator of one run during one batch.
#[derive(Clone, Debug)]
pub struct Collector {
    start: Start,
    walk: Walk,
    lateness: Lateness,
    pub(super) interval: Distribution,
    exceedances: Exceedances,
    /// Distances of intervals from zero.
    pub(super) intervals: Exceedances,
    /// Releases: 0 for each that ran, beyond any threshold for each that did not.
    pub(super) releases: Exceedances,
    pub(super) maxima: Maxima,
    pub(super) outliers: Outliers,
}

impl Collector {
    /// An empty collector whose counts will be added to `total`.
    pub(super) fn new(start: Start, total: &Total, watched: &WatchedThresholds) -> Self {
        let period_ns = i64::try_from(start.period.as_ns()).unwrap_or(i64::MAX);
        Self {
            walk: Walk::new(period_ns, start.leave_out_cold),
            start,
            lateness: Lateness::default(),
            interval: Distribution::default(),
            exceedances: more(period_ns, total.exceedances(), &watched.lateness_ns),
            intervals: more(0, total.intervals(), &watched.interval_ns),
            releases: more(0, total.releases(), &[MISSED]),
            maxima: total.maxima().clone(),
            outliers: total.outliers().clone(),
        }
    }

    /// Sets the current time of day, for the outliers that follow.
    pub fn set_time_of_day(&mut self, ahead_ns: i64) {
        self.start.time_of_day_ns = ahead_ns;
    }

    /// Takes in a block of samples, in order.
    pub fn extend(&mut self, samples: &[Sample]) {
        samples.iter().for_each(|sample| self.push(sample));
    }

    /// Takes in the next sample. Cycles must not decrease.
    #[inline]
    pub fn push(&mut self, sample: &Sample) {
        let lateness_ns = sample.lateness.as_ns();
        let step = self.walk.step(sample, lateness_ns);
        if let Some(gap) = step.gap {
            self.miss(&gap, sample);
        }
        if step.left_out {
            return;
        }
        if let Some(ns) = step.interval_ns {
            self.interval.push(ns);
            self.intervals.push(ns.saturating_abs(), 0, 0);
        }
        self.releases.push(0, 0, 0);
        self.lateness.push(lateness_ns);
        self.exceedances.push(lateness_ns, 0, 0);
        self.maxima.push(lateness_ns);
        if self.outliers.wants(lateness_ns) {
            self.note(sample, lateness_ns, ReleaseKind::Ran);
        }
    }

    /// Takes in the releases that were missed before `sample`.
    #[cold]
    fn miss(&mut self, gap: &ReleaseGap, sample: &Sample) {
        self.releases.miss(ReleaseGap::new(gap.missed(), 0, 0, 0));
        self.lateness.miss(gap);
        self.exceedances.miss(*gap);
        if let Some((releases, lateness_ns)) = gap.longest_wait()
            && self.outliers.wants(lateness_ns)
        {
            let missed = Sample { cycle: sample.cycle - releases, ..*sample };
            self.note(&missed, lateness_ns, ReleaseKind::Missed);
        }
    }

    /// Keeps the release of a sample as an outlier.
    #[cold]
    fn note(&mut self, sample: &Sample, lateness_ns: i64, kind: ReleaseKind) {
        let period_ns = u128::from(self.start.period.as_ns());
        let release = u128::from(self.start.epoch.as_ns()) + u128::from(sample.cycle) * period_ns;
        let release = u64::try_from(release).unwrap_or(u64::MAX);
        let at_ns = release.saturating_add_signed(lateness_ns);
        let monotonic = i64::try_from(at_ns).unwrap_or(i64::MAX);
        self.outliers.insert(Outlier {
            lateness_ns,
            at_unix_ns: monotonic.saturating_add(self.start.time_of_day_ns),
            at_ns,
            cycle: sample.cycle,
            kind,
            boot: self.start.boot,
        });
    }

    /// How far the samples have come.
    pub(super) fn walk(&self) -> &Walk {
        &self.walk
    }

    /// Recorded cycles so far, cold ones included.
    pub fn cycles(&self) -> u64 {
        self.walk.samples()
    }

    /// Lateness of the releases, and exceedances of the thresholds, of a batch that is over.
    pub(super) fn finish(&self, missed: u64, unrecorded: u64) -> (Releases, Pooled) {
        let placement = self.walk.placement(missed, unrecorded);
        let exceedances = self.exceedances.clone().placed(missed, &placement);
        (self.lateness.clone().finish(&placement, unrecorded), exceedances)
    }

    /// Releases without a sample so far: missed, or run but unrecorded.
    pub fn gaps(&self) -> u64 {
        self.walk.gaps()
    }
}
