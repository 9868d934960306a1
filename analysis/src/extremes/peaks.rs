//! The largest values of a stream with their places, in constant memory.
//!
//! Keeps every value above a bar, and raises the bar whenever there are too many: so what is kept
//! is always *all* that was above the bar, in order of time. A sample costs one comparison, and
//! hardly any of a long stream is above the bar. Knows nothing of time but the count.

/// What is kept is cut down to this many (fewer where values are equal).
pub const KEPT: usize = 4_096;
/// And cut down when it reaches this many. The memory: up to 128 KiB, as it is needed.
const CAPACITY: usize = 2 * KEPT;

/// One value with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Which value of the stream, from 0.
    pub index: u64,
    /// The value, ns.
    pub value_ns: i64,
}

/// The accumulator.
#[derive(Clone, Debug)]
pub struct Peaks {
    n: u64,
    /// All values above this were kept.
    bar_ns: i64,
    kept: Vec<Peak>,
}

impl Default for Peaks {
    fn default() -> Self {
        Self { n: 0, bar_ns: i64::MIN, kept: Vec::new() }
    }
}

impl Peaks {
    /// Takes in the next value.
    #[inline]
    pub fn push(&mut self, value_ns: i64) {
        let index = self.n;
        self.n += 1;
        // The least value of all is above no bar; losing it changes nothing at the top.
        if value_ns > self.bar_ns {
            self.keep(Peak { index, value_ns });
        }
    }

    /// Takes in the next values, of which `largest_ns` is the largest.
    #[inline]
    pub(crate) fn extend(&mut self, values_ns: &[i64], largest_ns: i64) {
        if largest_ns > self.bar_ns {
            values_ns.iter().for_each(|&ns| self.push(ns));
        } else {
            self.n += values_ns.len() as u64;
        }
    }

    #[cold]
    fn keep(&mut self, peak: Peak) {
        self.kept.push(peak);
        if self.kept.len() == CAPACITY {
            let mut values: Vec<i64> = self.kept.iter().map(|peak| peak.value_ns).collect();
            let (_, bar, _) = values.select_nth_unstable(CAPACITY - KEPT - 1);
            let bar = *bar;
            self.bar_ns = bar;
            self.kept.retain(|peak| peak.value_ns > bar);
        }
    }

    /// How many values there were.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// All values above the bar, in order of time.
    pub fn kept(&self) -> &[Peak] {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_values_take_no_memory() {
        let mut peaks = Peaks::default();
        (0..100_000).for_each(|_| peaks.push(7));
        assert_eq!((peaks.n(), peaks.kept().len()), (100_000, 0));
        peaks.push(8);
        assert_eq!(peaks.kept(), [Peak { index: 100_000, value_ns: 8 }]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn what_is_kept_is_all_above_the_bar(seed in any::<u64>(), range in 1u64..100_000) {
            let mut rng = crate::rng::Rng::new(seed);
            let mut peaks = Peaks::default();
            let values: Vec<i64> = (0..30_000).map(|_| (rng.bits() % range) as i64).collect();
            values.iter().for_each(|&ns| peaks.push(ns));
            let all = values.iter().enumerate().map(|(i, &value_ns)| Peak {
                index: i as u64,
                value_ns,
            });
            let bar = peaks.bar_ns;
            let above: Vec<Peak> = all.filter(|peak| peak.value_ns > bar).collect();
            prop_assert_eq!(peaks.kept(), above.as_slice());
            prop_assert!(peaks.kept().len() < CAPACITY);
        }
    }
}
