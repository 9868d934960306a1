//! The words of an extrapolation, or of its refusal.
//!
//! Makes a [`Claim`] of level L3; decides nothing.

use punctual_core::time::Span;

use super::battery::{CYCLES_MIN, FITTED};
use super::test::About;
use super::{Assessment, Extrapolation, Peaks, TailRefusal, assess, rarest};
use crate::claim::bound::CONFIDENCE;
use crate::claim::{Claim, Level};

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

    fn exponential(n: u64) -> Peaks {
        let mut rng = Rng::new(1);
        let mut peaks = Peaks::default();
        (0..n).for_each(|_| peaks.push((rng.exponential() * 1e4) as i64));
        peaks
    }

    #[test]
    fn no_cycle_claims_nothing() {
        assert_eq!(claim(&Peaks::default(), 0, 0), None);
    }

    #[test]
    fn what_is_given_is_called_a_models_word_with_its_interval() {
        let claim = claim(&exponential(50_000), 2, 0).unwrap();
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
        let mut peaks = exponential(50_000);
        (0..50_000).for_each(|i| peaks.push(i % 1_000 * 100));
        let refused = claim(&peaks, 0, 0).unwrap();
        assert_eq!((refused.given, refused.bound_ns, refused.confidence), (false, None, None));
        assert!(refused.statement.contains(" test failed: "), "{}", refused.statement);
        let lost = claim(&exponential(50_000), 0, 1).unwrap();
        assert!(!lost.given && lost.statement.contains("cycles went unrecorded (1)"), "{lost:?}");
        let few = claim(&exponential(500), 0, 0).unwrap();
        assert!(few.statement.contains("500 cycles are too few"), "{}", few.statement);
    }
}
