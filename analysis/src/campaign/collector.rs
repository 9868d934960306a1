//! One run during one stretch: samples in, what a campaign keeps of them out.
//!
//! Constant memory, no allocation per sample; the grid is not fitted, as no grid lasts over boots.

use punctual_core::sample::{Flags, Sample};
use punctual_core::time::{Instant, Period};

use super::counted::Watched;
use super::maxima::Maxima;
use super::outliers::{Outlier, Outliers};
use super::total::Total;
use crate::claim::dependence::{Exceedances, Pooled};
use crate::recording::{MISSED, interval_ns};
use crate::summary::Distribution;

/// What must be known of a stretch before its first sample.
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

/// Watches the thresholds that a total watches; those asked for where it has none yet.
fn more(period_ns: i64, total: &Pooled, thresholds_ns: &[i64]) -> Exceedances {
    if total.recorded() == 0 {
        Exceedances::new(period_ns, thresholds_ns)
    } else {
        Exceedances::like(period_ns, total)
    }
}

/// The accumulator of one run during one stretch.
#[derive(Clone, Debug)]
pub struct Collector {
    start: Start,
    period_ns: i64,
    pub(super) lateness: Distribution,
    pub(super) interval: Distribution,
    pub(super) exceedances: Exceedances,
    /// Distances of intervals from zero.
    pub(super) intervals: Exceedances,
    /// Releases: 0 for each that ran, beyond any threshold for each that did not.
    pub(super) releases: Exceedances,
    pub(super) maxima: Maxima,
    pub(super) outliers: Outliers,
    previous: Option<Sample>,
    /// Whether the previous sample was left out, so that no interval starts there.
    previous_left_out: bool,
    pub(super) cycles: u64,
    pub(super) cold: u64,
    pub(super) cold_max_ns: Option<i64>,
    gaps: u64,
}

impl Collector {
    /// An empty one, whose gains `total` will take in.
    pub(super) fn new(start: Start, total: &Total, watched: &Watched) -> Self {
        let period_ns = i64::try_from(start.period.as_ns()).unwrap_or(i64::MAX);
        Self {
            start,
            period_ns,
            lateness: Distribution::default(),
            interval: Distribution::default(),
            exceedances: more(period_ns, total.exceedances(), &watched.lateness_ns),
            intervals: more(0, total.intervals(), &watched.interval_ns),
            releases: more(0, total.releases(), &[MISSED]),
            maxima: total.maxima().clone(),
            outliers: total.outliers().clone(),
            previous: None,
            previous_left_out: false,
            cycles: 0,
            cold: 0,
            cold_max_ns: None,
            gaps: 0,
        }
    }

    /// Says what the time of day is now, for the outliers that come.
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
        self.cycles += 1;
        let first = sample.flags.has(Flags::FIRST);
        let previous = if first { None } else { self.previous };
        let missed = previous.map_or(0, |p| sample.cycle.saturating_sub(p.cycle).saturating_sub(1));
        self.gaps = self.gaps.saturating_add(missed);
        self.previous = Some(*sample);
        let lateness_ns = sample.lateness.as_ns();
        let cold = sample.flags.has(Flags::COLD);
        if cold {
            self.cold += 1;
            self.cold_max_ns = self.cold_max_ns.max(Some(lateness_ns));
        }
        let left_out = cold && self.start.leave_out_cold;
        let kept = previous.filter(|_| !self.previous_left_out);
        self.previous_left_out = left_out;
        if left_out {
            return;
        }
        if let Some(previous) = kept {
            let ns = interval_ns(&previous, sample, self.period_ns);
            self.interval.push(ns);
            self.intervals.push(ns.saturating_abs(), 0, 0);
        }
        self.releases.push(0, missed, 0);
        self.lateness.push(lateness_ns);
        let stalled_ns = previous.map_or(0, |previous| previous.lateness.as_ns());
        self.exceedances.push(lateness_ns, missed, stalled_ns);
        self.maxima.push(lateness_ns);
        if self.outliers.wants(lateness_ns) {
            self.note(sample);
        }
    }

    #[cold]
    fn note(&mut self, sample: &Sample) {
        let period_ns = u128::from(self.start.period.as_ns());
        let release = u128::from(self.start.epoch.as_ns()) + u128::from(sample.cycle) * period_ns;
        let release = u64::try_from(release).unwrap_or(u64::MAX);
        let at_ns = release.saturating_add_signed(sample.lateness.as_ns());
        let monotonic = i64::try_from(at_ns).unwrap_or(i64::MAX);
        self.outliers.insert(Outlier {
            lateness_ns: sample.lateness.as_ns(),
            at_unix_ns: monotonic.saturating_add(self.start.time_of_day_ns),
            at_ns,
            cycle: sample.cycle,
            boot: self.start.boot,
        });
    }

    /// Recorded cycles so far, cold ones included.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Lateness so far.
    pub fn lateness(&self) -> &Distribution {
        &self.lateness
    }

    /// Releases without a sample so far: missed, or run but unrecorded.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }
}
