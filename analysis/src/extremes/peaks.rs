//! The largest values of a stream with their places, in constant memory.
//!
//! Keeps every value above a bar, and raises the bar whenever there are too many: so what is kept
//! is always *all* that was above the bar, in order of time. A sample costs one comparison, and
//! hardly any of a long stream is above the bar. Knows nothing of time but the count.

/// The peaks that a full buffer is cut down to (fewer where values are equal).
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

    /// Values that were taken in, kept or not.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// All values above the bar, in order of time.
    pub fn kept(&self) -> &[Peak] {
        &self.kept
    }
}

impl Default for Peaks {
    fn default() -> Self {
        Self { n: 0, bar_ns: i64::MIN, kept: Vec::new() }
    }
}

/// Blocks whose largest values are looked at.
pub(super) const BLOCKS: usize = 64;

/// The largest values.
///
/// Stamps and imports are whole multiples of some quantum, and equal values would mislead tests and
/// fits made for a continuous quantity. So equal values are spread evenly over the quantum about
/// them, in an order that does not depend on time. Uses no random numbers: the same run gives the
/// same result.
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    /// Cycles they are the largest of.
    pub n: u64,
    /// Values, ns, falling.
    pub values: Vec<f64>,
    /// Their places, in the order of `values`.
    places: Vec<u64>,
    /// The least distance of two different values, ns; 0 where there are no two.
    pub quantum: f64,
}

impl Ordered {
    /// Of what was kept.
    pub(super) fn new(peaks: &Peaks) -> Self {
        let mut kept = peaks.kept().to_vec();
        kept.sort_by_key(|peak| (std::cmp::Reverse(peak.value_ns), mixed(peak.index)));
        let steps = kept.windows(2).map(|two| two[0].value_ns.abs_diff(two[1].value_ns));
        let quantum = steps.filter(|&step| step > 0).min().unwrap_or(0) as f64;
        let mut values = Vec::with_capacity(kept.len());
        for equal in kept.chunk_by(|a, b| a.value_ns == b.value_ns) {
            let step = quantum / equal.len() as f64;
            let top = 0.5 * (quantum - step);
            values
                .extend((0..equal.len()).map(|i| equal[0].value_ns as f64 + top - step * i as f64));
        }
        let places = kept.iter().map(|peak| peak.index).collect();
        Self { n: peaks.n(), values, places, quantum }
    }

    /// The threshold, which is the value after the `count` largest, and their excesses over it,
    /// falling.
    pub(super) fn excesses(&self, count: usize) -> (f64, Vec<f64>) {
        let threshold = self.values[count];
        (threshold, self.values[..count].iter().map(|value| value - threshold).collect())
    }

    /// The places of the `count` largest, rising.
    pub(super) fn places_in_time(&self, count: usize) -> Vec<u64> {
        let mut places = self.places[..count].to_vec();
        places.sort_unstable();
        places
    }

    /// The `count` largest values in order of time.
    pub(super) fn values_in_time(&self, count: usize) -> Vec<f64> {
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_unstable_by_key(|&at| self.places[at]);
        order.into_iter().map(|at| self.values[at]).collect()
    }

    /// The largest value of each block of n/64 cycles; `None` when a block has none that was kept.
    pub(super) fn block_maxima(&self) -> Option<Vec<f64>> {
        let mut maxima = [None; BLOCKS];
        for (&place, &value) in self.places.iter().zip(&self.values) {
            let block = u128::from(place) * BLOCKS as u128 / u128::from(self.n);
            // Values fall, so that the first of a block is its largest.
            maxima[(block as usize).min(BLOCKS - 1)].get_or_insert(value);
        }
        maxima.into_iter().collect()
    }
}

/// The output function of splitmix64: neighbours in, unrelated numbers out.
fn mixed(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
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
            let pushed = values.iter().enumerate().map(|(i, &value_ns)| Peak {
                index: i as u64,
                value_ns,
            });
            let bar = peaks.bar_ns;
            let above: Vec<Peak> = pushed.filter(|peak| peak.value_ns > bar).collect();
            prop_assert_eq!(peaks.kept(), above.as_slice());
            prop_assert!(peaks.kept().len() < CAPACITY);
        }
    }

    #[test]
    fn ties_are_spread_over_their_quantum_and_keep_the_order() {
        let mut peaks = Peaks::default();
        [10, 20, 20, 10, 30, 20, 20].into_iter().for_each(|ns| peaks.push(ns));
        let ordered = Ordered::new(&peaks);
        assert_eq!(ordered.quantum, 10.0);
        assert_eq!(ordered.values, [30.0, 23.75, 21.25, 18.75, 16.25, 12.5, 7.5]);
        assert_eq!(ordered.places[0], 4);
        assert_eq!(ordered.places_in_time(5), [1, 2, 4, 5, 6]);
        assert_eq!(ordered.values_in_time(5)[2], 30.0);
    }

    #[test]
    fn each_block_has_its_largest_or_there_are_none() {
        let mut peaks = Peaks::default();
        (0..640).for_each(|i| peaks.push(i % 10 * 100 + i / 10));
        let ordered = Ordered::new(&peaks);
        assert_eq!(ordered.block_maxima().unwrap()[..3], [900.0, 901.0, 902.0]);
        let mut late = Peaks::default();
        (0..100_000).for_each(|i| late.push(if i > 50_000 { i } else { 0 }));
        assert_eq!(Ordered::new(&late).block_maxima(), None);
    }
}
