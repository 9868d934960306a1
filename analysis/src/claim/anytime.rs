//! Bounds of a probability that hold at every look: for live views, and for runs that end early.
//!
//! A bound for a fixed n is wrong more often than its level says when one looks again and again and
//! stops at a good moment. These are confidence sequences: with the stated confidence they are
//! valid at *all* n at once, from the first cycle to the last. Arithmetic only; keeps no state.
//!
//! Ville's inequality for a mixture of likelihood ratios (Robbins 1970; Howard, Ramdas, McAuliffe
//! and Sekhon, Annals of Statistics 49(2), 2021, proposition 7, the one-sided beta-binomial
//! mixture; Howard and Ramdas, Bernoulli 28(3), 2022). Against "p is at least p₀" the mixture is
//! over q < p₀ with the density a·qᵃ⁻¹/p₀ᵃ, the beta density with b = 1 cut off at p₀:
//!
//! ```text
//! M(p₀) = ∫ (q/p₀)ᵏ ((1 − q)/(1 − p₀))ⁿ⁻ᵏ dπ(q)
//!       = a·B(k + a, n − k + 1)·I_p₀(k + a, n − k + 1) / (p₀ᵏ⁺ᵃ (1 − p₀)ⁿ⁻ᵏ)
//! ```
//!
//! It has no scale of its own, so that 10⁻² and 10⁻⁹ are bounded equally well. Each factor under
//! the integral rises with p₀, so M does, and the bound is where it reaches 1/α. With a = 1/2 and
//! no event the bound at 95 % is about 3.8/n where a fixed n would give 3.0/n.
//!
//! The cycles are taken to be independent. For dependent ones the counts are reduced as those of
//! [`super::bound::p_upper`] are, by an extremal index that is itself an estimate. Bursts are known
//! only after the first one: before it, the bound is that of independent cycles, and may be too low
//! by a factor of the mean burst size.

use super::bound::independent_share;
use crate::special::{beta, ln_gamma};

/// The a of the mixture: how much of it lies at small ratios q/p₀.
const A: f64 = 0.5;

/// The upper bound of p, right at all n at once with at least this confidence, after `events` in n
/// cycles. Both may be fractions (effective numbers). 1 where n is 0.
pub fn p_upper(events: f64, n: f64, confidence: f64) -> f64 {
    let events = events.max(0.0);
    if n.is_nan() || n <= events {
        return 1.0;
    }
    let bar = -(1.0 - confidence).ln();
    // The evidence against k/n itself is 0; against 1 it is unbounded.
    let (mut low, mut high) = ((events / n).max(1e-300).ln(), 0.0f64);
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        if ln_evidence_below(events, n, middle.exp()) < bar { low = middle } else { high = middle }
    }
    high.exp()
}

/// The lower bound of p, right at all n at once with at least this confidence; 0 before the first
/// event.
pub fn p_lower(events: f64, n: f64, confidence: f64) -> f64 {
    if n.is_nan() || n <= 0.0 || events <= A {
        return 0.0;
    }
    let bar = -(1.0 - confidence).ln();
    let (mut low, mut high) = (1e-300f64.ln(), (events / n).min(1.0).ln());
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        if ln_evidence_above(events, n, middle.exp()) < bar { high = middle } else { low = middle }
    }
    low.exp()
}

/// Halvings of the logarithm: to twelve digits.
const STEPS: usize = 50;

/// ln M(p₀) against "p is at least p₀": once it reaches −ln α, p is below p₀ with confidence
/// 1 − α, whenever that is looked at. Rises with p₀. `p0` in (0, 1).
pub fn ln_evidence_below(events: f64, n: f64, p0: f64) -> f64 {
    let (a, b) = (events + A, n - events + 1.0);
    let mixture = ln_beta(a, b) + beta(p0, a, b).ln();
    A.ln() + mixture - a * p0.ln() - (n - events) * (-p0).ln_1p()
}

/// The logarithm of the evidence against "p is at most p₀", by a mixture over q > p₀ with a density
/// of at most a·p₀ᵃ·q⁻ᵃ⁻¹. Falls with p₀. −∞ before the first event.
pub fn ln_evidence_above(events: f64, n: f64, p0: f64) -> f64 {
    if events <= A {
        return f64::NEG_INFINITY;
    }
    let (a, b) = (events - A, n - events + 1.0);
    let mixture = ln_beta(a, b) + beta(1.0 - p0, b, a).ln();
    A.ln() + mixture - a * p0.ln() - (n - events) * (-p0).ln_1p()
}

/// [`p_upper`] for cycles with extremal index `theta` in (0, 1], reduced as [`super::bound`] does.
pub fn p_upper_dependent(events: u64, n: u64, theta: f64, confidence: f64) -> f64 {
    let theta = theta.clamp(f64::MIN_POSITIVE, 1.0);
    let none = p_upper(0.0, theta * n as f64, confidence);
    if events == 0 {
        return none;
    }
    let share = independent_share(theta);
    p_upper(events as f64 * share, n as f64 * share, confidence).max(none)
}

/// [`p_lower`] for cycles with extremal index `theta` in (0, 1].
pub fn p_lower_dependent(events: u64, n: u64, theta: f64, confidence: f64) -> f64 {
    let share = independent_share(theta.clamp(f64::MIN_POSITIVE, 1.0));
    p_lower(events as f64 * share, n as f64 * share, confidence)
}

/// ln B(a, b); for a large b without the difference of two large logarithms.
fn ln_beta(a: f64, b: f64) -> f64 {
    if b < 20.0 {
        return ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    }
    // Stirling: ln Γ(b) − ln Γ(a + b).
    let sum = a + b;
    let series = |x: f64| 1.0 / (12.0 * x) - 1.0 / (360.0 * x * x * x);
    let difference = -(b - 0.5) * (a / b).ln_1p() - a * sum.ln() + a;
    ln_gamma(a) + difference + series(b) - series(sum)
}

#[cfg(test)]
mod tests {
    use super::super::bound;
    use super::*;

    /// Uniform numbers in (0, 1].
    struct Uniform(u64);

    impl Uniform {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((self.0 >> 11) as f64 + 1.0) / (1u64 << 53) as f64
        }

        /// Cycles up to and with the next event.
        fn gap(&mut self, p: f64) -> f64 {
            (self.next().ln() / (-p).ln_1p()).floor() + 1.0
        }
    }

    /// The share of `streams` streams of up to `n_max` cycles in which a bound was ever wrong. The
    /// evidence against a p too low is largest just before an event, and that against a p too high
    /// just after one: looking there is looking at every n.
    fn ever(
        streams: u64,
        p: f64,
        n_max: f64,
        mut wrong: impl FnMut(f64, f64, bool) -> bool,
    ) -> f64 {
        let mut count = 0u64;
        for stream in 0..streams {
            let mut uniform = Uniform(stream * 2_654_435_761 + 12_345);
            let (mut n, mut events) = (0.0, 0.0);
            let found = loop {
                let gap = uniform.gap(p);
                let before = (n + gap - 1.0).min(n_max);
                if before > 0.0 && wrong(events, before, true) {
                    break true;
                }
                (n, events) = (n + gap, events + 1.0);
                if n > n_max {
                    break false;
                }
                if wrong(events, n, false) {
                    break true;
                }
            };
            count += u64::from(found);
        }
        count as f64 / streams as f64
    }

    #[test]
    fn looking_at_every_cycle_is_wrong_no_more_often_than_the_level_says() {
        let bar = 20f64.ln();
        for (p, n_max) in [(0.3, 2_000.0), (0.01, 30_000.0), (1e-5, 2e7)] {
            let upper =
                ever(2_000, p, n_max, |k, n, before| before && ln_evidence_below(k, n, p) >= bar);
            // 5 % and three standard deviations of the simulation.
            assert!(upper <= 0.065, "{p}: {upper}");
            let lower =
                ever(2_000, p, n_max, |k, n, before| !before && ln_evidence_above(k, n, p) >= bar);
            assert!(lower <= 0.065, "{p}: {lower}");
            assert!(upper + lower > 0.005, "{p}: {upper} {lower}: too wide to be of use");
        }
    }

    #[test]
    fn looking_at_a_bound_for_one_n_all_the_time_breaks_its_level() {
        let p = 0.01;
        let peeked = ever(500, p, 30_000.0, |k, n, before| {
            before && bound::p_upper(k as u64, n as u64, 1.0) < p
        });
        assert!(peeked > 0.15, "{peeked}");
    }

    #[test]
    fn the_bounds_are_where_the_evidence_reaches_the_level() {
        for (k, n) in [(0.0, 10.0), (0.0, 1e6), (3.0, 1e4), (0.4, 70.5), (12.0, 3e5), (900.0, 1e3)]
        {
            for confidence in [0.8, 0.95, 0.999] {
                let bar = -f64::ln(1.0 - confidence);
                let (low, high) = (p_lower(k, n, confidence), p_upper(k, n, confidence));
                assert!(low <= k / n && k / n < high && high <= 1.0, "{low} {high}");
                assert!((ln_evidence_below(k, n, high) - bar).abs() < 1e-6, "{k} of {n}");
                assert!(low == 0.0 || (ln_evidence_above(k, n, low) - bar).abs() < 1e-6);
            }
        }
        assert_eq!((p_upper(0.0, 0.0, 0.95), p_upper(5.0, 5.0, 0.95)), (1.0, 1.0));
        assert_eq!((p_lower(0.0, 1e9, 0.95), p_lower(3.0, 0.0, 0.95)), (0.0, 0.0));
    }

    #[test]
    fn evidence_is_monotone_in_the_probability_it_is_against() {
        for (k, n) in [(0.0, 50.0), (1.0, 1.0), (2.0, 40.0), (7.0, 1e5), (30.0, 60.0)] {
            let (mut below, mut above) = (f64::NEG_INFINITY, f64::INFINITY);
            for step in 1..400 {
                let p0 = (f64::from(step - 400) * 0.03).exp();
                let (b, a) = (ln_evidence_below(k, n, p0), ln_evidence_above(k, n, p0));
                assert!(b >= below - 1e-9 && a <= above + 1e-9, "{k} of {n} at {p0}: {b} {a}");
                (below, above) = (b, a);
            }
        }
    }

    #[test]
    fn looking_costs_little_and_scales() {
        for n in [1e3, 1e6, 1e9, 1e12] {
            let ratio = p_upper(0.0, n, 0.95) * n / 3.0;
            assert!((1.2..1.35).contains(&ratio), "{n}: {ratio}");
            let ten = p_upper(10.0, n, 0.95) * n;
            assert!((20.0..25.0).contains(&ten), "{n}: {ten}");
        }
        // Against a fixed n it is never narrower.
        for k in [0u64, 1, 5, 100, 100_000] {
            for theta in [1.0, 0.3] {
                let n = 10_000_000;
                let fixed = bound::p_upper(k, n, theta);
                let any = p_upper_dependent(k, n, theta, 0.95);
                assert!(any > fixed && any < 2.0 * fixed, "{k}: {any} {fixed}");
                assert!(p_lower_dependent(k, n, theta, 0.95) <= k as f64 / n as f64);
            }
        }
    }

    #[test]
    fn the_logarithm_of_beta_is_continuous_where_its_formula_changes() {
        for a in [0.5, 3.0, 40.0, 1e6] {
            let (below, above) = (ln_beta(a, 19.999_999), ln_beta(a, 20.000_001));
            assert!((below - above).abs() < 1e-4, "{a}: {below} {above}");
        }
        // B(1/2, 10¹²) = Γ(1/2)/√10¹² to one part in 10¹².
        let known = 0.5 * std::f64::consts::PI.ln() - 6.0 * 10f64.ln();
        assert!((ln_beta(0.5, 1e12) - known).abs() < 1e-9);
    }
}
