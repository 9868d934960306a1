//! Where in a run its exceedances lie: in how many separate clusters they came, and how evenly.
//!
//! For the accumulator. They are counted in segments of the run, at most 128 of equal length, which
//! double while the run goes on: constant memory, an addition for each run of exceedances. The
//! count over the dispersion of the segments is the number of *separate* clusters, so that many
//! clusters in one bad stretch of the run count as the one that they are.

use serde::{Deserialize, Serialize};

use crate::extremes::kuiper;

/// The most segments.
const SEGMENTS: usize = 128;
/// The fewest parts of a run that a dispersion is taken over.
const PARTS_MIN: usize = 4;
/// Kuiper's V at 10 %: who is suspected wrongly gets a weaker answer, not a wrong one.
const KUIPER: f64 = 1.620;

/// Exceedances in each segment of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Places {
    /// Binary logarithm of the releases in a segment.
    shift: u32,
    /// Exceedances by segment, up to the last that has some.
    counts: Vec<u64>,
    /// The first release after that one.
    end: u64,
}

/// How many separate clusters of exceedances a run had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Separate {
    /// So many, and they came evenly.
    Evenly(f64),
    /// So many; more of them came in one part of the run.
    Unevenly(f64),
    /// Where they were is unknown.
    Unknown,
}

impl Places {
    /// Releases from `from` to before `to` exceeded the threshold; none before them is to come.
    #[inline]
    pub(super) fn push(&mut self, from: u64, to: u64) {
        match self.counts.last_mut() {
            Some(count) if to <= self.end => *count += to - from,
            _ => self.push_on(from, to),
        }
    }

    /// The rare case of [`Self::push`]: into segments that there are not yet.
    #[cold]
    fn push_on(&mut self, mut from: u64, to: u64) {
        while (to - 1) >> self.shift >= SEGMENTS as u64 {
            self.halve();
        }
        while from < to {
            let at = from >> self.shift;
            let next = ((at + 1) << self.shift).min(to);
            self.counts.resize(self.counts.len().max(at as usize + 1), 0);
            self.counts[at as usize] += next - from;
            from = next;
        }
        self.end = (self.counts.len() as u64) << self.shift;
    }

    /// Segments of twice the length.
    fn halve(&mut self) {
        self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.shift += 1;
        self.end = (self.counts.len() as u64) << self.shift;
    }

    /// Appends those of another series, which began after `releases` of this one.
    pub(super) fn append(&mut self, releases: u64, other: &Self) {
        while self.shift < other.shift {
            self.halve();
        }
        for (at, &count) in other.counts.iter().enumerate() {
            let from = releases.saturating_add((at as u64) << other.shift);
            if count > 0 {
                self.push_on(from, from.saturating_add(count));
            }
        }
    }

    /// Exceedances.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Whether these can be counts of at most `most` releases, after reading them back.
    pub(super) fn is_sound(&self, most: u64) -> bool {
        self.shift < 64
            && self.counts.len() <= SEGMENTS
            && self.end == (self.counts.len() as u64) << self.shift
            && self.counts.iter().all(|&count| count <= most)
            && self.count() <= most
    }

    /// How many separate clusters they are, of a run of so many releases.
    pub(super) fn separate(&self, releases: u64) -> Separate {
        let count = self.count();
        if count == 0 || releases == 0 {
            return Separate::Evenly(0.0);
        }
        let separate = count as f64 / self.dispersion(releases);
        let edge = |at: usize| (((at as u64) << self.shift) as f64 / releases as f64).min(1.0);
        let parts = self.counts.iter().enumerate();
        let parts = parts.map(|(at, &count)| (edge(at), edge(at + 1), count));
        match kuiper(parts, count, separate) {
            even if even < KUIPER => Separate::Evenly(separate),
            _ => Separate::Unevenly(separate),
        }
    }

    /// The index of dispersion of the counts of segments, 1 at least: the largest of those over
    /// segments, pairs of segments, fours … down to four parts of the run.
    fn dispersion(&self, releases: u64) -> f64 {
        let total = self.count() as f64;
        let mut dispersion = 1.0f64;
        let mut joined = 1;
        loop {
            let length = (joined as u64) << self.shift;
            let parts = releases.div_ceil(length);
            if parts < PARTS_MIN as u64 {
                return dispersion;
            }
            let mut sums = self.counts.chunks(joined).map(|part| part.iter().sum::<u64>());
            let mut chi_squared = 0.0;
            for at in 0..parts {
                let within = length.min(releases - at * length);
                let expected = total * within as f64 / releases as f64;
                chi_squared += (sums.next().unwrap_or(0) as f64 - expected).powi(2) / expected;
            }
            // As few parts show their dispersion but roughly: about what Student's t adds to the
            // normal quantile at 95 %.
            let doubt = (1.0 + 1.0 / (parts - 1) as f64).powi(2);
            dispersion = dispersion.max(chi_squared / (parts - 1) as f64 * doubt);
            joined *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    fn places(at: impl IntoIterator<Item = u64>) -> Places {
        let mut places = Places::default();
        at.into_iter().for_each(|at| places.push(at, at + 1));
        places
    }

    fn clusters(places: &Places, releases: u64) -> f64 {
        match places.separate(releases) {
            Separate::Evenly(count) | Separate::Unevenly(count) => count,
            Separate::Unknown => panic!("unknown"),
        }
    }

    #[test]
    fn those_that_come_alone_are_as_many_as_they_are_and_a_stretch_is_one() {
        let mut rng = Rng::new(3);
        let alone = places((0..50_000).filter(|_| rng.uniform() < 0.01));
        let count = alone.count() as f64;
        assert!(clusters(&alone, 50_000) > 0.5 * count, "{:?}", alone.separate(50_000));
        assert!(matches!(alone.separate(50_000), Separate::Evenly(_)));
        let stretch = places((20_000..21_000).step_by(20));
        assert!(clusters(&stretch, 50_000) < 2.0, "{:?}", stretch.separate(50_000));
        // Half of the run has none.
        let half = places((0..25_000).filter(|_| rng.uniform() < 0.02));
        assert!(clusters(&half, 50_000) < 5.0, "{:?}", half.separate(50_000));
        // As many as before, and rising.
        let rising = places((0..50_000u64).filter(|&at| rng.uniform() < 0.04 * at as f64 / 5e4));
        assert!(
            matches!(rising.separate(50_000), Separate::Unevenly(_))
                || clusters(&rising, 50_000) < 25.0
        );
        assert_eq!(Places::default().separate(7), Separate::Evenly(0.0));
    }

    proptest! {
        #[test]
        fn every_exceedance_is_in_its_segment(
            runs in prop::collection::vec((1u64..3_000, 1u64..3_000), 0..60),
            split in 0usize..60,
        ) {
            let (mut at, mut exceed) = (0, Vec::new());
            for (gap, length) in runs {
                exceed.push((at + gap, at + gap + length));
                at += gap + length;
            }
            let split = split.min(exceed.len());
            let (mut all, mut first, mut second) = <(Places, Places, Places)>::default();
            exceed.iter().for_each(|&(from, to)| all.push(from, to));
            exceed[..split].iter().for_each(|&(from, to)| first.push(from, to));
            let releases = first.end;
            exceed[split..].iter().filter(|run| run.0 >= releases).for_each(|&(from, to)| {
                second.push(from - releases, to - releases);
            });
            let cycles = all.counts.iter().enumerate().map(|(at, &count)| {
                let [from, to] = [at as u64, at as u64 + 1].map(|at| at << all.shift);
                let within = exceed.iter().map(|run| run.1.min(to).saturating_sub(run.0.max(from)));
                (within.sum::<u64>(), count)
            });
            for (counted, count) in cycles {
                prop_assert_eq!(counted, count);
            }
            let parts = first.count() + second.count();
            first.append(releases, &second);
            prop_assert_eq!(first.count(), parts);
            prop_assert!(all.is_sound(at) && first.is_sound(at));
            let text = serde_json::to_string(&all).unwrap();
            prop_assert_eq!(serde_json::from_str::<Places>(&text).unwrap(), all);
        }
    }
}
