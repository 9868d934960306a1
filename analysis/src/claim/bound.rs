//! Bounds on a probability from a count, and ranks that enclose a quantile.
//!
//! Exact for independent cycles, distribution-free; dependence enters as an effective number of
//! cycles. Arithmetic only.

use crate::quantile::Probability;
use crate::special::{beta, gamma_upper_inverse};

/// The confidence of every claim.
pub const CONFIDENCE: f64 = 0.95;

/// The upper bound, at the given confidence, of the mean of a Poisson variable of which `events`
/// were seen: {3.0, 4.74, 6.30, …} at 95 % for {0, 1, 2, …}. A fraction of an event is allowed.
pub fn events_upper(events: f64, confidence: f64) -> f64 {
    if events <= 0.0 {
        return -(1.0 - confidence).ln();
    }
    if events > EXACT_EVENTS_MAX {
        // A little above the exact bound, because the exact expansions would take minutes here.
        return events + beyond(events, confidence);
    }
    gamma_upper_inverse(events + 1.0, 1.0 - confidence)
}

/// The lower bound, at the given confidence, of the mean of a Poisson variable of which `events`
/// were seen: {0, 0.051, 0.36, 0.82, …} at 95 % for {0, 1, 2, 3, …}.
pub fn events_lower(events: f64, confidence: f64) -> f64 {
    if events <= 0.0 {
        return 0.0;
    }
    if events > EXACT_EVENTS_MAX {
        return events - beyond(events, confidence);
    }
    gamma_upper_inverse(events, confidence)
}

/// A distance from a large count that no bound exceeds: three standard deviations, or more where
/// the confidence needs it (Chernoff).
fn beyond(events: f64, confidence: f64) -> f64 {
    let ln = -(1.0 - confidence).ln();
    (3.0 * events.sqrt()).max((2.0 * events * ln).sqrt() + 2.0 * ln)
}

/// Counts up to this are bounded exactly; above, the bound's excess is a share below 10⁻³.
const EXACT_EVENTS_MAX: f64 = 1e7;

/// The most cycles that a quantile's interval uses: more would narrow it by less than a bucket.
const RANKED_CYCLES_MAX: f64 = 1e10;

/// The upper bound of p at 95 % after `exceedances` in n cycles with extremal index `theta` in
/// (0, 1]: [`events_upper`] over an effective n, at most 1.
///
/// Without an exceedance the effective n is θn (no cluster in n: e^(−pθn)). With exceedances the
/// *size* of clusters varies too; for geometric sizes the variance of the count is (2 − θ)/θ that
/// of a Poisson variable, so n and the count are both divided by that. The Poisson bound is never
/// below the binomial one (Clopper–Pearson).
pub fn p_upper(exceedances: u64, n: u64, theta: f64) -> f64 {
    p_upper_at(exceedances as f64, n as f64, theta, CONFIDENCE)
}

/// [`p_upper`] at any confidence, for counts that may be fractions.
pub fn p_upper_at(exceedances: f64, n: f64, theta: f64, confidence: f64) -> f64 {
    if n <= 0.0 {
        return 1.0;
    }
    let theta = theta.clamp(f64::MIN_POSITIVE, 1.0);
    let none = events_upper(0.0, confidence) / (theta * n);
    if exceedances <= 0.0 {
        return none.min(1.0);
    }
    let share = independent_share(theta);
    let some = events_upper(exceedances * share, confidence) / (share * n);
    some.max(none).min(1.0)
}

/// The lower bound of p at a confidence, the counterpart of [`p_upper_at`]. The Poisson bound is
/// never above the binomial one.
pub fn p_lower_at(exceedances: f64, n: f64, theta: f64, confidence: f64) -> f64 {
    if n <= 0.0 {
        return 0.0;
    }
    let share = independent_share(theta.clamp(f64::MIN_POSITIVE, 1.0));
    (events_lower(exceedances * share, confidence) / (share * n)).min(1.0)
}

/// The share of the cycles that count as independent when something is counted: θ/(2 − θ).
pub fn independent_share(theta: f64) -> f64 {
    theta / (2.0 - theta)
}

/// Ranks (1 = smallest) of the order statistics that enclose the quantile at p with 95 %
/// confidence, both sides 97.5 %: (lower, upper). `None` where n holds no such rank.
///
/// The binomial test is done for an effective number of cycles, and its ranks are scaled to n.
pub fn quantile_ranks(p: Probability, n: u64, theta: f64) -> (Option<u64>, Option<u64>) {
    quantile_ranks_at(p, (n, theta), CONFIDENCE)
}

/// [`quantile_ranks`] at any confidence, each side half of what is left of it; `n` with its
/// extremal index.
pub fn quantile_ranks_at(
    p: Probability,
    (n, theta): (u64, f64),
    confidence: f64,
) -> (Option<u64>, Option<u64>) {
    let effective = (n as f64 * independent_share(theta)).floor().min(RANKED_CYCLES_MAX);
    if effective < 1.0 {
        return (None, None);
    }
    let each = (1.0 - confidence) / 2.0;
    let effective_n = effective as u64;
    // P(X₍ᵣ₎ > Q) = P(fewer than r of n are ≤ Q) = P(Bin(n, p) ≤ r − 1) must be ≤ `each`.
    let lower = first_above(effective_n, each, |r| binomial_at_most(r, effective, p.share()));
    // P(X₍ᵣ₎ < Q) ≤ P(at least r of n are < Q) ≤ 1 − P(Bin(n, p) ≤ r − 1) must be ≤ `each`.
    let upper = first_above(effective_n, 1.0 - each, |r| binomial_at_most(r, effective, p.share()));
    // Scaled from few independent cycles, a rank may fall on the far side of the estimate's.
    let (scale, estimate) = (n as f64 / effective, p.rank(n));
    let lower = (lower > 0).then(|| ((lower as f64 * scale).floor() as u64).clamp(1, estimate));
    // `upper` is the first x with P(Bin ≤ x) > 1 − `each`, so that r = x + 1.
    let upper = (upper < effective_n)
        .then(|| (((upper + 1) as f64 * scale).ceil() as u64).clamp(estimate, n));
    (lower, upper)
}

/// The independent cycles among `n`, as far as `theta` shows them, and those with which the
/// interval of the quantile at p has an upper end.
pub(super) fn independent_for(p: Probability, n: u64, theta: f64) -> (u64, u64) {
    let each = (1.0 - CONFIDENCE) / 2.0;
    let needed = each.ln() / p.share().ln();
    ((n as f64 * independent_share(theta)).floor() as u64, needed.floor() as u64 + 1)
}

/// P(Bin(n, p) ≤ k).
fn binomial_at_most(k: u64, n: f64, p: f64) -> f64 {
    let k = k as f64;
    if k >= n { 1.0 } else { beta(1.0 - p, n - k, k + 1.0) }
}

/// The smallest k in [0, n] at which a rising function exceeds `level`.
fn first_above(n: u64, level: f64, rising: impl Fn(u64) -> f64) -> u64 {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if rising(middle) > level { high = middle } else { low = middle + 1 }
    }
    low
}

/// An upper bound with two digits, rounded up: `3.0e-3`; `1` for everything from 1 on.
pub fn rounded_up(p: f64) -> String {
    let place = 10f64.powf(p.log10().floor() - 1.0);
    let up = (p / place - 1e-9).ceil() * place;
    if up >= 1.0 { "1".to_owned() } else { format!("{up:.1e}") }
}

/// A share that was counted, and bounds nothing, rounded to the nearest: `1.80e-3`. With two digits
/// it would often be the claimed one.
pub fn seen_share(share: f64) -> String {
    if share >= 0.9995 { "1".to_owned() } else { format!("{share:.2e}") }
}

/// A bound with two digits, rounded down.
pub(super) fn rounded_down(p: f64) -> String {
    let place = 10f64.powf(p.log10().floor() - 1.0);
    format!("{:.1e}", (p / place + 1e-9).floor() * place)
}

/// An extremal index with two places, or one digit where two places would show 0; rounded down,
/// because it is a lower bound.
pub(super) fn shown_theta(theta: f64) -> String {
    if theta >= 0.01 {
        return format!("{:.2}", (theta * 100.0).floor() / 100.0);
    }
    let place = 10f64.powf(theta.log10().floor());
    format!("{:.0e}", (theta / place + 1e-9).floor() * place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_bounds_at_95_percent() {
        let known = [3.0, 4.74, 6.30, 7.75, 9.15, 10.51];
        for (k, bound) in known.into_iter().enumerate() {
            assert!((events_upper(k as f64, 0.95) - bound).abs() < 0.006, "{k}");
        }
        assert!((events_upper(10.0, 0.95) - 16.96).abs() < 0.006);
        assert!((events_upper(0.0, 0.99) - 4.605).abs() < 0.001);
    }

    #[test]
    fn lower_bounds_are_the_other_tail() {
        // Half of χ² at 5 % with 2k degrees of freedom: 0.1026, 0.7107, 1.6354 for k = 1, 2, 3.
        for (k, chi_squared) in [(1.0, 0.102_587), (2.0, 0.710_723), (3.0, 1.635_383)] {
            assert!((events_lower(k, 0.95) - chi_squared / 2.0).abs() < 1e-5, "{k}");
        }
        assert_eq!((events_lower(0.0, 0.95), p_lower_at(0.0, 100.0, 1.0, 0.95)), (0.0, 0.0));
        for k in [1.0, 10.0, 1e3, 9.9e6, 1.1e7, 1e9] {
            for confidence in [0.5, 0.95, 0.999_999] {
                let (low, high) = (events_lower(k, confidence), events_upper(k, confidence));
                assert!(low < k && k < high, "{low} {k} {high}");
                assert!(p_lower_at(k, 1e12, 0.2, confidence) < k / 1e12);
            }
        }
    }

    #[test]
    fn dependence_and_exceedances_only_ever_widen() {
        let mut previous = 0.0;
        for k in 0..50 {
            let bound = p_upper(k, 10_000, 1.0);
            assert!(bound > previous);
            assert!(p_upper(k, 10_000, 0.5) > bound);
            previous = bound;
        }
        assert_eq!(p_upper(0, 0, 1.0), 1.0);
        assert_eq!(p_upper(5, 5, 1.0), 1.0);
        assert!((p_upper(0, 3_000, 1.0) - 1e-3).abs() < 2e-6);
    }

    #[test]
    fn ranks_are_those_of_the_binomial_test() {
        // n = 10, median: [X₍₂₎, X₍₉₎] covers with 97.9 %, the textbook case.
        assert_eq!(quantile_ranks(Probability::P50, 10, 1.0), (Some(2), Some(9)));
        assert_eq!(quantile_ranks(Probability::P50, 5, 1.0), (None, None));
        // A high quantile has an upper end only once enough samples lie beyond it.
        let (lower, upper) = quantile_ranks(Probability::P99, 300, 1.0);
        assert!(lower.is_some() && upper.is_none());
        let (_, upper) = quantile_ranks(Probability::P99, 400, 1.0);
        assert!(upper.is_some());
    }

    #[test]
    fn ranks_enclose_the_point_estimate_at_any_n() {
        for n in [10u64, 1_000, 100_000, 1_000_000_000] {
            for p in Probability::SUMMARY {
                // Down to a few independent cycles.
                for theta in [1.0, 0.3, 1e-3, 1e-4, 1e-6] {
                    let (lower, upper) = quantile_ranks(p, n, theta);
                    assert!(lower.is_none_or(|r| r <= p.rank(n)), "{n} {p}");
                    assert!(upper.is_none_or(|r| r >= p.rank(n)), "{n} {p}");
                }
            }
        }
    }

    #[test]
    fn an_index_is_rounded_down_and_never_to_nothing() {
        let shown = [1.0, 0.999, 0.267, 0.01, 0.0099, 1.0 / 10_138.0].map(shown_theta);
        assert_eq!(shown, ["1.00", "0.99", "0.26", "0.01", "9e-3", "9e-5"]);
    }

    #[test]
    fn a_share_that_was_seen_is_rounded_to_the_nearest() {
        assert_eq!(seen_share(27.0 / 14_963.0), "1.80e-3");
        assert_eq!(seen_share(0.9994), "9.99e-1");
        assert_eq!([0.9996, 1.0].map(seen_share), ["1", "1"]);
    }

    #[test]
    fn bounds_are_rounded_up() {
        assert_eq!(rounded_up(2.01e-3), "2.1e-3");
        assert_eq!(rounded_up(2e-3), "2.0e-3");
        assert_eq!(rounded_up(0.999), "1");
    }
}
