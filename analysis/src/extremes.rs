//! Extreme values (level L3): latenesses that are rarer than the run can show.
//!
//! Peaks over a threshold, a generalised Pareto distribution fitted to the 100 largest values,
//! extrapolated at most two decades beyond 1/n, with an interval by profile likelihood; block
//! maxima and a generalised extreme value distribution must agree. Only where the run passes tests
//! of stationarity, independence and tail; else a refusal that names the test. It is a model: a
//! mechanism that did not occur in the run is not in it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`peaks`] | the largest values of a stream, in constant memory; in order, ties taken apart |
//! | [`battery`] | the tests: stationarity, independence, tail |
//! | [`gpd`], [`gev`], `search` | fits and the interval |

pub mod battery;
pub mod gev;
pub mod gpd;
pub mod peaks;
mod search;

use punctual_core::time::Span;

use crate::claim::bound::CONFIDENCE;
use crate::claim::{Claim, Level};
use battery::{About, CYCLES_MIN, FITTED, Test};
use gpd::{ConfidenceInterval, Gpd, Likelihood};
use peaks::Ordered;

pub use peaks::Peaks;

/// Decades beyond 1/n, at most.
pub const DECADES: i32 = 2;

/// Missed releases have no value of their own; with more than this many, the fitted tail lacks too
/// much.
pub const MISSED_MAX: u64 = 5;

/// The fitted tail must be at least this many quanta wide.
const QUANTA_MIN: f64 = 4.0;

/// As many values may be equal to the largest; more look clipped.
const EQUAL_MAX: usize = 20;

/// The loss of twice the log likelihood that encloses the value in 95 % of runs. By simulation; for
/// infinitely many values it would be 3.84.
pub const CUT: f64 = 4.25;

/// A value beyond the observed ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extrapolation {
    /// The likeliest value and its 95 % interval, ns.
    pub value_ns: ConfidenceInterval,
    /// The threshold: the largest value that was not fitted, ns.
    pub threshold_ns: f64,
    /// The distribution that was fitted to the excesses over `threshold_ns`.
    pub fitted: Gpd,
}

/// Why there is no extrapolation.
#[derive(Clone, Debug, PartialEq)]
pub enum TailRefusal {
    /// Fewer cycles than [`CYCLES_MIN`].
    Few,
    /// So many missed releases.
    Missed(u64),
    /// So many cycles ran without a record.
    Unrecorded(u64),
    /// So many values are equal to the largest.
    Equal(usize),
    /// Too few different values.
    Ties,
    /// The values are multiples of this many ns, too coarse for a tail of this scale.
    Coarse {
        /// Least distance of two values, ns.
        quantum_ns: f64,
        /// Scale of the fitted tail, ns.
        scale_ns: f64,
    },
    /// A test failed.
    Failed(Test),
    /// The interval has no upper end.
    Open,
}

/// The extrapolation that a run supports, or why it supports none.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// Cycles that it is based on.
    pub n: u64,
    /// The probability that a cycle exceeds the value.
    pub p: f64,
    /// The value, or why there is none.
    pub outcome: Result<Extrapolation, TailRefusal>,
}

/// The rarest probability that is extrapolated to after n cycles: two decades beyond 1/n, rounded
/// up to a power of ten.
pub fn rarest(n: u64) -> f64 {
    // The number of digits is exact where a logarithm is not.
    10f64.powi(1 - DECADES - n.max(1).to_string().len() as i32)
}

/// The value that a cycle exceeds with probability `p`, from 1/n down to [`rarest`]; outside of
/// that range p is taken to its end. `missed` releases had no value.
pub fn assess(peaks: &Peaks, missed: u64, p: f64) -> Assessment {
    let n = peaks.n();
    let p = p.clamp(rarest(n), 1.0 / n.max(1) as f64);
    Assessment { n, p, outcome: Tail::accepted(peaks, missed).and_then(|tail| tail.at(p)) }
}

/// The result of every test of the battery, failed or not, without those that need a fit that the
/// run does not allow. Empty where nothing can be tested.
pub fn tests(peaks: &Peaks) -> Vec<Test> {
    ordered(peaks, 0).map_or_else(|_| Vec::new(), |ordered| battery::results(&ordered))
}

fn ordered(peaks: &Peaks, missed: u64) -> Result<Ordered, TailRefusal> {
    if peaks.n() < CYCLES_MIN {
        return Err(TailRefusal::Few);
    }
    if missed > MISSED_MAX {
        return Err(TailRefusal::Missed(missed));
    }
    let ordered = Ordered::new(peaks);
    let largest = peaks.kept().iter().map(|peak| peak.value_ns).max();
    let equal = peaks.kept().iter().filter(|peak| Some(peak.value_ns) == largest).count();
    if equal > EQUAL_MAX {
        return Err(TailRefusal::Equal(equal));
    }
    if battery::late(&ordered) < battery::LATE_MIN {
        return Err(TailRefusal::Ties);
    }
    Ok(ordered)
}

/// A tail that passed the battery, ready to be extrapolated.
#[derive(Clone, Debug)]
pub struct Tail {
    ordered: Ordered,
    threshold_ns: f64,
    excesses: Vec<f64>,
    fitted: Gpd,
}

impl Tail {
    /// The tail of a run of which `missed` releases had no value, or why it may not be
    /// extrapolated.
    ///
    /// # Errors
    /// The first reason found, in the order of [`TailRefusal`].
    pub fn accepted(peaks: &Peaks, missed: u64) -> Result<Self, TailRefusal> {
        let ordered = ordered(peaks, missed)?;
        if let Some(test) = battery::first_failed(&ordered) {
            return Err(TailRefusal::Failed(test));
        }
        let (threshold_ns, excesses) = ordered.excesses(FITTED);
        let fitted = gpd::fit(&excesses, 0).ok_or(TailRefusal::Ties)?;
        let (quantum_ns, scale_ns) = (ordered.quantum, fitted.scale);
        if quantum_ns * QUANTA_MIN > scale_ns {
            return Err(TailRefusal::Coarse { quantum_ns, scale_ns });
        }
        Ok(Self { ordered, threshold_ns, excesses, fitted })
    }

    /// The value that a cycle exceeds with probability p, in [`rarest`] … 1/n.
    ///
    /// # Errors
    /// When block maxima disagree, or the interval has no upper end.
    pub fn at(&self, p: f64) -> Result<Extrapolation, TailRefusal> {
        let hazard = (FITTED as f64 / (self.ordered.n as f64 * p)).ln();
        let likelihood = Likelihood::new(&self.excesses, self.fitted, hazard);
        let agreement = battery::agreement(&self.ordered, p, self.threshold_ns, &likelihood);
        if !agreement.passes() {
            return Err(TailRefusal::Failed(agreement));
        }
        let excess = likelihood.interval(CUT).ok_or(TailRefusal::Open)?;
        let value = |excess: f64| self.threshold_ns + excess;
        let value_ns = ConfidenceInterval {
            estimate: value(excess.estimate),
            lower: value(excess.lower),
            upper: value(excess.upper),
        };
        Ok(Extrapolation { value_ns, threshold_ns: self.threshold_ns, fitted: self.fitted })
    }
}

/// The one claim of a run: the value two decades beyond 1/n, made or refused; refused for a run
/// with unrecorded cycles. `None` without a cycle.
pub fn claim(peaks: &Peaks, missed: u64, unrecorded: u64) -> Option<Claim> {
    let n = peaks.n();
    let mut assessment = assess(peaks, missed, rarest(n));
    if unrecorded > 0 {
        assessment.outcome = Err(TailRefusal::Unrecorded(unrecorded));
    }
    (n > 0).then(|| worded(&assessment, missed))
}

/// An assessment in words.
pub fn worded(assessment: &Assessment, missed: u64) -> Claim {
    let Assessment { n, p, outcome } = assessment;
    let given = outcome.as_ref().ok();
    Claim {
        level: Level::L3,
        statement: match outcome {
            Ok(found) => extrapolation(*p, found),
            Err(refusal) => format!("no extrapolation to {p:.0e}: {}", reason(*n, refusal)),
        },
        p: Some(*p),
        bound_ns: given.map(|found| found.value_ns.upper),
        confidence: given.map(|_| CONFIDENCE),
        n: *n,
        given: given.is_some(),
        conditions: conditions(missed),
        alone: false,
        theta: None,
    }
}

fn shown(ns: f64) -> Span {
    Span::from_ns(ns.round() as i64)
}

fn extrapolation(p: f64, found: &Extrapolation) -> String {
    let value = &found.value_ns;
    format!(
        "model-based: a share of {p:.0e} of all cycles is later than {} (95 % interval {} to {})",
        shown(value.estimate),
        shown(value.lower),
        shown(value.upper)
    )
}

fn reason(n: u64, refusal: &TailRefusal) -> String {
    match refusal {
        TailRefusal::Few => format!("{n} cycles are too few: at least {CYCLES_MIN} are needed"),
        TailRefusal::Missed(missed) => {
            format!("{missed} releases were missed, and the model covers only cycles that ran")
        }
        TailRefusal::Unrecorded(unrecorded) => {
            format!("cycles went unrecorded ({unrecorded}), and how late they were is unknown")
        }
        TailRefusal::Equal(count) => {
            format!("the {} test failed: {count} values equal the largest", About::Tail)
        }
        TailRefusal::Ties => format!("the {} test failed: too few different values", About::Tail),
        TailRefusal::Coarse { quantum_ns, scale_ns } => format!(
            "the {} test failed: values in steps of {} are too coarse for a tail of scale {}",
            About::Tail,
            shown(*quantum_ns),
            shown(*scale_ns)
        ),
        TailRefusal::Failed(test) => test.to_string(),
        TailRefusal::Open => {
            format!("the {} test failed: the interval has no upper end", About::Tail)
        }
    }
}

fn conditions(missed: u64) -> String {
    let missed = match missed {
        0 => String::new(),
        missed => format!("; covers only cycles that ran, not the {missed} missed releases"),
    };
    format!(
        "extrapolated by a model (GPD of the {FITTED} largest); valid only for the mechanisms \
        that occurred in this run, under its loads{missed}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn exponential(n: u64, unit_ns: f64) -> Peaks {
        let mut rng = Rng::new(1);
        let mut peaks = Peaks::default();
        (0..n).for_each(|_| peaks.push((rng.exponential() * unit_ns) as i64));
        peaks
    }

    fn refusal(peaks: &Peaks, missed: u64) -> TailRefusal {
        assess(peaks, missed, 0.0).outcome.unwrap_err()
    }

    #[test]
    fn at_most_two_decades_and_a_power_of_ten() {
        let pairs = [(1, 1e-2), (99_999, 1e-6), (100_000, 1e-7), (250_000, 1e-7), (0, 1e-2)];
        for (n, p) in pairs {
            assert!((rarest(n) / p - 1.0f64).abs() < 1e-12, "{n}: {}", rarest(n));
        }
        let found = assess(&exponential(50_000, 1e4), 0, 1e-30);
        assert_eq!(found.p, rarest(50_000));
        assert_eq!(assess(&exponential(50_000, 1e4), 0, 0.5).p, 1.0 / 50_000.0);
    }

    #[test]
    fn rarer_is_later_and_less_sure() {
        let peaks = exponential(50_000, 1e4);
        let at = |p| assess(&peaks, 0, p).outcome.unwrap().value_ns;
        let (near, far) = (at(1.0 / 50_000.0), at(rarest(50_000)));
        assert!(near.lower < near.estimate && near.estimate < near.upper);
        assert!(far.estimate > near.estimate);
        assert!(far.upper - far.lower > near.upper - near.lower);
    }

    #[test]
    fn each_reason_to_refuse_is_found() {
        assert_eq!(refusal(&exponential(39_999, 1e4), 0), TailRefusal::Few);
        assert_eq!(refusal(&exponential(50_000, 1e4), 6), TailRefusal::Missed(6));
        assert!(matches!(refusal(&exponential(50_000, 3.0), 0), TailRefusal::Coarse { .. }));
        let mut clipped = exponential(50_000, 1e4);
        (0..30).for_each(|_| clipped.push(1_000_000));
        assert_eq!(refusal(&clipped, 0), TailRefusal::Equal(30));
        let mut equal = Peaks::default();
        (0..50_000).for_each(|_| equal.push(5));
        assert_eq!(refusal(&equal, 0), TailRefusal::Ties);
        let mut changed = exponential(50_000, 1e4);
        exponential(50_000, 2e4).kept().iter().for_each(|peak| changed.push(peak.value_ns));
        assert!(matches!(refusal(&changed, 0), TailRefusal::Failed(_)));
    }

    #[test]
    fn values_at_the_ends_of_the_range_break_nothing() {
        for value in [i64::MIN, i64::MAX, 0] {
            let mut peaks = exponential(50_000, 1e4);
            peaks.push(value);
            peaks.push(value);
            let _ = assess(&peaks, 0, 0.0);
        }
    }

    #[test]
    fn no_cycle_claims_nothing() {
        assert_eq!(claim(&Peaks::default(), 0, 0), None);
    }

    #[test]
    fn what_is_given_is_called_a_models_word_with_its_interval() {
        let claim = claim(&exponential(50_000, 1e4), 2, 0).unwrap();
        assert!(claim.given && claim.level == Level::L3);
        assert_eq!((claim.p, claim.confidence, claim.n), (Some(1e-6), Some(0.95), 50_000));
        // The truth is 138 us.
        assert!(claim.bound_ns.is_some_and(|ns| ns > 138_000.0), "{claim:?}");
        assert!(claim.statement.starts_with("model-based: a share of 1e-6 of all cycles"));
        assert!(claim.statement.contains("95 % interval"), "{}", claim.statement);
        assert!(claim.conditions.contains("only for the mechanisms that occurred"));
        assert!(claim.conditions.contains("2 missed releases"));
    }

    #[test]
    fn what_is_refused_names_the_test_and_gives_no_bound() {
        let mut peaks = exponential(50_000, 1e4);
        (0..50_000).for_each(|i| peaks.push(i % 1_000 * 100));
        let refused = claim(&peaks, 0, 0).unwrap();
        assert_eq!((refused.given, refused.bound_ns, refused.confidence), (false, None, None));
        assert!(refused.statement.contains(" test failed: "), "{}", refused.statement);
        let lost = claim(&exponential(50_000, 1e4), 0, 1).unwrap();
        assert!(!lost.given && lost.statement.contains("cycles went unrecorded (1)"), "{lost:?}");
        let few = claim(&exponential(500, 1e4), 0, 0).unwrap();
        assert!(few.statement.contains("500 cycles are too few"), "{}", few.statement);
    }
}
