//! How often two runs exceed the same threshold: the ratio of their rates, exactly.
//!
//! Given k exceedances in all, those of B are binomial (k, ρN_B/(ρN_B + N_A)) when the rates have
//! the ratio ρ (Przyborowski and Wilenski, Biometrika 31, 1940); Clopper and Pearson's interval of
//! that share gives an exact one of ρ. Both counts are divided by the dispersion first, and where
//! that is an estimate the level is Student's instead of the normal one.

use super::dispersion::{Dispersion, Part, dispersion};
use super::distributions::{
    beta_quantile, normal_quantile_above, student_level, student_p, student_quantile_above,
};
use super::series::{Cells, above, bounds_ns, cell_of, count, merged};
use crate::special::beta;

/// Exceedances that a threshold has in both runs together, at least.
const POOLED_MIN: f64 = 10.0;

/// Two counts at one threshold, ready to be tested.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    /// The cell that is the last one not exceeding it.
    cell: u16,
    /// Exceedances of A and of B.
    pub(super) exceedances: [u64; 2],
    /// Releases of A and of B.
    pub(super) releases: [u64; 2],
    /// How the counts scatter.
    pub(super) dispersion: Dispersion,
}

impl Counts {
    /// Counts both sides above a cell.
    pub(super) fn of(sides: [&[Part<'_>]; 2], cell: u16) -> Self {
        let sum = |side: &[Part<'_>], what: &dyn Fn(&Cells) -> u64| {
            let chunks = side.iter().flat_map(|part| &part.series.chunks);
            chunks.map(what).fold(0, u64::saturating_add)
        };
        Self {
            cell,
            exceedances: sides.map(|side| sum(side, &|cells| above(cells, cell))),
            releases: sides.map(|side| sum(side, &|cells| count(cells))),
            dispersion: dispersion(sides, cell),
        }
    }

    /// The largest lateness that is no exceedance, ns.
    pub(super) fn threshold_ns(&self) -> i64 {
        bounds_ns(self.cell).1 - 1
    }

    /// Rate of B over rate of A; `None` without an exceedance of A.
    pub(super) fn ratio(&self) -> Option<f64> {
        let [a, b] = self.exceedances.map(|k| k as f64);
        let [n_a, n_b] = self.releases.map(|n| n as f64);
        (a > 0.0 && n_b > 0.0).then(|| b / n_b / (a / n_a))
    }

    /// These counts as if cycles were independent.
    pub(super) fn independent(&self) -> Self {
        Self { dispersion: super::dispersion::NONE, ..*self }
    }

    /// The counts that independent cycles would need for the same scatter.
    fn effective(&self) -> [f64; 2] {
        self.exceedances.map(|k| k as f64 / self.dispersion.factor)
    }

    /// The two-sided p value of equal rates.
    pub(super) fn p_value(&self) -> f64 {
        let [a, b] = self.effective();
        let [n_a, n_b] = self.releases.map(|n| n as f64);
        if a + b <= 0.0 || n_a <= 0.0 || n_b <= 0.0 {
            return 1.0;
        }
        let share = n_b / (n_a + n_b);
        // P(as many in B or more) and P(as few or fewer).
        let more = if b > 0.0 { beta(share, b, a + 1.0) } else { 1.0 };
        let fewer = if a > 0.0 { beta(1.0 - share, a, b + 1.0) } else { 1.0 };
        student_p((2.0 * more.min(fewer)).min(1.0), self.dispersion.df)
    }

    /// The interval of the ratio that holds with confidence 1 − `alpha`.
    pub(super) fn interval(&self, alpha: f64) -> Interval {
        let [a, b] = self.effective();
        let [n_a, n_b] = self.releases.map(|n| n as f64);
        let each = student_level(alpha / 2.0, self.dispersion.df);
        let to_ratio = |share: f64| share / (1.0 - share) * n_a / n_b;
        let lower = beta_quantile(each, b, a + 1.0);
        // 1 − share, so that nothing is lost near 1.
        let rest = beta_quantile(each, a, b + 1.0);
        Interval {
            lower: to_ratio(lower),
            upper: (rest > 0.0).then(|| (1.0 - rest) / rest * n_a / n_b),
        }
    }
}

/// A ratio's interval; no upper end where A has no exceedance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) lower: f64,
    pub(super) upper: Option<f64>,
}

/// The last cell that does not exceed each threshold: those requested (moved up to the end of their
/// bucket, at most 1/128), and those that shares of 0.1, 0.01, … of both runs together exceed, down
/// to ten exceedances. Which side the exceedances are from is not used.
pub(super) fn thresholds(sides: [&[Part<'_>]; 2], requested_ns: &[i64]) -> Vec<u16> {
    let pooled = pooled(sides);
    let total = count(&pooled) as f64;
    let mut cells: Vec<u16> = requested_ns.iter().map(|&ns| cell_of(ns)).collect();
    let mut share = 0.1;
    while share * total >= POOLED_MIN {
        cells.extend(cell_near(&pooled, share * total));
        share /= 10.0;
    }
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// Both sides as one histogram.
pub(super) fn pooled(sides: [&[Part<'_>]; 2]) -> Cells {
    let chunks = sides.iter().flat_map(|side| side.iter()).flat_map(|part| &part.series.chunks);
    chunks.fold(Vec::new(), |all, cells| merged(&all, cells))
}

/// The cell above which nearest to `events` lie (by ratio), of those above which ten or more do.
fn cell_near(pooled: &Cells, events: f64) -> Option<u16> {
    let mut above = 0.0;
    let mut best: Option<(f64, u16)> = None;
    for &(cell, count) in pooled.iter().rev() {
        if above >= POOLED_MIN {
            let far = f64::abs((above / events).ln());
            if best.is_none_or(|(least, _)| far < least) {
                best = Some((far, cell));
            }
        }
        above += count as f64;
    }
    best.map(|(_, cell)| cell)
}

/// The ratio to detect.
const RATIO: f64 = 2.0;

/// The probability of detecting it when it is there.
const POWER: f64 = 0.8;

/// Releases that each side needs in all, so that a test at level `alpha` detects [`RATIO`] with
/// probability [`POWER`]: the exceedances of a threshold go on as often, and as clustered, as they
/// were. `None` where neither side has one.
///
/// Two Poisson counts, compared by the logarithm of their ratio (Gu, Ng, Tang and Schucany, Testing
/// the ratio of two Poisson rates, Biometrical Journal 50, 2008).
pub(super) fn releases_needed(counts: &Counts, alpha: f64) -> Option<u64> {
    needed(counts, alpha, RATIO)
}

/// Releases needed to detect `ratio`, above 1, at level `alpha`.
fn needed(counts: &Counts, alpha: f64, ratio: f64) -> Option<u64> {
    let [a, b] = counts.exceedances.map(|k| k as f64);
    let [n_a, n_b] = counts.releases.map(|n| n as f64);
    if a + b <= 0.0 || alpha <= 0.0 {
        return None;
    }
    // Thresholds are at ranks of both runs together: of that rate, A has 2/(1 + ratio).
    let rate = (a + b) / (n_a + n_b) / counts.dispersion.factor * 2.0 / (1.0 + ratio);
    // Longer runs show more clusters, so the normal level is the one to come.
    let level = normal_quantile_above(alpha / 2.0);
    let quantiles = level + normal_quantile_above(1.0 - POWER);
    let per_side = quantiles * quantiles * (1.0 + 1.0 / ratio) / ratio.ln().powi(2) / rate;
    // Clopper and Pearson's interval is wider by about one event at each end.
    let margin = (1.0 + 1.0 / ratio) / rate;
    Some((per_side + margin).ceil() as u64)
}

/// Whether `releases` of each side would have detected the ratio, given how well the dispersion is
/// known.
pub(super) fn would_have_detected(counts: &Counts, alpha: f64) -> bool {
    detects(counts, alpha, RATIO)
}

/// The smallest ratio that `releases` of each side would have detected, within 5 %; `None` where
/// none up to 1000 would.
pub(super) fn detectable(counts: &Counts, alpha: f64) -> Option<f64> {
    let ratios = std::iter::successors(Some(1.05), |ratio| Some(ratio * 1.05));
    ratios.take_while(|ratio| *ratio <= 1_000.0).find(|ratio| detects(counts, alpha, *ratio))
}

fn detects(counts: &Counts, alpha: f64, ratio: f64) -> bool {
    let Some(needed) = needed(counts, alpha, ratio) else { return false };
    let normal = normal_quantile_above(alpha / 2.0);
    let level = student_quantile_above(alpha / 2.0, counts.dispersion.df);
    let have = counts.releases[0].min(counts.releases[1]) as f64;
    have >= needed as f64 * (level / normal).powi(2)
}

/// One test of a family.
///
/// Holm's procedure (Scandinavian Journal of Statistics 6, 1979): valid whatever the dependence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tested {
    /// The p value times the factor of the procedure, at most 1; significant where at most alpha.
    pub(super) adjusted: f64,
    /// The level at which this test is done; an interval of this level agrees with the test.
    pub(super) level: f64,
}

/// The tests of a family that shall hold at `alpha` together.
pub(super) fn holm(p_values: &[f64], alpha: f64) -> Vec<Tested> {
    let m = p_values.len();
    let mut order: Vec<usize> = (0..m).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut tested = vec![Tested { adjusted: 1.0, level: alpha }; m];
    let (mut adjusted, mut stopped) = (0.0f64, None);
    for (at, &test) in order.iter().enumerate() {
        let left = (m - at) as f64;
        adjusted = adjusted.max((p_values[test] * left).min(1.0));
        let level = stopped.unwrap_or(alpha / left);
        if adjusted > alpha {
            stopped.get_or_insert(level);
        }
        tested[test] = Tested { adjusted, level };
    }
    tested
}

#[cfg(test)]
mod tests {
    use super::super::dispersion::NONE;
    use super::*;

    fn counts(exceedances: [u64; 2], releases: [u64; 2]) -> Counts {
        Counts { cell: 0, exceedances, releases, dispersion: NONE }
    }

    /// Golden numbers of scipy: `analysis/oracles/rate_ratio.py`.
    #[test]
    fn intervals_and_p_values_are_scipys() {
        let golden = include_str!("../../oracles/rate_ratio.golden");
        let mut lines = 0;
        for line in golden.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<f64> =
                line.split_whitespace().map(|field| field.parse().expect("a number")).collect();
            let [a, b, n_a, n_b, alpha, lower, upper, p] = fields[..] else { panic!("{line}") };
            let counts = counts([a as u64, b as u64], [n_a as u64, n_b as u64]);
            let interval = counts.interval(alpha);
            let near = |x: f64, y: f64| (x - y).abs() <= 1e-8 * y.abs() || x == y;
            assert!(near(interval.lower, lower), "{line}: {interval:?}");
            assert!(near(interval.upper.unwrap_or(f64::INFINITY), upper), "{line}: {interval:?}");
            assert!(near(counts.p_value(), p), "{line}: {}", counts.p_value());
            lines += 1;
        }
        assert!(lines >= 20, "{lines}");
    }

    #[test]
    fn a_p_value_and_an_interval_agree() {
        for df in [f64::INFINITY, 12.0, 2.0] {
            for factor in [1.0, 3.5] {
                for b in 0..80 {
                    let dispersion = Dispersion { factor, df, batch: 1 };
                    let counts = Counts { dispersion, ..counts([20, b], [10_000, 12_000]) };
                    let interval = counts.interval(0.01);
                    let outside = interval.lower > 1.0 || interval.upper.is_some_and(|u| u < 1.0);
                    assert_eq!(outside, counts.p_value() <= 0.01, "{b} {df} {factor}");
                }
            }
        }
    }

    #[test]
    fn nothing_against_nothing_says_nothing() {
        let none = counts([0, 0], [100, 100]);
        assert_eq!((none.p_value(), none.ratio()), (1.0, None));
        assert_eq!(none.interval(0.05), Interval { lower: 0.0, upper: None });
    }

    #[test]
    fn each_step_has_its_level_until_one_fails() {
        let tested = holm(&[0.04, 0.001, 0.02], 0.05);
        let adjusted: Vec<f64> = tested.iter().map(|test| test.adjusted).collect();
        assert_eq!(adjusted, [0.04, 0.003, 0.04]);
        let tested = holm(&[0.03, 0.001, 0.04], 0.05);
        // 0.03 · 2 fails, and so does all that follows, at the same level.
        assert_eq!(tested[0], Tested { adjusted: 0.06, level: 0.025 });
        assert_eq!(tested[2], Tested { adjusted: 0.06, level: 0.025 });
        assert!(holm(&[], 0.05).is_empty());
    }
}
