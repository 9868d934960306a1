//! From the imported numbers to figures: contradictions refused, numbers copied, the rest null.
//!
//! For the importers. Nothing is estimated.

use super::RunBuilder;
use super::claims::{Evidence, claims};
use punctual_analysis::claim::dependence::{Tails, ThresholdCount};
use punctual_analysis::histogram::Histogram;
use punctual_analysis::histogram::display::{HistogramView, VIEW_BUCKETS_MAX};
use punctual_analysis::imported::{Imported, ImportedQuantity};
use punctual_analysis::jitters::Jitters;
use punctual_analysis::quantile::Probability;
use punctual_analysis::recording::{RequestedTails, RunFigures, Wakes};
use punctual_analysis::summary::SummaryStats;

/// Where a run comes from, the same for all runs of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) format: &'static str,
    pub(crate) program: &'static str,
    pub(crate) version: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) cannot_know: Vec<String>,
}

/// A run that was read.
#[derive(Clone, Debug)]
pub struct ImportedRun {
    /// "thread 0", "CPU 1".
    pub name: String,
    /// The CPU that it was pinned to.
    pub cpu: Option<u32>,
    /// The nominal period.
    pub period_ns: Option<u64>,
    /// Scheduling policy, as the kernel names it.
    pub policy: Option<String>,
    /// Its priority, as the kernel counts.
    pub priority: Option<u8>,
    /// Its figures.
    pub outcome: RunFigures,
}

impl RunBuilder {
    /// The figures of the run.
    ///
    /// # Errors
    /// Numbers that contradict each other.
    pub(crate) fn finish(mut self, source: &Source) -> Result<ImportedRun, String> {
        let (n, beyond) = self.counted()?;
        if n == 0 && self.n.is_some() {
            self.forget_numbers();
        }
        self.is_consistent(beyond)?;
        let histogram = self.view(beyond);
        let most_ns = self.max_ns.map_or(i64::MAX, |ns| ns as i64 + self.rounding_ns);
        let mut upper = std::mem::take(&mut self.upper);
        upper.push_beyond(most_ns.max(upper.max().unwrap_or(i64::MIN)), beyond);
        if let Some((_, moments)) = &self.order {
            (self.mean_ns, self.stddev_ns) = (moments.mean(), moments.stddev());
        }
        let values_ns = self.stats(&upper, n, beyond);
        let tails = self.tails(n, beyond, most_ns);
        let imported = self.imported(source, values_ns.clone(), beyond);
        let evidence = Evidence {
            imported: &imported,
            tails: &tails,
            upper: &upper,
            n,
            width_ns: self.width_ns,
            widest_ns: self.widest_ns,
            end_ns: self.end_ns(),
            ordered: self.order_known,
        };
        let claims = claims(&evidence);
        let of =
            |holds| if self.holds == holds { values_ns.clone() } else { SummaryStats::default() };
        let is_lateness = self.holds == ImportedQuantity::Lateness;
        let outcome = RunFigures {
            cycles: n,
            cold: 0,
            cold_max_ns: None,
            missed: self.missed,
            censored: 0,
            unrecorded: self.unrecorded,
            lateness_ns: of(ImportedQuantity::Lateness),
            wakes: Wakes {
                left_out: self.missed.map(|missed| missed.saturating_add(self.unrecorded)),
                stats: of(ImportedQuantity::Lateness),
            },
            interval_ns: of(ImportedQuantity::Interval),
            response_ns: (self.holds == ImportedQuantity::Response).then(|| values_ns.clone()),
            execution_ns: None,
            grid: None,
            jitters: jitters(self.holds, &values_ns),
            histogram,
            claims,
            worst: Vec::new(),
            requested: RequestedTails::of(self.far_tails(n, beyond), None),
            imported: Some(imported),
            line: None,
            tails: if is_lateness { tails } else { Tails::default() },
            lateness: if is_lateness { upper } else { Histogram::new() },
        };
        let Self { name, cpu, period_ns, policy, priority, .. } = self;
        Ok(ImportedRun { name, cpu, period_ns, policy, priority, outcome })
    }

    /// How many values there were, and how many of them beyond the histogram.
    fn counted(&self) -> Result<(u64, u64), String> {
        let (name, binned) = (&self.name, self.binned);
        let beyond = self.beyond.unwrap_or_default();
        let n = self.n.unwrap_or_else(|| binned.saturating_add(beyond));
        if n > super::COUNT_MAX || self.unrecorded > super::COUNT_MAX {
            return Err(format!("{name}: too many values"));
        }
        let rest = n.checked_sub(binned).ok_or_else(|| {
            format!("{name}: the histogram holds {binned} values, more than the {n} counted")
        })?;
        match self.beyond {
            Some(beyond) if beyond != rest => Err(format!(
                "{name}: {n} values counted, but {binned} in the histogram and {beyond} beyond it"
            )),
            _ => Ok((n, rest)),
        }
    }

    fn is_consistent(&self, beyond: u64) -> Result<(), String> {
        let name = &self.name;
        let numbers = [self.min_ns, self.mean_ns, self.max_ns];
        if numbers.iter().flatten().zip(numbers.iter().flatten().skip(1)).any(|(a, b)| a > b) {
            return Err(format!("{name}: minimum, mean and maximum are not in this order"));
        }
        let rounding_ns = self.rounding_ns as f64;
        if let Some((lowest_ns, highest_ns)) = self.filled {
            let beneath = self.min_ns.is_some_and(|min| (lowest_ns as f64) < min);
            let above = self.max_ns.is_some_and(|max| highest_ns as f64 > max + rounding_ns);
            if beneath || above {
                let which = if beneath { "below the minimum" } else { "above the maximum" };
                return Err(format!(
                    "{name}: the histogram holds values {which} that the file \
                                   states"
                ));
            }
        }
        match (self.limit_ns, self.max_ns) {
            (Some(limit), Some(max)) if beyond > 0 && max + rounding_ns < limit as f64 => {
                Err(format!(
                    "{name}: {beyond} values are beyond the histogram, but the maximum is \
                        within it"
                ))
            }
            _ => Ok(()),
        }
    }

    fn stats(&self, upper: &Histogram, n: u64, beyond: u64) -> SummaryStats {
        let quantiles = std::array::from_fn(|at| {
            let p = Probability::SUMMARY[at];
            let in_a_bucket = p.is_supported(n) && p.rank(n) <= n - beyond;
            let found = || in_a_bucket.then(|| upper.quantile(p).map(|ns| ns as f64)).flatten();
            self.quantiles_ns[at].filter(|_| p.is_supported(n)).or_else(found)
        });
        let (min, mean, max, stddev) = (self.min_ns, self.mean_ns, self.max_ns, self.stddev_ns);
        SummaryStats { min, mean, stddev, max, ..SummaryStats::default() }.with_quantiles(quantiles)
    }

    /// For each threshold the most values that may exceed it, and how many of them may not.
    fn tails(&mut self, n: u64, beyond: u64, most_ns: i64) -> Tails {
        let (mut may, mut does) = (0, 0);
        let end_ns = self.end_ns();
        let mut counts = Vec::with_capacity(self.thresholds_ns.len());
        for (at, &ns) in self.thresholds_ns.iter().enumerate().rev() {
            may += self.may_exceed[at + 1];
            does += self.do_exceed[at + 1];
            let above = if ns < most_ns { beyond } else { 0 };
            let surely = if end_ns.is_some_and(|end| ns < end) { beyond } else { 0 };
            let most = may + above;
            let unsure = most - does - surely.min(above);
            counts.push(ThresholdCount { threshold_ns: ns, most, unsure });
        }
        counts.reverse();
        let Some((order, _)) = self.order.take() else {
            return Tails::of_counts(n, self.unrecorded, &counts);
        };
        order.finish_with(0, self.unrecorded).with_unsure(&counts)
    }

    /// Of intervals, for each threshold how many may be farther from zero, on either side; `None`
    /// of other values, and where the file does not record how many there were.
    fn far_tails(&self, n: u64, beyond: u64) -> Option<Tails> {
        let far = self.far.as_ref().filter(|_| n > 0)?;
        let most_ns = self.max_ns.map_or(i64::MAX, |ns| ns as i64 + self.rounding_ns);
        let (mut may, mut does) = (0, 0);
        let mut counts = Vec::with_capacity(self.thresholds_ns.len());
        for (at, &ns) in self.thresholds_ns.iter().enumerate().rev() {
            may += far.may[at + 1];
            does += far.does[at + 1];
            let above = if ns < most_ns { beyond } else { 0 };
            let surely = if self.limit_ns.is_some_and(|limit| ns < limit) { above } else { 0 };
            let most = may + above;
            counts.push(ThresholdCount { threshold_ns: ns, most, unsure: most - does - surely });
        }
        counts.reverse();
        Some(Tails::of_counts(n, self.unrecorded, &counts))
    }

    /// The buckets as they were while they are few; else joined on the scale of the histogram.
    fn view(&self, beyond: u64) -> HistogramView {
        let overflow = beyond + self.below + self.upper.overflow();
        let buckets = match &self.cells {
            Some(cells) => {
                cells.iter().map(|(&low, &(high, count))| (low, high + 1, count)).collect()
            }
            None => self.joined(),
        };
        HistogramView { unit_ns: 1, buckets, overflow, ..HistogramView::default() }
    }

    fn joined(&self) -> Vec<(i64, i64, u64)> {
        let fits = |bits: &u32| self.upper.grouped(*bits).count() <= VIEW_BUCKETS_MAX;
        let bits = (0..10).find(fits).unwrap_or(10);
        let width_ns = self.width_ns.unwrap_or(1);
        let mut buckets: Vec<(i64, i64, u64)> = Vec::new();
        for group in self.upper.grouped(bits) {
            let lowest = group.lowest_ns - (width_ns - 1);
            let lowest = buckets.last().map_or(lowest, |last| lowest.max(last.1));
            buckets.push((lowest, group.highest_ns + 1, group.count));
        }
        buckets
    }

    fn imported(&self, source: &Source, values_ns: SummaryStats, overflow: u64) -> Imported {
        let mut cannot_know = source.cannot_know.clone();
        cannot_know.extend(self.cannot_know.iter().cloned());
        if overflow > 0 && self.limit_ns.is_some() {
            cannot_know.push("how far beyond the histogram the overflow lies".to_owned());
        }
        if self.holds == ImportedQuantity::Lateness && self.missed != Some(0) {
            cannot_know.push("missed releases: figures of lateness are of wakes alone".to_owned());
        }
        if !self.order_known {
            cannot_know
                .push("the order of the values: bounds treat them as independent".to_owned());
        }
        Imported {
            format: source.format.to_owned(),
            program: source.program.to_owned(),
            version: source.version.clone(),
            command: source.command.clone(),
            holds: self.holds,
            values_ns,
            resolution_ns: self.width_ns.map(|ns| ns as f64),
            rounding_ns: self.rounding_ns as f64,
            limit_ns: self.limit_ns,
            overflow,
            cannot_know,
        }
    }
}

fn jitters(holds: ImportedQuantity, values_ns: &SummaryStats) -> Jitters {
    let mut jitters = Jitters::default();
    match holds {
        ImportedQuantity::Lateness => {
            jitters.lateness_min_ns = values_ns.min;
            jitters.lateness_mean_ns = values_ns.mean;
            jitters.lateness_max_ns = values_ns.max;
            jitters.lateness_variance_ns2 = values_ns.stddev.map(|ns| ns * ns);
        }
        ImportedQuantity::Interval => {
            jitters.interval_stddev_ns = values_ns.stddev;
            jitters.interval_max_abs_ns =
                values_ns.min.zip(values_ns.max).map(|(min, max)| min.abs().max(max.abs()));
        }
        ImportedQuantity::Response => {
            jitters.response_range_ns = values_ns.min.zip(values_ns.max).map(|(a, b)| b - a);
        }
        ImportedQuantity::InterruptLateness | ImportedQuantity::Stall => {}
    }
    jitters
}
