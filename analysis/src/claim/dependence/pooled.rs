//! The exceedances of several recordings of one loop, added up.
//!
//! For campaigns, which cannot keep one accumulator for weeks and over reboots. Each recording is a
//! series of its own: the distance between two of them is not defined. Counts only, constant
//! memory; reads nothing.

use serde::{Deserialize, Serialize};

use super::tails::Tails;
use super::watch::Counts;

/// The counts of [`super::Exceedances::counted`], of one recording or of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pooled {
    /// In rising order of threshold.
    pub(super) counts: Vec<Counts>,
    /// Releases seen, missed ones that lie between recorded ones included.
    pub(super) releases: u64,
    pub(super) recorded: u64,
    /// The most releases without a sample between two recorded cycles; 0 where that was not
    /// recorded.
    #[serde(default)]
    pub(super) gap_longest: u64,
    pub(super) missed: u64,
    /// Missed releases that were at least this late, ns; no more is known of them.
    pub(super) unplaced: u64,
    #[serde(default)]
    pub(super) unplaced_from_ns: i64,
}

/// More thresholds than any recording watches.
const THRESHOLDS_MAX: usize = 512;
/// More cycles than any recording has: so many that sums of a few of them cannot overflow.
const COUNT_MAX: u64 = 1 << 56;

impl Pooled {
    /// Adds another recording's, which watched the thresholds of this one
    /// ([`super::Exceedances::like`]); a threshold that only one of both watched is dropped, as its
    /// count would be that of a part.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.is_empty() {
            *self = other.clone();
            return;
        }
        if other.counts.is_empty() {
            return;
        }
        let releases = self.releases;
        self.counts.retain_mut(|mine| {
            let at = other.counts.binary_search_by_key(&mine.threshold_ns, |c| c.threshold_ns);
            at.is_ok_and(|at| {
                mine.add(releases, &other.counts[at]);
                true
            })
        });
        self.releases += other.releases;
        self.recorded += other.recorded;
        self.gap_longest = self.gap_longest.max(other.gap_longest);
        self.missed += other.missed;
        self.unplaced_from_ns = match (self.unplaced, other.unplaced) {
            (0, _) => other.unplaced_from_ns,
            (_, 0) => self.unplaced_from_ns,
            _ => self.unplaced_from_ns.min(other.unplaced_from_ns),
        };
        self.unplaced += other.unplaced;
    }

    /// What bounds are made from, where `unrecorded` more cycles ran.
    pub fn tails(&self, unrecorded: u64) -> Tails {
        let gaps = self.releases.saturating_sub(self.recorded);
        let longest = if self.gap_longest == 0 { gaps } else { self.gap_longest };
        // Releases that are in no gap came before the first cycle or after the last one of a
        // recording.
        let hidden = self.missed.saturating_add(unrecorded).saturating_sub(gaps);
        Tails {
            tails: self.counts.iter().map(|counts| counts.finish(self.releases)).collect(),
            recorded: self.recorded,
            missed: self.missed,
            unplaced: self.unplaced,
            unplaced_from_ns: self.unplaced_from_ns,
            unrecorded,
            lost_together: longest.max(hidden),
            unordered: false,
        }
    }

    /// Recorded cycles.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Checks counts that were read back: in order, and small enough to add up.
    pub fn is_sound(&self) -> bool {
        let small = |count: u64| count <= COUNT_MAX;
        self.counts.len() <= THRESHOLDS_MAX
            && self.counts.is_sorted_by(|a, b| a.threshold_ns < b.threshold_ns)
            && [self.releases, self.recorded, self.missed, self.unplaced].into_iter().all(small)
            && small(self.gap_longest)
            && self.counts.iter().all(|c| c.is_sound(COUNT_MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Exceedances;
    use super::*;

    fn counted(exceedances: Exceedances, latenesses: &[i64]) -> Pooled {
        let mut exceedances = exceedances;
        latenesses.iter().for_each(|&ns| exceedances.push(ns, 0, 0));
        exceedances.counted(0)
    }

    proptest! {
        #[test]
        fn counts_of_parts_add_up_to_those_of_the_whole(
            a in prop::collection::vec(0i64..2_000_000, 1..5_000),
            b in prop::collection::vec(0i64..2_000_000, 1..500),
        ) {
            let mut pooled = counted(Exceedances::new(0, &[777]), &a);
            let like = Exceedances::like(0, &pooled);
            pooled.merge(&counted(like, &b));
            let tails = pooled.tails(0);
            prop_assert_eq!(tails.n(), (a.len() + b.len()) as u64);
            for tail in tails.tails() {
                let above = |v: &[i64]| v.iter().filter(|&&ns| ns > tail.threshold_ns).count();
                prop_assert_eq!(tail.exceedances, (above(&a) + above(&b)) as u64);
                prop_assert!((0.0..=1.0).contains(&tails.theta_at(tail.threshold_ns)));
            }
            prop_assert!(tails.exceedances(777).is_some() && pooled.is_sound());
            let text = serde_json::to_string(&pooled).unwrap();
            prop_assert_eq!(serde_json::from_str::<Pooled>(&text).unwrap(), pooled);
        }
    }

    #[test]
    fn clusters_in_many_short_series_are_seen_as_in_a_long_one() {
        let bursts: Vec<i64> =
            (0..20_000).map(|i| if (i * i) % 997 < 40 { 90_000 } else { 5_000 }).collect();
        let bursts: Vec<i64> = bursts.into_iter().flat_map(|ns| [ns; 5]).collect();
        let whole = counted(Exceedances::new(0, &[]), &bursts);
        let mut pooled = Pooled::default();
        for part in bursts.chunks(10_000) {
            let next = if pooled == Pooled::default() {
                Exceedances::new(0, &[])
            } else {
                Exceedances::like(0, &pooled)
            };
            pooled.merge(&counted(next, part));
        }
        let (one, many) = (whole.tails(0).theta_at(50_000), pooled.tails(0).theta_at(50_000));
        assert!(one < 0.3 && (one - many).abs() < 0.03, "{one} {many}");
    }

    #[test]
    fn a_single_recording_pooled_is_that_recording() {
        let values: Vec<i64> = (0..6_000).map(|i| (i * 7_919) % 300_000).collect();
        let mut exceedances = Exceedances::new(1_000_000, &[]);
        values.iter().for_each(|&ns| exceedances.push(ns, u64::from(ns % 97 == 0), 5_000));
        let tails = exceedances.clone().finish(70);
        assert_eq!(exceedances.counted(70).tails(0), tails);
    }
}
