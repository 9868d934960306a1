//! The grid that the wakes themselves follow: least squares over (k, wake), in one pass.
//!
//! A wake is `epoch + k·nominal + deviation`; fitting a line to the deviation over k gives period,
//! drift and phase (NIST, "Timing jitter of real-time Linux", section 2). Sums are exact integers,
//! the peak-to-peak about the *final* line is exact by convex hulls, and a robust line is fitted
//! too. Constant memory. Never counts k itself: see [`count`].

pub mod count;
mod hull;
mod robust;
mod sums;

use punctual_core::time::Period;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use hull::Hull;
use robust::Blocks;
use sums::Sums;

/// Binary digits after the point of a [`Line`].
const FRACTION_BITS: u32 = 40;
const ONE: f64 = (1u64 << FRACTION_BITS) as f64;

/// The grid that fits the wakes best. Times in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grid {
    /// Fitted period.
    pub period_ns: f64,
    /// (fitted / nominal − 1)·10⁹.
    pub drift_ppb: f64,
    /// Fitted wake of the first recorded cycle minus its nominal release.
    pub phase_ns: f64,
    /// Largest minus smallest deviation from the fitted grid (NIST's measure).
    pub jitter_pp_ns: f64,
    /// False when the deviations bent so smoothly that hulls of 65 536 points do not hold them;
    /// the peak-to-peak is then a lower bound. Left out when true.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub jitter_pp_exact: bool,
    /// Root mean square of the deviations from the fitted grid (divisor n).
    pub rms_ns: f64,
    /// A line that outliers do not affect.
    pub robust: Option<Robust>,
}

/// A Theil–Sen line over the medians of at most 243 blocks of neighbouring cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Robust {
    /// Fitted period, ns.
    pub period_ns: f64,
    /// (fitted / nominal − 1)·10⁹.
    pub drift_ppb: f64,
    /// Typical (median) wake of the first recorded cycle minus its nominal release, ns.
    pub phase_ns: f64,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

/// A fitted line to measure deviations from, in fixed point so that no rounding depends on k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Cycle at which the line stands at `offset`.
    origin: u64,
    /// ns per cycle, scaled by 2⁴⁰.
    slope: i128,
    /// Smallest deviation of a sample from the line through the origin, scaled by 2⁴⁰.
    lowest: i128,
}

impl Line {
    /// The deviation of a wake above the *earliest* wake about this line: never negative for the
    /// samples that the line was fitted to. `lateness_ns` is about the nominal grid. Rounded to
    /// the nearest ns, saturating.
    #[inline]
    pub fn above_earliest_ns(&self, cycle: u64, lateness_ns: i64) -> i64 {
        let x = i128::from(cycle) - i128::from(self.origin);
        let scaled = (i128::from(lateness_ns) << FRACTION_BITS)
            .saturating_sub(self.slope.saturating_mul(x))
            .saturating_sub(self.lowest);
        let rounded = scaled.saturating_add(1 << (FRACTION_BITS - 1)) >> FRACTION_BITS;
        rounded.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// The fitted period, to the nearest ns, where the nominal one is `period_ns`.
    pub(super) fn spacing_ns(&self, period_ns: i64) -> i64 {
        let slope = self.slope.saturating_add(1 << (FRACTION_BITS - 1)) >> FRACTION_BITS;
        let fitted = i128::from(period_ns).saturating_add(slope);
        i64::try_from(fitted).unwrap_or(period_ns).max(0)
    }
}

/// The accumulator of a fit.
///
/// Sound for 10⁹ cycles of 1 s with deviations of seconds and drifts of 1000 ppm; sums that would
/// overflow (no real recording) end the fit with `None`, they never wrap.
#[derive(Clone, Debug)]
pub struct GridFit {
    nominal: Period,
    sums: Sums,
    hull: Hull,
    blocks: Blocks,
}

impl GridFit {
    /// An empty fit about a nominal period.
    pub fn new(nominal: Period) -> Self {
        Self { nominal, sums: Sums::default(), hull: Hull::default(), blocks: Blocks::default() }
    }

    /// Takes in one wake: its cycle and its deviation from the nominal grid in ns. Cycles must not
    /// decrease; one that does is left out and counted by [`Self::left_out`].
    #[inline]
    pub fn push(&mut self, cycle: u64, deviation_ns: i64) {
        let Some(x) = self.sums.push(cycle, deviation_ns) else { return };
        self.hull.push(x, deviation_ns);
        self.blocks.push(x, deviation_ns);
    }

    /// Takes in wakes of neighbouring cycles with a magnitude below 2²⁶ ns, at most 256 of them.
    #[inline]
    pub(super) fn extend_near(&mut self, first_cycle: u64, deviations_ns: &[i64]) {
        let Some(x) = self.sums.extend_near(first_cycle, deviations_ns) else {
            let cycles = first_cycle..;
            return cycles.zip(deviations_ns).for_each(|(cycle, &ns)| self.push(cycle, ns));
        };
        self.hull.extend(x, deviations_ns);
        (x..).zip(deviations_ns).for_each(|(x, &ns)| self.blocks.push(x, ns));
    }

    /// Wakes that were left out because their cycle stood before the previous one.
    pub fn left_out(&self) -> u64 {
        self.sums.left_out()
    }

    /// The grid, and the line behind it; `None` with fewer than two distinct cycles or on overflow.
    pub fn finish(&self) -> Option<(Grid, Line)> {
        let fit = self.sums.fit(FRACTION_BITS)?;
        let extremes = self.hull.extremes_about(fit.slope, FRACTION_BITS)?;
        let nominal = self.nominal.as_ns() as f64;
        let slope_ns = fit.slope as f64 / ONE;
        let robust = self.blocks.fit().map(|(slope_ns, phase_ns)| Robust {
            period_ns: nominal + slope_ns,
            drift_ppb: slope_ns / nominal * 1e9,
            phase_ns,
        });
        let grid = Grid {
            period_ns: nominal + slope_ns,
            drift_ppb: slope_ns / nominal * 1e9,
            phase_ns: fit.offset_ns,
            jitter_pp_ns: (extremes.highest - extremes.lowest) as f64 / ONE,
            jitter_pp_exact: self.hull.is_exact(),
            rms_ns: fit.rms_ns,
            robust,
        };
        Some((grid, Line { origin: fit.origin, slope: fit.slope, lowest: extremes.lowest }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fitted(nominal_ns: u64, points: &[(u64, i64)]) -> Option<(Grid, Line)> {
        let mut fit = GridFit::new(Period::from_ns(nominal_ns).unwrap());
        points.iter().for_each(|&(k, d)| fit.push(k, d));
        fit.finish()
    }

    /// The slow model: two passes in exact rationals of the normal equations, then doubles.
    fn two_passes(points: &[(u64, i64)]) -> (f64, f64, f64, f64) {
        let n = points.len() as i128;
        let x = |k: u64| i128::from(k) - i128::from(points[0].0);
        let sum = |f: &dyn Fn(i128, i128) -> i128| -> i128 {
            points.iter().map(|&(k, d)| f(x(k), i128::from(d))).sum()
        };
        let (sx, sd) = (sum(&|x, _| x), sum(&|_, d| d));
        let slope =
            (n * sum(&|x, d| x * d) - sx * sd) as f64 / (n * sum(&|x, _| x * x) - sx * sx) as f64;
        let offset = (sd as f64 - slope * sx as f64) / n as f64;
        let residuals: Vec<f64> =
            points.iter().map(|&(k, d)| d as f64 - offset - slope * x(k) as f64).collect();
        let rms = (residuals.iter().map(|r| r * r).sum::<f64>() / n as f64).sqrt();
        let most = residuals.iter().copied().fold(f64::MIN, f64::max);
        let least = residuals.iter().copied().fold(f64::MAX, f64::min);
        (slope, offset, rms, most - least)
    }

    #[test]
    fn two_distinct_cycles_are_needed() {
        assert!(fitted(1_000, &[]).is_none());
        assert!(fitted(1_000, &[(5, 3)]).is_none());
        assert!(fitted(1_000, &[(5, 3), (5, 9)]).is_none());
        let (grid, _) = fitted(1_000, &[(5, 3), (6, 3)]).unwrap();
        assert_eq!((grid.period_ns, grid.drift_ppb, grid.jitter_pp_ns), (1_000.0, 0.0, 0.0));
    }

    #[test]
    fn sound_for_a_billion_seconds_of_drift() {
        // 1000 ppm over 10⁹ cycles of 1 s, with a deviation of ± 1 s and a known residual.
        let points: Vec<(u64, i64)> = (0..1_000u64)
            .map(|i| {
                let k = (1 << 33) + i * 1_000_000;
                let wobble = [0, 1_000_000_000, 0, -1_000_000_000][i as usize % 4];
                (k, (i * 1_000_000) as i64 * 1_000_000 + wobble)
            })
            .collect();
        let (grid, _) = fitted(1_000_000_000, &points).unwrap();
        assert!((grid.drift_ppb - 1e6).abs() < 1e-2, "{}", grid.drift_ppb);
        assert!((grid.rms_ns - 1e9 / 2f64.sqrt()).abs() < 1e5, "{}", grid.rms_ns);
        assert!((grid.jitter_pp_ns - 2e9).abs() < 1e7, "{}", grid.jitter_pp_ns);
    }

    #[test]
    fn rms_of_nanoseconds_survives_a_million_seconds_of_drift() {
        let points: Vec<(u64, i64)> = (0..4_000u64)
            .map(|i| (i * 250_000, (i * 250_000) as i64 * 1_000_000 + (i % 2) as i64 * 2))
            .collect();
        let (grid, line) = fitted(1_000_000_000, &points).unwrap();
        assert!((grid.rms_ns - 1.0).abs() < 1e-3, "{}", grid.rms_ns);
        assert!((grid.jitter_pp_ns - 2.0).abs() < 1e-2, "{}", grid.jitter_pp_ns);
        assert!(points.iter().all(|&(k, d)| (0..=2).contains(&line.above_earliest_ns(k, d))));
    }

    #[test]
    fn absurd_numbers_give_none_or_a_number_but_never_wrap() {
        let far = punctual_core::sample::CYCLE_MAX;
        for points in [
            vec![(0, i64::MIN), (far, i64::MAX)],
            vec![(0, i64::MAX); 3],
            (0..4_000).map(|i| (far - 4_000 + i, i64::MIN)).chain([(far, i64::MAX)]).collect(),
            (0..2_000).map(|i| (i * (far / 2_000), [i64::MIN, i64::MAX][i as usize % 2])).collect(),
        ] {
            if let Some((grid, _)) = fitted(1, &points) {
                assert!(grid.jitter_pp_ns >= 0.0 && grid.rms_ns >= 0.0);
            }
        }
    }

    #[test]
    fn the_robust_line_ignores_what_the_least_squares_line_follows() {
        let points: Vec<(u64, i64)> = (0..30_000u64)
            .map(|k| {
                let noise = (k * 7_919 % 101) as i64 - 50;
                let outlier = if k > 25_000 && k % 10 == 0 { 1_000_000 } else { 0 };
                (k, 3 * k as i64 + noise + outlier)
            })
            .collect();
        let (grid, _) = fitted(1_000_000, &points).unwrap();
        let robust = grid.robust.unwrap();
        assert!((robust.drift_ppb - 3_000.0).abs() < 20.0, "{}", robust.drift_ppb);
        assert!(robust.phase_ns.abs() < 30.0, "{}", robust.phase_ns);
        assert!((grid.drift_ppb - 3_000.0).abs() > 500.0, "{}", grid.drift_ppb);
    }

    fn recordings() -> impl Strategy<Value = Vec<(u64, i64)>> {
        let step = prop_oneof![8 => Just(1u64), 1 => 1u64..50, 1 => Just(0u64)];
        let deviation = prop_oneof![-500i64..5_000, -2_000_000_000i64..2_000_000_000];
        (0u64..1 << 40, -1_000i64..1_000, prop::collection::vec((step, deviation), 3..300))
            .prop_map(|(start, drift, steps)| {
                let mut k = start;
                let wakes = steps.into_iter().map(|(step, deviation)| {
                    k += step;
                    (k, deviation + drift * (k - start) as i64)
                });
                wakes.collect()
            })
    }

    proptest! {
        #[test]
        fn streaming_agrees_with_two_passes(points in recordings()) {
            prop_assume!(points[0].0 != points[points.len() - 1].0);
            let (grid, line) = fitted(1_000_000, &points).unwrap();
            let (slope, offset, rms, peak_to_peak) = two_passes(&points);
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs().max(1_000.0);
            prop_assert!(near(grid.drift_ppb, slope / 1e6 * 1e9), "{} {}", grid.drift_ppb, slope);
            prop_assert!(near(grid.phase_ns, offset), "{} {}", grid.phase_ns, offset);
            prop_assert!(near(grid.rms_ns, rms), "{} {}", grid.rms_ns, rms);
            let pp_ns = grid.jitter_pp_ns;
            prop_assert!(near(pp_ns, peak_to_peak), "{} {}", pp_ns, peak_to_peak);
            let above: Vec<i64> =
                points.iter().map(|&(k, d)| line.above_earliest_ns(k, d)).collect();
            prop_assert_eq!(above.iter().min(), Some(&0));
            let span = *above.iter().max().unwrap() as f64;
            prop_assert!((span - peak_to_peak).abs() <= 1.0 + 1e-6 * peak_to_peak);
        }
    }
}
