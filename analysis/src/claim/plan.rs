//! The cycles and the time that a claim needs, before anything is measured.
//!
//! The inverse of the bounds that judge it. Arithmetic only. Predicts nothing: the claim holds only
//! if the run shows no more exceedances than planned.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ask::Ask;
use super::bound::{events_upper, independent_share, p_upper_at};

/// The numbers of exceedances that a plan covers.
pub const EXCEEDANCES: [u64; 4] = [0, 1, 3, 10];

/// The cycles and the time that a claim needs where so many exceedances are seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Need {
    /// Exceedances seen.
    pub exceedances: u64,
    /// Cycles that it takes then.
    pub n: u64,
    /// The time of that many cycles, ns.
    pub duration_ns: f64,
}

/// The needs of a claim, and the cycles that one run will have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Planned {
    /// The claim: "p(lateness>50us)<1e-6".
    pub statement: String,
    /// The probability to stay under.
    pub p: f64,
    /// The confidence, in [0.5, 1).
    pub confidence: f64,
    /// The extremal index that the plan uses, in (0, 1]; 1: independent cycles.
    pub theta: f64,
    /// The run's period, ns.
    pub period_ns: u64,
    /// Cycles that the run is to have.
    pub n: u64,
    /// The needs with 0, 1, 3 and 10 exceedances.
    pub needs: Vec<Need>,
    /// True where the run is long enough to show it, as long as nothing exceeds it.
    pub enough: bool,
}

impl Planned {
    /// The plan of a claim for a run of `n` cycles, `period_ns` apart, with the extremal index
    /// `theta` in (0, 1].
    pub fn of(ask: &Ask, theta: f64, period_ns: u64, n: u64) -> Self {
        let need = |exceedances| {
            let n = cycles_needed(ask, exceedances, theta);
            Need { exceedances, n, duration_ns: n as f64 * period_ns as f64 }
        };
        let needs: Vec<Need> = EXCEEDANCES.into_iter().map(need).collect();
        Self {
            statement: ask.to_string(),
            p: ask.p(),
            confidence: ask.confidence(),
            theta,
            period_ns,
            n,
            enough: needs[0].n <= n,
            needs,
        }
    }
}

/// The fewest cycles that show a claim when `exceedances` of them exceed it: −ln(1 − confidence)/p
/// over θ for none. Saturates.
pub fn cycles_needed(ask: &Ask, exceedances: u64, theta: f64) -> u64 {
    let theta = theta.clamp(f64::MIN_POSITIVE, 1.0);
    let none = events_upper(0.0, ask.confidence()) / theta;
    let share = independent_share(theta);
    let some = match exceedances {
        0 => 0.0,
        seen => events_upper(seen as f64 * share, ask.confidence()) / share,
    };
    // The bound must lie below p, so the next whole number; `as` saturates.
    ((none.max(some) / ask.p()).floor() as u64).saturating_add(1)
}

/// The cycles that would show a claim if exceedances went on at the share seen so far, in (0, p);
/// `None` when they would not, for at that share or above it more cycles show it false.
/// To about a hundredth, rounded up.
pub fn cycles_needed_at(ask: &Ask, seen: u64, n: u64, theta: f64) -> Option<u64> {
    if seen == 0 {
        return Some(cycles_needed(ask, 0, theta));
    }
    let share = seen as f64 / n.max(1) as f64;
    if share >= ask.p() {
        return None;
    }
    let shows = |cycles: f64| p_upper_at(share * cycles, cycles, theta, ask.confidence()) < ask.p();
    let mut high = 1.0 / ask.p();
    while !shows(high) {
        high *= 2.0;
        // A share just under p would take longer than any run.
        if high > CYCLES_MAX {
            return None;
        }
    }
    let mut low = 0.5 * high;
    while high / low > 1.01 {
        let middle = (low * high).sqrt();
        if shows(middle) { high = middle } else { low = middle }
    }
    Some(high.ceil() as u64)
}

const CYCLES_MAX: f64 = 1e18;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ask(text: &str) -> Ask {
        Ask::parse(text).unwrap()
    }

    #[test]
    fn the_rule_of_three_and_what_exceedances_cost() {
        let planned = Planned::of(&ask("p(lateness>50us)<1e-6"), 1.0, 1_000_000, 60_000);
        let cycles: Vec<u64> = planned.needs.iter().map(|need| need.n).collect();
        assert_eq!(cycles[0], 2_995_733);
        assert!((4_743_000..4_745_000).contains(&cycles[1]), "{cycles:?}");
        assert!((16_950_000..16_970_000).contains(&cycles[3]), "{cycles:?}");
        // 50 min at 1 ms.
        assert!((planned.needs[0].duration_ns / 60e9 - 49.93).abs() < 0.01);
        assert!(!planned.enough && Planned::of(&ask("p(missed)<0.1"), 1.0, 1, 30).enough);
        let sure = cycles_needed(&ask("p(missed)<1e-6 @99.9%"), 0, 1.0);
        assert!((6_907_000..6_908_000).contains(&sure), "{sure}");
        assert_eq!(cycles_needed(&ask("p(missed)<1e-6"), 0, 0.5), 5_991_465);
        assert_eq!(cycles_needed(&ask("p(missed)<1e-15"), u64::MAX, 1e-9), u64::MAX);
    }

    #[test]
    fn a_share_that_goes_on_is_waited_for_only_where_waiting_helps() {
        let claim = ask("p(missed)<1e-3");
        assert_eq!(cycles_needed_at(&claim, 0, 10, 1.0), Some(cycles_needed(&claim, 0, 1.0)));
        // One in 2000 so far: about 11 000 cycles would show it.
        let needed = cycles_needed_at(&claim, 1, 2_000, 1.0).unwrap();
        assert!((9_000..14_000).contains(&needed), "{needed}");
        assert!(cycles_needed_at(&claim, 1, 2_000, 0.2).unwrap() > 3 * needed);
        assert_eq!(cycles_needed_at(&claim, 1, 1_000, 1.0), None);
        assert_eq!(cycles_needed_at(&claim, 5, 1_000, 1.0), None);
    }

    proptest! {
        #[test]
        fn as_many_as_needed_show_it_and_one_less_does_not(
            exponent in 0.1f64..9.0, theta in 0.01f64..1.0, seen in 0u64..50,
        ) {
            let claim = ask(&format!("p(missed)<{:e}", 10f64.powf(-exponent)));
            let needed = cycles_needed(&claim, seen, theta);
            let bound = |n: u64| p_upper_at(seen as f64, n as f64, theta, claim.confidence());
            prop_assert!(bound(needed) < claim.p() * (1.0 + 1e-9));
            prop_assert!(bound(needed - 1) >= claim.p() * (1.0 - 1e-9));
        }
    }
}
