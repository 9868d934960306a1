//! The lateness of all releases of a run, and of its wakes alone.
//!
//! Collects; nothing is left out: what is not known is counted.

use serde::{Deserialize, Serialize};

use super::StartPlacement;
use super::{Falling, ReleaseGap};
use crate::histogram::Histogram;
use crate::summary::{Distribution, SummaryStats};

/// Lateness while a run is collected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lateness {
    wakes: Distribution,
    /// Of releases in gaps, as if each had been missed.
    gaps: Distribution,
}

impl Lateness {
    /// Takes in a release that ran.
    #[inline]
    pub(crate) fn push(&mut self, lateness_ns: i64) {
        self.wakes.push(lateness_ns);
    }

    /// Takes in releases that ran, 1 to 256 of a magnitude below 2²⁷ ns; returns the largest.
    #[inline]
    pub(crate) fn extend_near(&mut self, latenesses_ns: &[i64]) -> i64 {
        self.wakes.extend_near(latenesses_ns)
    }

    /// Takes in the releases of a gap.
    pub(crate) fn miss(&mut self, gap: &ReleaseGap) {
        gap.pieces().into_iter().for_each(|piece| push_falling(&mut self.gaps, piece));
    }

    /// Of wakes alone.
    pub(crate) fn wakes(&self) -> &Distribution {
        &self.wakes
    }

    /// The run as it is known at its end; `unrecorded` cycles ran without a sample.
    pub(crate) fn finish(self, placement: &StartPlacement, unrecorded: u64) -> Releases {
        let mut missed = if placement.gaps { self.gaps } else { Distribution::default() };
        let trailing = placement.trailing.iter().flat_map(|end| end.pieces);
        trailing.for_each(|piece| push_falling(&mut missed, piece));
        let &StartPlacement { censored, censored_from_ns, .. } = placement;
        Releases { wakes: self.wakes, missed, censored, censored_from_ns, unrecorded }
    }
}

/// The lateness of the releases of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Releases {
    /// Of those that ran.
    pub(crate) wakes: Distribution,
    /// Of those that were missed, as far as it is known.
    missed: Distribution,
    /// Missed releases that were late by a period at least, and no more is known.
    pub(crate) censored: u64,
    /// That period, ns; 0 where it is not known.
    #[serde(default)]
    censored_from_ns: i64,
    /// Cycles that ran, and nobody knows how late.
    unrecorded: u64,
}

impl Releases {
    /// Takes in those of another run.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.wakes.merge(&other.wakes);
        self.missed.merge(&other.missed);
        self.censored_from_ns = match (self.censored, other.censored) {
            (0, _) => other.censored_from_ns,
            (_, 0) => self.censored_from_ns,
            _ => self.censored_from_ns.min(other.censored_from_ns),
        };
        self.censored = self.censored.saturating_add(other.censored);
        self.unrecorded = self.unrecorded.saturating_add(other.unrecorded);
    }

    /// Of those that ran and those that were missed, as far as it is known.
    pub(crate) fn known(&self) -> Distribution {
        let mut known = self.wakes.clone();
        known.merge(&self.missed);
        known
    }

    /// The nine numbers: quantiles count those that are not known as the latest, and the maximum
    /// is a lower bound where there are such.
    pub(crate) fn stats(&self) -> SummaryStats {
        self.stats_of(&self.known())
    }

    /// The numbers of [`Self::stats`], from what [`Self::known`] gave: saves merging again.
    pub(crate) fn stats_of(&self, known: &Distribution) -> SummaryStats {
        let stats = known.stats_below(self.unknown());
        let least_ns = if self.censored > 0 { self.censored_from_ns as f64 } else { f64::MIN };
        SummaryStats { max: stats.max.map(|ns| ns.max(least_ns)), ..stats }
    }

    /// How many are not known, which may have been later than all others.
    pub(crate) fn unknown(&self) -> u64 {
        self.censored.saturating_add(self.unrecorded)
    }

    /// Whether the parts can be, for what was read back.
    pub(crate) fn is_sound(&self, count_max: u64) -> bool {
        let counts = [self.censored, self.unrecorded, self.missed.histogram().count()];
        self.wakes.is_sound()
            && self.missed.is_sound()
            && self.censored_from_ns >= 0
            && counts.iter().all(|&count| count <= count_max)
    }
}

/// Takes in missed releases, as many at once as fall in one bucket.
fn push_falling(distribution: &mut Distribution, mut piece: Falling) {
    while let Some(ns) = piece.next_ns() {
        let least_ns = Histogram::lowest_with(ns);
        let taken = piece.take_from(least_ns);
        distribution.push_steps(taken.last_ns(), taken.step_ns(), taken.count());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Walk, model};
    use super::*;
    use crate::quantile::Probability;
    use proptest::prelude::*;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Span;

    /// Latenesses of a run with stalls: (releases to the next cycle, lateness).
    fn runs() -> impl Strategy<Value = Vec<(u64, i64)>> {
        let calm = (Just(1u64), -200i64..900);
        let late = (Just(1u64), 0i64..40_000);
        let body = (1u64..30, 0i64..900);
        prop::collection::vec(prop_oneof![12 => calm, 1 => late, 1 => body], 1..300)
    }

    proptest! {
        #[test]
        fn every_release_is_counted_as_the_definition_has_it(
            period in 500i64..2_000, steps in runs(), trailing in 0u64..6,
        ) {
            let (mut walk, mut lateness) = (Walk::new(period, false), Lateness::default());
            let mut cycles: Vec<(u64, i64)> = Vec::new();
            for (step, ns) in steps {
                // A late wake takes the releases that passed before it with it.
                let passed = cycles.last().map_or(0, |last| (last.1 / period).max(0) as u64);
                let cycle = cycles.last().map_or(0, |last| last.0 + step + passed);
                cycles.push((cycle, ns));
                let sample = Sample { cycle, lateness: Span::from_ns(ns), flags: Flags::NONE };
                let step = walk.step(&sample, ns);
                step.gap.iter().for_each(|gap| lateness.miss(gap));
                lateness.push(ns);
            }
            // What passed before the last wake was missed too, where the run went on that long.
            let passed = cycles.last().map_or(0, |last| (last.1 / period).max(0) as u64);
            let model = model::Series::of(period, &cycles).with_trailing(passed + trailing);
            let (known, censored) = model.known();
            let missed = model.releases().len() as u64 - cycles.len() as u64;
            let releases = lateness.finish(&walk.placement(missed, 0), 0);
            prop_assert_eq!(releases.censored, censored);
            prop_assert_eq!(censored, trailing);
            let mut model = Distribution::default();
            known.iter().for_each(|&ns| model.push(ns));
            prop_assert_eq!(releases.known(), model, "sums and every bucket");
            let stats = releases.stats();
            let latest = known.last().copied().into_iter().chain((censored > 0).then_some(period));
            prop_assert_eq!(stats.max, latest.max().map(|ns| ns as f64));
            let n = known.len() as u64 + censored;
            for p in Probability::SUMMARY {
                let rank = p.rank(n) as usize - 1;
                let expected = p.is_supported(n).then(|| known.get(rank)).flatten();
                let found = stats.quantile(p);
                prop_assert_eq!(found.is_some(), expected.is_some(), "{} of {}", p, n);
                if let (Some(found), Some(&expected)) = (found, expected) {
                    let above = found - expected as f64;
                    let bucket = (expected.abs() as f64 / 1_024.0).max(1.0);
                    prop_assert!((0.0..=bucket).contains(&above), "{p}: {found} for {expected}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_known_counts_as_the_latest() {
        let mut lateness = Lateness::default();
        (0..90).for_each(|ns| lateness.push(ns));
        let lost = StartPlacement {
            gaps: false,
            trailing: Vec::new(),
            censored: 9,
            censored_from_ns: 1_000,
        };
        let releases = lateness.clone().finish(&lost, 1);
        let wakes = releases.wakes.stats();
        let all = releases.stats();
        assert_eq!((all.p50, all.p90, all.p99), (Some(49.0), Some(89.0), None));
        assert_eq!((all.max, wakes.max), (Some(1_000.0), Some(89.0)), "a period at least");
        assert_eq!(wakes.p90, Some(80.0));
        let more = StartPlacement { censored: 10, ..lost };
        assert_eq!(lateness.finish(&more, 1).stats().p90, None, "the 91st of 101 is not known");
    }
}
