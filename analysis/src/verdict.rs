//! What a run is good for: the shortest period of a loop that it supports.
//!
//! A loop of period T is supported when the upper 95 % bound of P(lateness > T/10), adjusted for
//! dependence, is at most 10⁻³. A missed release counts with the lateness that it would have had at
//! the end of the stall, at least one recorded period (`claim::dependence`). Judged at the period
//! that was recorded; for other periods the lateness is taken to be the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::bound::{CONFIDENCE, p_upper};
use crate::claim::dependence::Tails;

/// The bound that P(lateness > period/10) must stay under.
pub const P_MAX: f64 = 1e-3;

/// The verdict on loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopVerdict {
    /// Shortest period supported, ns; null when none is.
    pub period_ns: Option<f64>,
    /// The same as a rate, Hz.
    pub rate_hz: Option<f64>,
    /// The lateness threshold: a tenth of the period, ns.
    pub threshold_ns: Option<f64>,
    /// Upper bound of P(lateness > threshold) there, of the worst run.
    pub p: Option<f64>,
    /// 0.95.
    pub confidence: f64,
    /// Cycles of the worst run later than the threshold, missed releases included, and those that
    /// went unrecorded.
    pub exceedances: Option<u64>,
    /// Releases of the worst run; of the shortest run when no period is supported.
    pub n: u64,
    /// Releases that the shortest run would need to support anything, when it is too short.
    pub n_needed: Option<u64>,
    /// The verdict in one line.
    pub statement: String,
}

/// The evidence of one run about one threshold.
struct Evidence {
    p: f64,
    exceedances: u64,
    n: u64,
    unrecorded: u64,
    /// How many of the exceedances are missed releases that no wake followed.
    censored: u64,
}

/// The periods that are judged: 1-2-5 steps from 10 µs to 10 s, ns.
pub fn periods_ns() -> impl DoubleEndedIterator<Item = i64> {
    (4..=10)
        .flat_map(|decade| [1, 2, 5].map(|step| step * 10i64.pow(decade)))
        .filter(|&ns| ns <= 10_000_000_000)
}

/// Judges all runs together: a period is supported when every one of them supports it, and every
/// longer period too.
pub fn loop_verdict(runs: &[&Tails]) -> LoopVerdict {
    let mut best = None;
    for period_ns in periods_ns().rev() {
        match worst(runs, period_ns / 10) {
            Some(evidence) if evidence.p <= P_MAX => best = Some((period_ns, evidence)),
            _ => break,
        }
    }
    match best {
        Some((period_ns, evidence)) => supported(period_ns, &evidence),
        None => unsupported(runs),
    }
}

/// The run with the largest bound; `None` without runs.
fn worst(runs: &[&Tails], threshold_ns: i64) -> Option<Evidence> {
    let evidence = |tails: &&Tails| {
        // The ladder of thresholds holds a tenth of every such period.
        let exceedances = tails.exceedances(threshold_ns).unwrap_or(tails.n());
        let p = tails.p_upper(threshold_ns).unwrap_or(1.0);
        let (n, unrecorded) = (tails.n(), tails.unrecorded());
        let surely = tails.exceedances_within(threshold_ns).0;
        let censored = if unrecorded > 0 { 0 } else { exceedances.saturating_sub(surely) };
        Evidence { p, exceedances, n, unrecorded, censored }
    };
    runs.iter().map(evidence).max_by(|a, b| a.p.total_cmp(&b.p))
}

fn supported(period_ns: i64, evidence: &Evidence) -> LoopVerdict {
    let rate_hz = 1e9 / period_ns as f64;
    let unrecorded = match (evidence.unrecorded, evidence.censored) {
        (0, 0) => String::new(),
        (0, some) => format!(", counting {some} missed with no wake after them"),
        (lost, _) => format!(", counting {lost} that went unrecorded"),
    };
    LoopVerdict {
        period_ns: Some(period_ns as f64),
        rate_hz: Some(rate_hz),
        threshold_ns: Some(period_ns as f64 / 10.0),
        p: Some(evidence.p),
        confidence: CONFIDENCE,
        exceedances: Some(evidence.exceedances),
        n: evidence.n,
        n_needed: None,
        statement: format!(
            "a loop at {}: late by more than a tenth of its period less than once in 1000 cycles \
             ({} of {} were{unrecorded}; 95 % sure)",
            shown_rate(rate_hz),
            evidence.exceedances,
            evidence.n
        ),
    }
}

fn unsupported(runs: &[&Tails]) -> LoopVerdict {
    let shortest = runs.iter().min_by_key(|tails| tails.n());
    let n = shortest.map_or(0, |tails| tails.n());
    // Too short when even the longest period, free of exceedances, could not reach the bound.
    let longest_ns = periods_ns().next_back().unwrap_or(i64::MAX) / 10;
    let theta = shortest.map_or(1.0, |tails| tails.theta_at(longest_ns));
    let is_short = p_upper(0, n, theta) > P_MAX;
    let n_needed = is_short.then(|| cycles_needed(theta));
    let lost: u64 = runs.iter().map(|tails| tails.unrecorded()).sum();
    let statement = match n_needed {
        Some(_) if lost > 0 => {
            format!(
                "no verdict on loops: {lost} cycles went unrecorded, and the others do not \
                    show any period"
            )
        }
        Some(needed) => {
            format!(
                "no verdict on loops: this run is too short, it needs at least {needed} cycles \
                and has {n}"
            )
        }
        None => {
            "no loop is supported: at every period up to 10 s, more than one release in 1000 may \
            be missed or \
                 late by more than a tenth of the period"
                .to_owned()
        }
    };
    LoopVerdict {
        period_ns: None,
        rate_hz: None,
        threshold_ns: None,
        p: None,
        confidence: CONFIDENCE,
        exceedances: None,
        n,
        n_needed,
        statement,
    }
}

/// Cycles without an exceedance that reach [`P_MAX`] at an extremal index.
fn cycles_needed(theta: f64) -> u64 {
    (-(1.0 - CONFIDENCE).ln() / (P_MAX * theta)).ceil() as u64
}

fn shown_rate(hz: f64) -> String {
    if hz >= 1e3 { format!("{} kHz", hz / 1e3) } else { format!("{hz} Hz") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::dependence::Exceedances;

    fn tails(latenesses: impl Iterator<Item = i64>, missed: u64) -> Tails {
        let mut exceedances = Exceedances::new(0, &[]);
        latenesses.for_each(|ns| exceedances.push(ns, 0, 0));
        exceedances.finish(missed)
    }

    /// `late` of n cycles, spread out irregularly, are at `late_ns`, the others at 5 µs.
    fn with_late(n: u64, late: u64, late_ns: i64) -> Tails {
        let mut state = 7u64;
        tails(
            (0..n).map(move |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if (state >> 33) % n < late { late_ns } else { 5_000 }
            }),
            0,
        )
    }

    #[test]
    fn the_periods_are_1_2_5_from_10_us_to_10_s() {
        let periods: Vec<i64> = periods_ns().collect();
        assert_eq!((periods[0], periods[1], periods[2]), (10_000, 20_000, 50_000));
        assert_eq!((periods.len(), periods[18]), (19, 10_000_000_000));
    }

    #[test]
    fn the_shortest_supported_period_is_found() {
        let verdict = loop_verdict(&[&tails((0..100_000).map(|_| 8_000), 0)]);
        assert_eq!((verdict.period_ns, verdict.rate_hz), (Some(100_000.0), Some(10_000.0)));
        assert_eq!((verdict.exceedances, verdict.n), (Some(0), 100_000));
        // Exactly on the threshold is not above it.
        let edge = loop_verdict(&[&tails((0..100_000).map(|_| 10_000), 0)]);
        assert_eq!(edge.period_ns, Some(100_000.0));
        // One in 300 at 150 µs: 1 ms is out, 2 ms is fine.
        let late = loop_verdict(&[&with_late(100_000, 333, 150_000)]);
        assert_eq!(late.period_ns, Some(2_000_000.0), "{late:?}");
    }

    #[test]
    fn the_worst_run_decides() {
        let (good, bad) = (with_late(100_000, 0, 0), with_late(100_000, 500, 400_000));
        assert_eq!(loop_verdict(&[&good]).period_ns, Some(50_000.0));
        assert_eq!(loop_verdict(&[&good, &bad]).period_ns, loop_verdict(&[&bad]).period_ns);
    }

    #[test]
    fn a_short_run_says_how_long_it_must_be() {
        let verdict = loop_verdict(&[&tails((0..2_900).map(|_| 5_000), 0)]);
        assert_eq!((verdict.period_ns, verdict.n_needed), (None, Some(2_996)));
        assert!(verdict.statement.contains("too short"), "{}", verdict.statement);
        assert!(loop_verdict(&[&tails((0..2_996).map(|_| 5_000), 0)]).period_ns.is_some());
        assert_eq!(loop_verdict(&[]).period_ns, None);
    }

    #[test]
    fn cycles_that_went_unrecorded_count_against_every_period() {
        let tails = |lost| {
            let mut exceedances = Exceedances::new(0, &[]);
            (0..100_000).for_each(|_| exceedances.push(5_000, 0, 0));
            exceedances.finish_with(0, lost)
        };
        let many = loop_verdict(&[&tails(500)]);
        assert_eq!(many.period_ns, None);
        assert!(many.statement.contains("500 cycles went unrecorded"), "{}", many.statement);
        let few = loop_verdict(&[&tails(1)]);
        assert_eq!((few.exceedances, few.n), (Some(1), 100_001));
        assert!(few.statement.contains("counting 1 that went unrecorded"), "{}", few.statement);
    }

    #[test]
    fn missed_releases_that_no_cycle_followed_count_against_every_period() {
        let verdict = loop_verdict(&[&tails((0..100_000).map(|_| 5_000), 500)]);
        assert_eq!((verdict.period_ns, verdict.n_needed), (None, None));
        assert!(verdict.statement.contains("no loop"));
        let few = loop_verdict(&[&tails((0..100_000).map(|_| 5_000), 5)]);
        assert_eq!((few.period_ns, few.exceedances), (Some(50_000.0), Some(5)));
        let none_after = "(5 of 100005 were, counting 5 missed with no wake after them; 95 % sure)";
        let mut exceedances = Exceedances::new(1_000, &[]);
        (0..100_000).for_each(|_| exceedances.push(5_000, 0, 0));
        let censored = loop_verdict(&[&exceedances.finish(5)]);
        assert!(censored.statement.contains(none_after), "{}", censored.statement);
    }
}
