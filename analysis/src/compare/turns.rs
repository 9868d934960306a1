//! The part of a run that lies in some of its turns, and one quantile of two runs.
//!
//! For runs that took turns and are compared in turns that did not choose what is compared. Only
//! counts; judges nothing.

use super::bootstrap::quantiles;
use super::dispersion::Part;
use super::holm::holm;
use super::outcome::QuantileDifference;
use super::quantile_difference;
use super::series::{LatenessSeries, above, cell_of, count};
use crate::claim::bound::CONFIDENCE;
use crate::quantile::Probability;

impl LatenessSeries {
    /// What lies in the turns that `keep` is true of, of `turns` that are equally long, from 0. A
    /// chunk of which a part lies in another turn is left out.
    #[must_use]
    pub fn of_turns(&self, turns: u64, keep: impl Fn(u64) -> bool) -> Self {
        let releases = u128::from(self.releases().max(1));
        let turn = |release: u64| (u128::from(release) * u128::from(turns) / releases) as u64;
        let mut first = 0;
        let lies_within: Vec<bool> = self
            .chunks
            .iter()
            .map(|cells| {
                let after = first + count(cells);
                let last = turn(after.max(first + 1) - 1);
                let kept = (turn(first)..=last).all(&keep);
                first = after;
                kept
            })
            .collect();
        let kept = |chunks: &[super::series::Cells]| {
            let all = chunks.iter().zip(&lies_within);
            all.filter(|(_, kept)| **kept).map(|(cells, _)| cells.clone()).collect()
        };
        let missed_chunks: Vec<_> = kept(&self.missed_chunks);
        Self {
            chunks: kept(&self.chunks),
            missed: missed_chunks.iter().map(|cells| count(cells)).sum(),
            missed_chunks,
            max_ns: None,
            wakes_max_ns: None,
            ..*self
        }
    }

    /// Releases later than `ns`, at the end of the bucket that holds it.
    pub fn later_than(&self, ns: i64) -> u64 {
        let cell = cell_of(ns);
        self.chunks.iter().map(|cells| above(cells, cell)).sum()
    }
}

/// How a quantile of B differs from that of A, as one test; `None` where a side has too few
/// releases to show it.
pub fn quantile(sides: [&LatenessSeries; 2], p: Probability) -> Option<QuantileDifference> {
    let ordered = sides.iter().all(|series| series.ordered);
    let [a, b] = sides.map(|series| [Part { result: 0, series }]);
    let found = quantiles([&a, &b], [None; 2], ordered);
    let of = found.iter().find(|of| of.p == p)?;
    let alpha = 1.0 - CONFIDENCE;
    let test = of.is_tested().then(|| holm(&[of.p_value()], alpha));
    Some(quantile_difference(of, test.and_then(|tested| tested.first().copied()), alpha))
}

#[cfg(test)]
mod tests {
    use punctual_core::sample::Sample;
    use punctual_core::time::Span;

    use super::*;
    use crate::compare::series::Builder;

    /// Ten turns of 1 000 releases: in every other one each is 1 µs late, else 10 µs.
    fn alternating() -> LatenessSeries {
        let mut builder = Builder::new(1_000_000, true);
        for cycle in 0..10_000 {
            let late = if cycle / 1_000 % 2 == 0 { 1 } else { 10 };
            builder.push(&Sample { cycle, lateness: Span::from_us(late), ..Sample::default() });
        }
        builder.finish(0)
    }

    #[test]
    fn a_turn_holds_its_own_releases_only() {
        let all = alternating();
        let even = all.of_turns(10, |turn| turn % 2 == 0);
        assert_eq!((even.later_than(2_000), all.later_than(2_000)), (0, 5_000));
        // Chunks of 128: at each of ten borders one is left out.
        assert!((3_700..=5_000).contains(&even.releases()), "{}", even.releases());
        let odd = all.of_turns(10, |turn| turn % 2 == 1);
        assert_eq!(odd.later_than(2_000), odd.releases());
        assert_eq!(all.of_turns(10, |_| false).releases(), 0);
        assert_eq!(all.of_turns(10, |_| true).releases(), 10_000);
        assert_eq!(LatenessSeries::default().of_turns(3, |_| true).releases(), 0);
    }

    #[test]
    fn a_missed_release_stays_in_its_turn() {
        let mut builder = Builder::new(1_000_000, true);
        for cycle in (0..2_000).filter(|cycle| *cycle != 1_500) {
            builder.push(&Sample { cycle, lateness: Span::from_us(1), ..Sample::default() });
        }
        let all = builder.finish(1);
        let turns = [0, 1].map(|turn| all.of_turns(2, |of| of == turn).missed);
        assert_eq!(turns, [0, 1]);
    }

    #[test]
    fn a_quantile_is_compared_as_one_test() {
        let all = alternating();
        let [even, odd] = [0, 1].map(|rest| all.of_turns(10, |turn| turn % 2 == rest));
        let p99 = quantile([&even, &odd], Probability::P99).expect("3 700 releases and more");
        assert!((8_000.0..10_000.0).contains(&p99.difference_ns), "{p99:?}");
        assert!(p99.lower_ns.is_some_and(|ns| ns > 8_000.0), "{p99:?}");
        let same = quantile([&even, &even], Probability::P99).expect("enough");
        assert!(same.lower_ns.is_some_and(|ns| ns <= 0.0) && same.upper_ns >= Some(0.0));
        let few = all.of_turns(100, |turn| turn == 0);
        assert_eq!(quantile([&few, &even], Probability::P99), None);
    }
}
