//! The learned wait held against other ways, in turns that had no part in choosing them.
//!
//! Plain data, computed from the runs of a sweep and the spins beside them.

use punctual_analysis::compare::series::LatenessSeries;
use punctual_analysis::compare::{QuantileDifference, quantile};
use punctual_analysis::quantile::Probability;
use punctual_core::wait::Spin;
use punctual_core::wait::adaptive::Target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::strategies::StrategyRow;
use crate::format;

/// A turn is quiet where the pure spin next to it had 1 in 100 later than this at most, ns; and a
/// release is late in the choice of the cheapest way where it is later than this.
const QUIET_NS: i64 = 200;

/// Why the other way was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Against {
    /// The cheapest that was late once in 1000 at most in the quiet odd turns.
    Cheapest,
    /// The fixed margin that is the default.
    DefaultMargin,
    /// The fixed margin whose CPU time is next to that of the learned wait, in noisy turns.
    SamePrice,
}

/// The learned wait and another way, in the same turns.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FrontComparison {
    /// Why this one.
    pub(crate) against: Against,
    /// The other way: "fixed 60 µs".
    pub(crate) way: String,
    /// The turns that both are compared in, after the first: the even ones where the odd ones
    /// chose.
    pub(crate) turns: u64,
    /// The 99 % quantile: A is the other way, B the learned wait.
    pub(crate) p99: QuantileDifference,
    /// CPU time of the learned wait over that of the other way, in all turns.
    pub(crate) cpu_ratio: f64,
}

impl FrontComparison {
    /// The comparison in a sentence.
    pub(crate) fn sentence(&self) -> String {
        let (reason, kind) = match self.against {
            Against::Cheapest => (", the cheapest that was late 1 in 1000 at most", "quiet"),
            Against::DefaultMargin => ("", "quiet"),
            Against::SamePrice => (", which costs as much", "noisy"),
        };
        let between = match (self.p99.lower_ns, self.p99.upper_ns) {
            (Some(lower), Some(upper)) => format!(
                " (95 % interval of the difference {} to {})",
                format::ns(Some(lower)),
                format::ns(Some(upper))
            ),
            _ => " (too few releases for an interval)".to_owned(),
        };
        format!(
            "adaptive against {}{reason}: 1 in 100 later than {}, not {}{between}, for {:.2} × \
             its CPU time, in {}",
            self.way,
            format::ns(Some(self.p99.b_ns)),
            format::ns(Some(self.p99.a_ns)),
            self.cpu_ratio,
            match self.turns {
                1 => format!("1 {kind} turn"),
                turns => format!("{turns} {kind} turns"),
            }
        )
    }
}

/// A way of a sweep: its row, its releases, and those of the spin next to it.
pub(crate) struct Swept<'a> {
    /// Its row.
    pub(crate) row: &'a StrategyRow,
    /// Its releases.
    pub(crate) series: &'a LatenessSeries,
    /// Those of the spin.
    pub(crate) spin: &'a LatenessSeries,
}

impl Swept<'_> {
    fn is_quiet(&self, turns: u64, turn: u64) -> bool {
        let of_turn = self.spin.of_turns(turns, |of| of == turn);
        of_turn.quantile_ns(0.99).is_some_and(|ns| ns <= QUIET_NS)
    }

    fn cpu(&self) -> f64 {
        self.row.cpu_load.unwrap_or(1.0)
    }

    /// Whether it is late as seldom as the aim in these turns, and was seen often enough to say so.
    fn reaches_the_aim(&self, turns: u64, chosen: impl Fn(u64) -> bool) -> bool {
        let of = self.series.of_turns(turns, chosen);
        let permitted = Target::LATE * of.releases() as f64;
        permitted >= 1.0 && of.later_than(QUIET_NS) as f64 <= permitted
    }
}

/// The comparisons of the learned wait that these turns allow; `turns` is how many each way had.
pub(crate) fn compared(ways: &[Swept<'_>], turns: u64) -> Vec<FrontComparison> {
    let Some(own) = ways.iter().find(|way| way.row.name == "adaptive") else { return Vec::new() };
    // The first turn is the one in which it learns.
    let quiet: Vec<u64> = (1..turns).filter(|&turn| own.is_quiet(turns, turn)).collect();
    let compare = |against: Against, other: &Swept<'_>| {
        let both = |turn: u64| match against {
            Against::Cheapest => turn % 2 == 1 && quiet.contains(&turn),
            Against::DefaultMargin => quiet.contains(&turn),
            Against::SamePrice => turn > 0 && !quiet.contains(&turn),
        };
        let is_noisy = against == Against::SamePrice;
        let chosen: Vec<u64> = (0..turns)
            .filter(|&turn| both(turn) && other.is_quiet(turns, turn) != is_noisy)
            .collect();
        let of = |way: &Swept<'_>| way.series.of_turns(turns, |turn| chosen.contains(&turn));
        let p99 = quantile([&of(other), &of(own)], Probability::P99)?;
        Some(FrontComparison {
            against,
            way: other.row.label(),
            turns: chosen.len() as u64,
            p99,
            cpu_ratio: own.cpu() / other.cpu(),
        })
    };
    let fixed = || ways.iter().filter(|way| way.row.name == "fixed");
    let chosen_by = |way: &&Swept<'_>| {
        // The first turn is number 0 and odd as people count.
        let odd = |turn: u64| turn.is_multiple_of(2) && way.is_quiet(turns, turn);
        !["adaptive", "spin"].contains(&&*way.row.name) && way.reaches_the_aim(turns, odd)
    };
    let cheapest =
        ways.iter().filter(chosen_by).min_by(|one, other| one.cpu().total_cmp(&other.cpu()));
    let margin = Some(Spin::FIXED.as_ns().unsigned_abs());
    let distance = |way: &Swept<'_>| (way.cpu() / own.cpu()).ln().abs();
    let same_price = fixed().min_by(|one, other| distance(one).total_cmp(&distance(other)));
    [
        cheapest.and_then(|way| compare(Against::Cheapest, way)),
        fixed()
            .find(|way| way.row.margin_ns == margin)
            .and_then(|way| compare(Against::DefaultMargin, way)),
        same_price.and_then(|way| compare(Against::SamePrice, way)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use punctual_analysis::compare::series::Builder;
    use punctual_core::sample::Sample;
    use punctual_core::time::Span;

    use super::*;

    const TURNS: u64 = 10;
    const EACH: u64 = 2_000;

    /// Ten turns of 2 000 releases, `ns(turn, release)` late.
    fn series(ns: impl Fn(u64, u64) -> i64) -> LatenessSeries {
        let mut builder = Builder::new(1_000_000, true);
        for cycle in 0..TURNS * EACH {
            let lateness = Span::from_ns(ns(cycle / EACH, cycle));
            builder.push(&Sample { cycle, lateness, ..Sample::default() });
        }
        builder.finish(0)
    }

    fn row(name: &str, margin_ns: Option<u64>, cpu: f64) -> StrategyRow {
        StrategyRow {
            name: name.to_owned(),
            releases: TURNS * EACH,
            unknown: 0,
            lateness_ns: punctual_analysis::summary::SummaryStats::default(),
            cpu_load: Some(cpu),
            missed: Some(0),
            phase_ns: None,
            hop_ns: None,
            margin_ns,
            quiet_p99_ns: None,
            on_front: false,
        }
    }

    /// The last three turns are noisy.
    fn spin() -> LatenessSeries {
        series(|turn, _| if turn < 7 { 10 } else { 5_000 })
    }

    #[test]
    fn it_is_held_against_the_cheapest_that_reaches_the_aim_in_turns_that_did_not_choose_it() {
        let rows = [
            row("sleep", None, 0.01),
            row("fixed", Some(20_000), 0.02),
            row("fixed", Some(60_000), 0.06),
            row("fixed", Some(125_000), 0.12),
            row("adaptive", Some(50_000), 0.05),
            row("spin", None, 0.9),
        ];
        let kinds = [
            series(|_, _| 20_000),
            // Punctual in the turns that judge, and late 1 in 100 in those that choose.
            series(|turn, at| if turn % 2 == 0 && at % 100 == 0 { 9_000 } else { 10 }),
            series(|_, _| 10),
            series(|_, _| 12),
            series(|turn, _| if turn == 0 { 90_000 } else { 30 }),
            spin(),
        ];
        let spin = spin();
        let swept = |(row, series)| Swept { row, series, spin: &spin };
        let ways: Vec<Swept<'_>> = rows.iter().zip(&kinds).map(swept).collect();
        let compared = compared(&ways, TURNS);
        let found: Vec<(Against, &str, u64)> =
            compared.iter().map(|of| (of.against, &*of.way, of.turns)).collect();
        assert_eq!(
            found,
            [
                (Against::Cheapest, "fixed 60 µs", 3),
                (Against::DefaultMargin, "fixed 125 µs", 6),
                (Against::SamePrice, "fixed 60 µs", 3),
            ]
        );
        let first = &compared[0];
        assert!((first.p99.difference_ns - 20.0).abs() < 1.0, "{first:?}");
        assert!((first.cpu_ratio - 0.05 / 0.06).abs() < 1e-9, "{first:?}");
        let said = first.sentence();
        assert!(said.contains("against fixed 60 µs, the cheapest") && said.contains("0.83 ×"));
        assert!(
            said.contains("1 in 100 later than 3") && said.ends_with("in 3 quiet turns"),
            "{said}"
        );
    }

    #[test]
    fn without_a_quiet_turn_or_enough_releases_nothing_is_said_of_quiet_turns() {
        let rows = [row("fixed", Some(125_000), 0.12), row("adaptive", Some(50_000), 0.05)];
        let kinds = [series(|_, _| 10), series(|_, _| 30)];
        let noisy = series(|_, _| 5_000);
        let swept = |(row, series)| Swept { row, series, spin: &noisy };
        let ways: Vec<Swept<'_>> = rows.iter().zip(&kinds).map(swept).collect();
        let found: Vec<Against> = compared(&ways, TURNS).iter().map(|of| of.against).collect();
        assert_eq!(found, [Against::SamePrice]);
        assert!(compared(&ways, 1).is_empty());
        assert!(compared(&ways[..1], TURNS).is_empty());
    }
}
