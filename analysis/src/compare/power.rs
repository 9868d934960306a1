//! How many cycles it takes to detect that one run exceeds a threshold twice as often as another.
//!
//! Two Poisson counts, compared by the logarithm of their ratio (Gu, Ng, Tang and Schucany, Testing
//! the ratio of two Poisson rates, Biometrical Journal 50, 2008). Arithmetic only.

use super::distributions::{normal_quantile_above, student_quantile_above};
use super::rates::Counts;

/// The ratio to detect.
pub const RATIO: f64 = 2.0;
/// The probability of detecting it when it is there.
pub const POWER: f64 = 0.8;

/// Releases that each side needs in all, so that a test at level `alpha` detects [`RATIO`] with
/// probability [`POWER`]: the exceedances of a threshold go on as often, and as clustered, as they
/// were. `None` where neither side has one.
pub(super) fn releases_needed(counts: &Counts, alpha: f64) -> Option<u64> {
    needed(counts, alpha, RATIO)
}

/// The same to detect another ratio, above 1.
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
