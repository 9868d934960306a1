//! One run as another program printed it: counts in buckets or values in order, and summary
//! numbers. Becomes [`RunFigures`] that claim no more than that.
//!
//! Constant memory, whatever the number of buckets. A value is kept at the upper end of its bucket,
//! so that no quantile and no exceedance is understated. Numbers that contradict each other are
//! refused.

use std::collections::BTreeMap;

use punctual_analysis::claim::bound::{CONFIDENCE, p_upper, quantile_ranks};
use punctual_analysis::claim::dependence::{Exceedances, Tails, ThresholdCount, ladder};
use punctual_analysis::claim::{Claim, Level, rounded_up, watched};
use punctual_analysis::histogram::{
    Bucket, Histogram, HistogramView, VIEW_BUCKETS_MAX, ViewBucket,
};
use punctual_analysis::imported::{Imported, ImportedQuantity};
use punctual_analysis::jitters::Jitters;
use punctual_analysis::quantile::Probability;
use punctual_analysis::recording::{RequestedTails, RunFigures, Wakes};
use punctual_analysis::summary::{Moments, SummaryStats};
use punctual_core::time::Span;

use super::{Source, Stated};
use crate::text::clean;

/// More values than any program counts: so many that sums of them stay within `u64`.
const COUNT_MAX: u64 = 1 << 56;

/// Counts of intervals that may be, and that are, farther from zero than so many thresholds and no
/// more: the index is the number of thresholds.
#[derive(Debug)]
struct Far {
    may: Vec<u64>,
    does: Vec<u64>,
}

impl Far {
    fn new(thresholds: usize) -> Self {
        Self { may: vec![0; thresholds + 1], does: vec![0; thresholds + 1] }
    }
}

/// A bucket of a file.
#[derive(Debug)]
struct Cell {
    highest_ns: i64,
    count: u64,
}

/// A run while it is being read.
#[derive(Debug)]
pub(super) struct RunBuilder {
    /// Statements of the file beside the values.
    pub stated: Stated,
    holds: ImportedQuantity,
    /// Values at the upper end of their bucket.
    upper: Histogram,
    binned: u64,
    /// Values below the histogram, in `binned` too.
    below: u64,
    /// Highest value of the lowest bucket, lowest value of the highest one.
    filled: Option<(i64, i64)>,
    /// Buckets by their lowest value, ns, while they are few.
    cells: Option<BTreeMap<i64, Cell>>,
    /// Thresholds; and how many values may and how many do exceed so many of them and no more.
    thresholds_ns: Vec<i64>,
    may_exceed: Vec<u64>,
    do_exceed: Vec<u64>,
    /// Of intervals, those counts for their distance from zero.
    far: Option<Far>,
    /// Values in their order, where that is known.
    order: Option<(Exceedances, Moments)>,
}

impl RunBuilder {
    /// An empty run, with values in buckets of `width_ns`, that watches the ladder of
    /// thresholds and those requested for.
    pub(super) fn new(
        name: impl Into<String>,
        holds: ImportedQuantity,
        width_ns: i64,
        requested: &[i64],
    ) -> Self {
        let mut thresholds_ns: Vec<i64> = ladder().chain(requested.iter().copied()).collect();
        thresholds_ns.sort_unstable();
        thresholds_ns.dedup();
        Self {
            stated: Stated {
                name: clean(&name.into(), 80),
                width_ns: Some(width_ns),
                widest_ns: width_ns,
                ..Stated::default()
            },
            holds,
            upper: Histogram::new(),
            binned: 0,
            below: 0,
            filled: None,
            cells: Some(BTreeMap::new()),
            may_exceed: vec![0; thresholds_ns.len() + 1],
            do_exceed: vec![0; thresholds_ns.len() + 1],
            far: (holds == ImportedQuantity::Interval).then(|| Far::new(thresholds_ns.len())),
            thresholds_ns,
            order: None,
        }
    }

    /// An empty run, as [`Self::new`] makes it, of values that come in their order.
    pub(super) fn in_order(
        name: impl Into<String>,
        holds: ImportedQuantity,
        width_ns: i64,
        requested: &[i64],
    ) -> Self {
        let mut run = Self::new(name, holds, width_ns, requested);
        run.order = Some((Exceedances::new(0, requested), Moments::default()));
        run.stated.rounding_ns = width_ns - 1;
        run
    }

    /// Takes in `count` values in `lowest_ns ..= highest_ns`.
    pub(super) fn push(
        &mut self,
        lowest_ns: i64,
        highest_ns: i64,
        count: u64,
    ) -> Result<(), String> {
        if count == 0 {
            return Ok(());
        }
        self.binned = self
            .binned
            .checked_add(count)
            .filter(|&binned| binned <= COUNT_MAX)
            .ok_or("too many values")?;
        self.upper.push_many(highest_ns, count);
        let (low, high) = self.filled.unwrap_or((highest_ns, lowest_ns));
        self.filled = Some((low.min(highest_ns), high.max(lowest_ns)));
        let exceeded_by = |value: i64| self.thresholds_ns.partition_point(|&ns| ns < value);
        let (may, does) = (exceeded_by(highest_ns), exceeded_by(lowest_ns));
        self.may_exceed[may] += count;
        self.do_exceed[does] += count;
        if let Some(far) = &mut self.far {
            let (low, high) = (lowest_ns.saturating_abs(), highest_ns.saturating_abs());
            let around = lowest_ns < 0 && highest_ns > 0;
            let nearest_ns = if around { 0 } else { low.min(high) };
            far.may[exceeded_by(low.max(high))] += count;
            far.does[exceeded_by(nearest_ns)] += count;
        }
        if let Some(cells) = &mut self.cells {
            cells.entry(lowest_ns).or_insert(Cell { highest_ns, count: 0 }).count += count;
            if cells.len() > VIEW_BUCKETS_MAX {
                self.cells = None;
            }
        }
        Ok(())
    }

    /// Takes in `count` values below the histogram, none above `highest_ns`.
    pub(super) fn push_below(&mut self, highest_ns: i64, count: u64) -> Result<(), String> {
        let lowest_ns = self.stated.min_ns.map_or(i64::MIN / 4, |ns| ns as i64).min(highest_ns);
        let cells = self.cells.take();
        self.push(lowest_ns, highest_ns, count)?;
        self.cells = cells;
        self.below += count;
        Ok(())
    }

    /// Takes in the next value, in order: what the program rounded down to `value_ns`.
    pub(super) fn push_value(&mut self, value_ns: i64) -> Result<(), String> {
        let highest_ns = value_ns.saturating_add(self.stated.rounding_ns);
        self.push(value_ns, highest_ns, 1)?;
        if let Some((order, moments)) = &mut self.order {
            order.push(highest_ns, 0, 0);
            moments.push(value_ns);
        }
        let value = value_ns as f64;
        self.stated.min_ns = Some(self.stated.min_ns.map_or(value, |min| min.min(value)));
        self.stated.max_ns = Some(self.stated.max_ns.map_or(value, |max| max.max(value)));
        Ok(())
    }

    /// Drops the numbers given: they are those of no value.
    fn forget_numbers(&mut self) {
        (self.stated.min_ns, self.stated.mean_ns, self.stated.max_ns, self.stated.stddev_ns) =
            (None, None, None, None);
    }

    /// The least that a value beyond the histogram is, ns: where it ends, or at least its highest
    /// bucket.
    fn end_ns(&self) -> Option<i64> {
        self.stated.limit_ns.or(self.filled.map(|(_, highest_ns)| highest_ns))
    }

    /// The number of values in buckets so far.
    pub(super) fn binned(&self) -> u64 {
        self.binned
    }

    /// The figures of the run.
    ///
    /// # Errors
    /// Numbers that contradict each other.
    pub(super) fn finish(mut self, source: &Source) -> Result<ImportedRun, String> {
        let ordered = self.order.is_some();
        let (n, beyond) = self.counted()?;
        if n == 0 && self.stated.n.is_some() {
            self.forget_numbers();
        }
        self.is_consistent(beyond)?;
        let histogram = self.view(beyond);
        let most_ns = self.stated.max_ns.map_or(i64::MAX, |ns| ns as i64 + self.stated.rounding_ns);
        let mut upper = std::mem::take(&mut self.upper);
        upper.push_beyond(most_ns.max(upper.max().unwrap_or(i64::MIN)), beyond);
        if let Some((_, moments)) = &self.order {
            (self.stated.mean_ns, self.stated.stddev_ns) = (moments.mean(), moments.stddev());
        }
        let values_ns = self.stats(&upper, n, beyond);
        let tails = self.tails(n, beyond, most_ns);
        let imported = self.imported(source, values_ns.clone(), beyond, ordered);
        let evidence = Evidence {
            imported: &imported,
            tails: &tails,
            upper: &upper,
            n,
            width_ns: self.stated.width_ns,
            widest_ns: self.stated.widest_ns,
            end_ns: self.end_ns(),
            ordered,
        };
        let claims = claims(&evidence);
        let held_as =
            |holds| if self.holds == holds { values_ns.clone() } else { SummaryStats::default() };
        let is_lateness = self.holds == ImportedQuantity::Lateness;
        let outcome = RunFigures {
            cycles: n,
            cold: 0,
            cold_max_ns: None,
            missed: self.stated.missed,
            censored: 0,
            unrecorded: self.stated.unrecorded,
            lateness_ns: held_as(ImportedQuantity::Lateness),
            wakes: Wakes {
                left_out: self
                    .stated
                    .missed
                    .map(|missed| missed.saturating_add(self.stated.unrecorded)),
                stats: held_as(ImportedQuantity::Lateness),
            },
            interval_ns: held_as(ImportedQuantity::Interval),
            response_ns: (self.holds == ImportedQuantity::Response).then(|| values_ns.clone()),
            grid: None,
            jitters: jitters(self.holds, &values_ns),
            histogram,
            claims,
            watched: if is_lateness { watched(&tails) } else { Vec::new() },
            worst: Vec::new(),
            requested: RequestedTails::of(self.far_tails(n, beyond), None),
            imported: Some(imported),
            line: None,
            tails: if is_lateness { tails } else { Tails::default() },
            lateness: if is_lateness { upper } else { Histogram::new() },
            intervals: Histogram::new(),
        };
        let Stated { name, cpu, period_ns, policy, priority, .. } = self.stated;
        Ok(ImportedRun { name, cpu, period_ns, policy, priority, outcome })
    }

    /// The number of values, and of those of them beyond the histogram.
    fn counted(&self) -> Result<(u64, u64), String> {
        let (name, binned) = (&self.stated.name, self.binned);
        let beyond = self.stated.beyond.unwrap_or_default();
        let n = self.stated.n.unwrap_or_else(|| binned.saturating_add(beyond));
        if n > COUNT_MAX || self.stated.unrecorded > COUNT_MAX {
            return Err(format!("{name}: too many values"));
        }
        let rest = n.checked_sub(binned).ok_or_else(|| {
            format!("{name}: the histogram holds {binned} values, more than the {n} counted")
        })?;
        match self.stated.beyond {
            Some(beyond) if beyond != rest => Err(format!(
                "{name}: {n} values counted, but {binned} in the histogram and {beyond} beyond it"
            )),
            _ => Ok((n, rest)),
        }
    }

    fn is_consistent(&self, beyond: u64) -> Result<(), String> {
        let name = &self.stated.name;
        let numbers = [self.stated.min_ns, self.stated.mean_ns, self.stated.max_ns];
        if numbers.iter().flatten().zip(numbers.iter().flatten().skip(1)).any(|(a, b)| a > b) {
            return Err(format!("{name}: minimum, mean and maximum are not in this order"));
        }
        let rounding_ns = self.stated.rounding_ns as f64;
        if let Some((lowest_ns, highest_ns)) = self.filled {
            let beneath = self.stated.min_ns.is_some_and(|min| (lowest_ns as f64) < min);
            let above = self.stated.max_ns.is_some_and(|max| highest_ns as f64 > max + rounding_ns);
            if beneath || above {
                let which = if beneath { "below the minimum" } else { "above the maximum" };
                return Err(format!(
                    "{name}: the histogram holds values {which} that the file \
                                   states"
                ));
            }
        }
        match (self.stated.limit_ns, self.stated.max_ns) {
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
            self.stated.quantiles_ns[at].filter(|_| p.is_supported(n)).or_else(found)
        });
        let (min, mean, max, stddev) =
            (self.stated.min_ns, self.stated.mean_ns, self.stated.max_ns, self.stated.stddev_ns);
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
            return Tails::of_counts(n, self.stated.unrecorded, &counts);
        };
        order.finish_with(0, self.stated.unrecorded).with_unsure(&counts)
    }

    /// Of intervals, for each threshold how many may be farther from zero, on either side; `None`
    /// of other values, and where the file does not record how many there were.
    fn far_tails(&self, n: u64, beyond: u64) -> Option<Tails> {
        let far = self.far.as_ref().filter(|_| n > 0)?;
        let most_ns = self.stated.max_ns.map_or(i64::MAX, |ns| ns as i64 + self.stated.rounding_ns);
        let (mut may, mut does) = (0, 0);
        let mut counts = Vec::with_capacity(self.thresholds_ns.len());
        for (at, &ns) in self.thresholds_ns.iter().enumerate().rev() {
            may += far.may[at + 1];
            does += far.does[at + 1];
            let above = if ns < most_ns { beyond } else { 0 };
            let surely =
                if self.stated.limit_ns.is_some_and(|limit| ns < limit) { above } else { 0 };
            let most = may + above;
            counts.push(ThresholdCount { threshold_ns: ns, most, unsure: most - does - surely });
        }
        counts.reverse();
        Some(Tails::of_counts(n, self.stated.unrecorded, &counts))
    }

    /// The buckets as they were while they are few; else joined on the scale of the histogram.
    fn view(&self, beyond: u64) -> HistogramView {
        let overflow = beyond + self.below + self.upper.overflow();
        let buckets = match &self.cells {
            Some(cells) => {
                let bucket = |(&lowest_ns, cell): (&i64, &Cell)| {
                    Bucket { lowest_ns, highest_ns: cell.highest_ns, count: cell.count }.into()
                };
                cells.iter().map(bucket).collect()
            }
            None => self.joined(),
        };
        HistogramView { unit_ns: 1, buckets, overflow, ..HistogramView::default() }
    }

    fn joined(&self) -> Vec<ViewBucket> {
        let fits = |bits: &u32| self.upper.grouped(*bits).count() <= VIEW_BUCKETS_MAX;
        let bits = (0..10).find(fits).unwrap_or(10);
        let width_ns = self.stated.width_ns.unwrap_or(1);
        let mut buckets: Vec<ViewBucket> = Vec::new();
        for group in self.upper.grouped(bits) {
            let lowest_ns = group.lowest_ns - (width_ns - 1);
            let lowest_ns = buckets.last().map_or(lowest_ns, |last| lowest_ns.max(last.upper_ns));
            buckets.push(Bucket { lowest_ns, ..group }.into());
        }
        buckets
    }

    fn imported(
        &self,
        source: &Source,
        values_ns: SummaryStats,
        overflow: u64,
        ordered: bool,
    ) -> Imported {
        let mut cannot_know = source.cannot_know.clone();
        cannot_know.extend(self.stated.cannot_know.iter().cloned());
        if overflow > 0 && self.stated.limit_ns.is_some() {
            cannot_know.push("how far beyond the histogram the overflow lies".to_owned());
        }
        if self.holds == ImportedQuantity::Lateness && self.stated.missed != Some(0) {
            cannot_know.push("missed releases: figures of lateness are of wakes alone".to_owned());
        }
        if !ordered {
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
            resolution_ns: self.stated.width_ns.map(|ns| ns as f64),
            rounding_ns: self.stated.rounding_ns as f64,
            limit_ns: self.stated.limit_ns,
            overflow,
            cannot_know,
        }
    }
}

/// Exceedances up to this share of the values make a tail worth a claim.
const TAIL_SHARE: f64 = 0.1;

/// The counts that claims are made from.
///
/// A claim beyond the end of the file's histogram is refused.
struct Evidence<'a> {
    imported: &'a Imported,
    tails: &'a Tails,
    /// Values at the upper end of their bucket.
    upper: &'a Histogram,
    n: u64,
    width_ns: Option<i64>,
    widest_ns: i64,
    /// The least that a value beyond the histogram is, ns.
    end_ns: Option<i64>,
    ordered: bool,
}

impl Evidence<'_> {
    fn conditions(&self) -> String {
        let theta = if self.ordered {
            "dependence from the order of the values"
        } else {
            "values treated as independent, because the file does not record their order"
        };
        let lost = match self.tails.unrecorded() {
            0 => String::new(),
            lost => format!("; {lost} more went unrecorded and may have any value"),
        };
        format!("as printed by {}; {theta}{lost}", self.imported.program)
    }

    /// Values, with those that went unrecorded.
    fn all(&self) -> u64 {
        self.n.saturating_add(self.tails.unrecorded())
    }

    fn claim(&self, level: Level, statement: String) -> Claim {
        Claim {
            level,
            statement,
            p: None,
            bound_ns: None,
            confidence: (level != Level::L0).then_some(CONFIDENCE),
            n: self.n,
            given: true,
            conditions: self.conditions(),
            alone: false,
            theta: None,
        }
    }

    fn largest(&self, max_ns: f64) -> Claim {
        let many = self.imported.holds.many();
        let conditions =
            format!("as printed by {}; an observation, not a bound", self.imported.program);
        if self.n == 0 {
            let statement = format!(
                "the largest was {}; the number of {many} is \
                                    unknown",
                shown(max_ns)
            );
            return Claim { given: false, conditions, ..self.claim(Level::L0, statement) };
        }
        let statement = format!("the largest of {} {many} was {}", self.n, shown(max_ns));
        Claim { bound_ns: Some(max_ns), conditions, ..self.claim(Level::L0, statement) }
    }

    /// No value was above the maximum, rounding included.
    fn none_above(&self, max_ns: f64) -> Claim {
        let bound_ns = max_ns + self.imported.rounding_ns;
        let unrecorded = self.tails.unrecorded();
        let theta = self.theta(bound_ns);
        let p = p_upper(unrecorded, self.all(), theta);
        let count = match unrecorded {
            0 => "none".to_owned(),
            lost => format!("at most {lost}"),
        };
        let claim = self.probability(bound_ns, (p, true), &count);
        Claim { theta: self.ordered.then_some(theta), ..claim }
    }

    /// Of values whose order is not known only those that went unrecorded are a cluster.
    fn theta(&self, ns: f64) -> f64 {
        if self.ordered || self.tails.unrecorded() > 0 {
            self.tails.theta_at(ns as i64)
        } else {
            1.0
        }
    }

    /// A claim of a bound that may hold only if such values come alone.
    fn probability(&self, bound_ns: f64, (p, alone): (f64, bool), count: &str) -> Claim {
        let holds = self.imported.holds;
        let statement = format!(
            "{} {} in at most {} of all {}{} ({count} of {} were)",
            holds.above(),
            shown(bound_ns),
            rounded_up(p),
            holds.many(),
            if alone { ", if they come alone" } else { "" },
            self.all()
        );
        let claim = self.claim(Level::L1, statement);
        Claim { p: Some(p), bound_ns: Some(bound_ns), alone, ..claim }
    }

    /// The thresholds that lie in the tail. From the end of the histogram to the maximum there is
    /// one, exceeded at most by what is beyond the end; how far that lies is refused.
    fn thresholds(&self, max_ns: f64) -> Vec<Claim> {
        let most_ns = max_ns + self.imported.rounding_ns;
        let mut claims = Vec::new();
        for tail in self.tails.tails().iter().filter(|tail| tail.requested) {
            let ns = tail.threshold_ns as f64;
            let exceedances = self.tails.exceedances(tail.threshold_ns).unwrap_or(self.n);
            if ns >= most_ns {
                break;
            }
            if exceedances as f64 > TAIL_SHARE * self.n as f64 {
                continue;
            }
            let shown = self.tails.counted(tail.threshold_ns).theta_shown();
            let theta = shown.unwrap_or_else(|| self.theta(ns));
            let p = p_upper(exceedances, self.all(), theta);
            let count = format!("at most {exceedances}");
            let claim = self.probability(ns, (p, shown.is_none()), &count);
            claims.push(Claim { theta: self.ordered.then_some(theta), ..claim });
            let end_ns = self.end_ns.filter(|_| self.imported.overflow > 0);
            if self.imported.overflow > 0 && end_ns.is_none_or(|end_ns| tail.threshold_ns >= end_ns)
            {
                claims.push(self.beyond());
                break;
            }
        }
        claims
    }

    /// The values beyond the histogram are of unknown size.
    fn beyond(&self) -> Claim {
        let end = match self.imported.limit_ns {
            Some(limit_ns) => format!("{}, the end of the histogram", shown(limit_ns as f64)),
            None => "the histogram".to_owned(),
        };
        let statement = format!(
            "{} of {} values are beyond {end}; how far each is, the file does not record",
            self.imported.overflow, self.n
        );
        let bound_ns = self.imported.limit_ns.map(|ns| ns as f64);
        Claim { given: false, bound_ns, ..self.claim(Level::L1, statement) }
    }

    /// The interval of one quantile: from the lower end of the lower bucket to the upper end of the
    /// upper one.
    fn quantile(&self, at: usize, p: Probability) -> Option<Claim> {
        if !p.is_supported(self.n) {
            return None;
        }
        let placed = self.n - self.imported.overflow.min(self.n);
        // Beyond the histogram values come together as at its end, as far as is known.
        let value_ns = self.upper.quantile_below(p, self.tails.unrecorded()).unwrap_or(i64::MAX);
        let (lower, upper) = quantile_ranks(p, self.all(), self.theta(value_ns as f64));
        // Those that went unrecorded are the smallest at the lower end, the largest at the upper.
        let lower = lower.and_then(|rank| rank.checked_sub(self.tails.unrecorded()));
        let percent = p.to_string();
        let percent = percent.trim_start_matches('p');
        let printed = self.imported.values_ns.quantiles()[at];
        let lower = lower.filter(|&rank| rank <= placed);
        let Some(lower) = lower.and_then(|rank| self.lower_end(rank)) else {
            // Only a number that the program printed itself; it has no interval.
            let lost = self.tails.unrecorded();
            let statement = match printed {
                Some(ns) if lost > 0 => format!(
                    "the {percent} % quantile of these {} was {}; {lost} more went unrecorded, \
                     too many for an interval",
                    self.n,
                    shown(ns)
                ),
                Some(ns) => format!(
                    "the {percent} % quantile of these {} was {}; there is no interval, because \
                    the histogram of the file does not reach it",
                    self.n,
                    shown(ns)
                ),
                None => format!("the {percent} % quantile is beyond the histogram of the file"),
            };
            let claim = self.claim(Level::L2, statement);
            return Some(Claim { given: false, p: Some(p.share()), ..claim });
        };
        let upper = upper.filter(|&rank| rank <= placed);
        let upper = upper.and_then(|rank| self.upper.order_statistic(rank));
        let statement = match upper {
            Some(upper) => format!(
                "the {percent} % quantile lies from {} to {}",
                shown(lower),
                shown(upper as f64)
            ),
            None => format!(
                "the {percent} % quantile is at least {}; the data have no upper end",
                shown(lower)
            ),
        };
        let claim = self.claim(Level::L2, statement);
        Some(Claim { p: Some(p.share()), bound_ns: upper.map(|ns| ns as f64), ..claim })
    }

    fn lower_end(&self, rank: u64) -> Option<f64> {
        let floor = self.upper.order_statistic_floor(rank)? as f64;
        Some(match self.width_ns {
            Some(width_ns) => floor - (width_ns.max(self.widest_ns) - 1) as f64,
            // Buckets that grow with the value are at most a tenth of it wide.
            None => floor - (floor.abs() / 10.0).max(self.widest_ns as f64),
        })
    }
}

/// All claims, in rising level.
fn claims(evidence: &Evidence<'_>) -> Vec<Claim> {
    let Some(max_ns) = evidence.imported.values_ns.max else { return Vec::new() };
    let mut claims = vec![evidence.largest(max_ns)];
    if evidence.n > 0 {
        claims.push(evidence.none_above(max_ns));
        claims.extend(evidence.thresholds(max_ns));
        let summary = Probability::SUMMARY.into_iter().enumerate();
        claims.extend(summary.filter_map(|(at, p)| evidence.quantile(at, p)));
    }
    claims
}

fn shown(ns: f64) -> Span {
    Span::from_ns(ns.round() as i64)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_analysis::claim::{Claim, Level};
    use punctual_analysis::imported::ImportedQuantity;

    fn source() -> Source {
        Source { format: "test -h", program: "test", ..Source::default() }
    }

    /// Ten buckets of 1 µs with a hundred values each, and `beyond` more above them.
    fn builder(beyond: u64) -> RunBuilder {
        let mut run = RunBuilder::new("run", ImportedQuantity::Lateness, 1_000, &[]);
        for bucket in 0..10 {
            run.push(bucket * 1_000, bucket * 1_000 + 999, 100).expect("counted");
        }
        (run.stated.min_ns, run.stated.mean_ns) = (Some(0.0), Some(5_000.0));
        run.stated.max_ns = Some(if beyond > 0 { 70_000.0 } else { 9_000.0 });
        (run.stated.rounding_ns, run.stated.limit_ns, run.stated.n) =
            (999, Some(10_000), Some(1_000 + beyond));
        run
    }

    #[test]
    fn values_that_went_unrecorded_weaken_what_is_claimed() {
        let outcome = |unrecorded| {
            let mut builder = RunBuilder::new("x", ImportedQuantity::Lateness, 1, &[]);
            (builder.stated.n, builder.stated.min_ns, builder.stated.max_ns) =
                (Some(10_000), Some(3_000.0), Some(9_000.0));
            (builder.stated.mean_ns, builder.stated.unrecorded) = (Some(5_000.0), unrecorded);
            builder.push(3_000, 3_000, 9_900).unwrap();
            builder.push(9_000, 9_000, 100).unwrap();
            builder.finish(&source()).unwrap().outcome
        };
        let (whole, lossy) = (outcome(0), outcome(500));
        assert_eq!(whole.claims.len(), lossy.claims.len());
        let level = |claims: &[Claim], level| -> Vec<Claim> {
            claims.iter().filter(|claim| claim.level == level).cloned().collect()
        };
        let pairs = level(&whole.claims, Level::L1);
        for (whole, lossy) in pairs.iter().zip(level(&lossy.claims, Level::L1)) {
            assert!(lossy.p > whole.p && lossy.p > Some(500.0 / 10_500.0), "{lossy:?}");
            assert!(lossy.conditions.contains("500 more went unrecorded"), "{}", lossy.conditions);
        }
        let p99 = |claims: &[Claim]| level(claims, Level::L2)[2].bound_ns;
        assert_eq!((p99(&whole.claims), p99(&lossy.claims)), (Some(9_000.0), None));
        let ask = punctual_analysis::claim::ask::Ask::parse("p(lateness>5us)<0.5").unwrap();
        let counted = lossy.counted(&ask).unwrap();
        assert_eq!((counted.least, counted.most, counted.n), (100, 600, 10_500));
    }

    #[test]
    fn the_interval_of_a_quantile_is_adjusted_for_how_values_come_there() {
        // In stretches of 100, eight of a hundred of them late; the few that do not exceed 1 µs
        // come alone.
        let mut run = RunBuilder::in_order("run", ImportedQuantity::Lateness, 1_000, &[]);
        for at in 0..20_000_i64 {
            let is_late = (at / 100) * 7_919 % 101 % 100 < 8;
            let value_ns = match (at % 50, is_late) {
                (25, _) => 0,
                (_, true) => 50_000,
                (_, false) => 5_000,
            };
            run.push_value(value_ns).expect("counted");
        }
        (run.stated.n, run.stated.rounding_ns) = (Some(20_000), 999);
        (run.stated.min_ns, run.stated.mean_ns) = (Some(0.0), Some(8_600.0));
        run.stated.max_ns = Some(50_000.0);
        let outcome = run.finish(&source()).expect("sound").outcome;
        let p90 = outcome.claims.iter().find(|c| c.level == Level::L2 && c.p == Some(0.9));
        let p90 = p90.expect("of so many");
        // As if they came alone, it was the 18 083rd of them.
        assert!(p90.bound_ns.is_none_or(|ns| ns >= 50_000.0), "{p90:?}");
    }

    #[test]
    fn quantiles_are_at_the_upper_end_of_their_bucket() {
        let outcome = builder(0).finish(&source()).expect("sound").outcome;
        assert_eq!(outcome.cycles, 1_000);
        assert_eq!(outcome.lateness_ns.p90.map(|ns| ns >= 8_999.0), Some(true));
        assert_eq!((outcome.lateness_ns.max, outcome.missed), (Some(9_000.0), None));
        let view: Vec<_> = outcome.histogram.buckets;
        assert_eq!((view[0], view.len()), (ViewBucket::from((0, 1_000, 100)), 10));
        assert_eq!(outcome.tails.exceedances(5_000), Some(500), "5.0 to 5.999 may exceed 5");
    }

    #[test]
    fn beyond_the_histogram_nothing_is_claimed() {
        let outcome = builder(50).finish(&source()).expect("sound").outcome;
        let imported = outcome.imported.expect("imported");
        assert_eq!((imported.overflow, outcome.lateness_ns.p99), (50, None));
        assert!(outcome.lateness_ns.p90.is_some());
        let refused: Vec<_> = outcome.claims.iter().filter(|claim| !claim.given).collect();
        let is_in_the_gap = |ns: f64| (10_000.0..70_999.0).contains(&ns);
        assert!(refused.iter().all(|claim| claim.bound_ns.is_none_or(is_in_the_gap)));
        assert!(refused.iter().any(|claim| claim.level == Level::L1));
        assert!(refused.iter().any(|claim| claim.level == Level::L2 && claim.p == Some(0.99)));
        // Above the maximum the file knows: nothing was there.
        assert_eq!(outcome.tails.exceedances(100_000), Some(0));
        assert_eq!(outcome.tails.exceedances(50_000), Some(50));
    }

    #[test]
    fn numbers_that_contradict_each_other_are_refused() {
        type Change = fn(&mut RunBuilder);
        let cases: [(Change, &str); 6] = [
            (|run| run.stated.n = Some(999), "more than the 999 counted"),
            (|run| run.stated.beyond = Some(7), "7 beyond it"),
            (|run| run.stated.max_ns = Some(7_000.0), "above the maximum"),
            (|run| run.stated.min_ns = Some(1_000.0), "below the minimum"),
            (|run| run.stated.mean_ns = Some(90_000.0), "not in this order"),
            (|run| run.stated.n = Some(1_001), "the maximum is within it"),
        ];
        for (change, word) in cases {
            let mut run = builder(0);
            change(&mut run);
            let why = run.finish(&source()).expect_err(word);
            assert!(why.contains(word), "{why}");
        }
        let mut run = RunBuilder::new("run", ImportedQuantity::Lateness, 1, &[]);
        assert!(run.push(0, 0, u64::MAX).is_err());
    }

    #[test]
    fn values_in_order_keep_their_dependence() {
        let mut run = RunBuilder::in_order("run", ImportedQuantity::Lateness, 1_000, &[]);
        for k in 0..20_000 {
            let late = (5_000..5_040).contains(&k);
            run.push_value(if late { 90_000 } else { 5_000 }).expect("counted");
        }
        let outcome = run.finish(&source()).expect("sound").outcome;
        assert!(outcome.tails.theta_at(50_000) < 0.1, "one burst is one event");
        assert_eq!(outcome.tails.exceedances(50_000), Some(40));
        assert_eq!(outcome.lateness_ns.max, Some(90_000.0));
        assert!(outcome.lateness_ns.stddev.is_some());
    }

    proptest! {
        #[test]
        fn no_count_is_lost_and_no_exceedance_understated(
            counts in prop::collection::vec(0u64..50, 1..2_000), width in 1i64..5_000,
            requested in 0i64..1_000_000,
        ) {
            let mut run = RunBuilder::new("run", ImportedQuantity::Lateness, width, &[requested]);
            let mut least = 0;
            for (bucket, &count) in counts.iter().enumerate() {
                let lowest = bucket as i64 * width;
                run.push(lowest, lowest + width - 1, count).expect("counted");
                least += if lowest > requested { count } else { 0 };
            }
            let outcome = run.finish(&source()).expect("sound").outcome;
            let n: u64 = counts.iter().sum();
            prop_assert_eq!(outcome.cycles, n);
            prop_assert_eq!(outcome.lateness.count(), n);
            let view = &outcome.histogram.buckets;
            prop_assert_eq!(view.iter().map(|bucket| bucket.count).sum::<u64>(), n);
            prop_assert!(view.windows(2).all(|pair| pair[0].upper_ns <= pair[1].lower_ns));
            let exceedances = outcome.tails.exceedances(requested).unwrap();
            prop_assert!(exceedances >= least && exceedances <= n);
            prop_assert_eq!(outcome.tails.exceedances_within(requested), (least, exceedances));
        }
    }
}
