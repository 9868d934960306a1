//! One run as another program printed it: counts in buckets or values in order, and summary
//! numbers. Becomes [`RunFigures`] that claim no more than that.
//!
//! Constant memory, whatever the number of buckets. A value is kept at the upper end of its bucket,
//! so that no quantile and no exceedance is understated. Numbers that contradict each other are
//! refused.

mod claims;
mod finish;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use finish::ImportedRun;
pub(super) use finish::Source;
use punctual_analysis::claim::dependence::{Exceedances, ladder};
use punctual_analysis::histogram::Histogram;
use punctual_analysis::histogram::display::VIEW_BUCKETS_MAX;
use punctual_analysis::imported::ImportedQuantity;
use punctual_analysis::summary::Moments;

/// More values than any program counts: so many that sums of them stay within `u64`.
pub(super) const COUNT_MAX: u64 = 1 << 56;

/// How many intervals may be, and how many are, farther from zero than so many thresholds and no
/// more.
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

/// A run while it is being read.
#[derive(Debug)]
pub(super) struct RunBuilder {
    pub(super) name: String,
    pub(super) cpu: Option<u32>,
    pub(super) period_ns: Option<u64>,
    pub(super) priority: Option<u8>,
    pub(super) policy: Option<String>,
    pub(super) holds: ImportedQuantity,
    /// Width of all buckets, ns; `None` where it grows with the value.
    pub(super) width_ns: Option<i64>,
    /// Width of the widest one, or of the first where it grows with the value, ns.
    pub(super) widest_ns: i64,
    /// Where the histogram ends, ns; `None` without one.
    pub(super) limit_ns: Option<i64>,
    /// How many values there were, where the file says so.
    pub(super) n: Option<u64>,
    /// How many were beyond the histogram, where the file says so.
    pub(super) beyond: Option<u64>,
    pub(super) min_ns: Option<f64>,
    pub(super) mean_ns: Option<f64>,
    pub(super) max_ns: Option<f64>,
    pub(super) stddev_ns: Option<f64>,
    /// How far above the min, mean and max given the true ones may be, ns.
    pub(super) rounding_ns: i64,
    /// Quantiles given, as in [`punctual_analysis::quantile::Probability::SUMMARY`].
    pub(super) quantiles_ns: [Option<f64>; 5],
    pub(super) missed: Option<u64>,
    pub(super) unrecorded: u64,
    pub(super) cannot_know: Vec<String>,
    /// Values at the upper end of their bucket.
    upper: Histogram,
    binned: u64,
    /// Values below the histogram, in `binned` too.
    below: u64,
    /// Highest value of the lowest bucket, lowest value of the highest one.
    filled: Option<(i64, i64)>,
    /// Buckets by their lowest value, while they are few: (highest value, count).
    cells: Option<BTreeMap<i64, (i64, u64)>>,
    /// Thresholds; and how many values may and how many do exceed so many of them and no more.
    thresholds_ns: Vec<i64>,
    may_exceed: Vec<u64>,
    do_exceed: Vec<u64>,
    /// Of intervals, the same of their distance from zero.
    far: Option<Far>,
    /// Values in their order, where that is known.
    order: Option<(Exceedances, Moments)>,
    order_known: bool,
}

impl RunBuilder {
    /// A run of nothing yet, with values in buckets of `width_ns`, that watches the ladder of
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
            name: super::error::clean(&name.into(), 80),
            cpu: None,
            period_ns: None,
            priority: None,
            policy: None,
            holds,
            width_ns: Some(width_ns),
            widest_ns: width_ns,
            limit_ns: None,
            n: None,
            beyond: None,
            min_ns: None,
            mean_ns: None,
            max_ns: None,
            stddev_ns: None,
            rounding_ns: 0,
            quantiles_ns: [None; 5],
            missed: None,
            unrecorded: 0,
            cannot_know: Vec::new(),
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
            order_known: false,
        }
    }

    /// The same, for values that come in their order.
    pub(super) fn in_order(
        name: impl Into<String>,
        holds: ImportedQuantity,
        width_ns: i64,
        requested: &[i64],
    ) -> Self {
        let order = Some((Exceedances::new(0, requested), Moments::default()));
        Self {
            order,
            order_known: true,
            rounding_ns: width_ns - 1,
            ..Self::new(name, holds, width_ns, requested)
        }
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
            cells.entry(lowest_ns).or_insert((highest_ns, 0)).1 += count;
            if cells.len() > VIEW_BUCKETS_MAX {
                self.cells = None;
            }
        }
        Ok(())
    }

    /// Takes in `count` values below the histogram, none above `highest_ns`.
    pub(super) fn push_below(&mut self, highest_ns: i64, count: u64) -> Result<(), String> {
        let lowest_ns = self.min_ns.map_or(i64::MIN / 4, |ns| ns as i64).min(highest_ns);
        let cells = self.cells.take();
        self.push(lowest_ns, highest_ns, count)?;
        self.cells = cells;
        self.below += count;
        Ok(())
    }

    /// Takes in the next value, in order: what the program rounded down to `value_ns`.
    pub(super) fn push_value(&mut self, value_ns: i64) -> Result<(), String> {
        let highest_ns = value_ns.saturating_add(self.rounding_ns);
        self.push(value_ns, highest_ns, 1)?;
        if let Some((order, moments)) = &mut self.order {
            order.push(highest_ns, 0, 0);
            moments.push(value_ns);
        }
        let value = value_ns as f64;
        self.min_ns = Some(self.min_ns.map_or(value, |min| min.min(value)));
        self.max_ns = Some(self.max_ns.map_or(value, |max| max.max(value)));
        Ok(())
    }

    /// Drops the numbers given: they are those of no value.
    pub(super) fn forget_numbers(&mut self) {
        (self.min_ns, self.mean_ns, self.max_ns, self.stddev_ns) = (None, None, None, None);
    }

    /// What lies beyond the histogram is at least this, ns: where it ends, or at least its highest
    /// bucket.
    fn end_ns(&self) -> Option<i64> {
        self.limit_ns.or(self.filled.map(|(_, highest_ns)| highest_ns))
    }

    /// How many values are in buckets so far.
    pub(super) fn binned(&self) -> u64 {
        self.binned
    }
}
