//! The spread of durations: a histogram of logarithmic buckets, in memory of fixed size; and the
//! bounds of a figure of durations that are only bounded.

/// Buckets an octave, as a power of two: 64 of them, each 1.6 % wide at most.
const FINE: u32 = 6;
/// Longer durations count as this one, ns: 18 minutes.
const LONGEST_NS: u64 = (1 << 40) - 1;

/// The bucket of a duration, with 2^`bits` of them an octave.
pub(crate) const fn bucket(duration_ns: u64, bits: u32) -> u16 {
    let capped = if duration_ns > LONGEST_NS { LONGEST_NS } else { duration_ns };
    let length = 64 - capped.leading_zeros();
    let shift = length.saturating_sub(bits + 1);
    // At most 34 octaves of 64 buckets.
    (((shift as u64) << bits) + (capped >> shift)) as u16
}

/// The longest duration of a bucket, ns.
pub(crate) const fn upper_ns(bucket: u16, bits: u32) -> u64 {
    let bucket = bucket as u64;
    let octave = bucket >> bits;
    if octave < 2 {
        return bucket;
    }
    let shift = octave - 1;
    let leading = bucket - (shift << bits);
    ((leading + 1) << shift) - 1
}

/// A histogram of durations in ns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spread {
    counts: Vec<u32>,
    total: u64,
    max_ns: u64,
}

impl Spread {
    /// Counts a duration.
    pub(crate) fn add(&mut self, duration_ns: u64) {
        let bucket = usize::from(bucket(duration_ns, FINE));
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
        self.total += 1;
        self.max_ns = self.max_ns.max(duration_ns);
    }

    /// Durations that were counted.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// The longest, ns; 0 where there is none.
    pub(crate) const fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// A duration that this share of them does not exceed, ns, at most 1.6 % too long; 0 where none
    /// was counted.
    pub(crate) fn quantile_ns(&self, share: f64) -> u64 {
        let wanted = (share.clamp(0.0, 1.0) * self.total as f64).ceil().max(1.0);
        let mut seen = 0_u64;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen as f64 >= wanted {
                return upper_ns(bucket as u16, FINE).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

/// A figure of lateness, ns, that lies between two bounds: of wakes whose begin is not recorded
/// only these are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatenessBounds {
    least_ns: u64,
    most_ns: u64,
}

impl LatenessBounds {
    /// A figure between these, ns; of bounds in the wrong order `least_ns` counts.
    #[must_use]
    pub const fn new(least_ns: u64, most_ns: u64) -> Self {
        Self { least_ns, most_ns: if most_ns < least_ns { least_ns } else { most_ns } }
    }

    /// A figure that is known, ns.
    #[must_use]
    pub const fn exact(ns: u64) -> Self {
        Self { least_ns: ns, most_ns: ns }
    }

    /// Its lower bound, ns. No measurement of it where [`Self::known_ns`] is `None`.
    #[must_use]
    pub const fn least_ns(self) -> u64 {
        self.least_ns
    }

    /// Its upper bound, ns.
    #[must_use]
    pub const fn most_ns(self) -> u64 {
        self.most_ns
    }

    /// The figure, ns, where its bounds lie as close as two buckets of a spread do; else `None`.
    #[must_use]
    pub const fn known_ns(self) -> Option<u64> {
        let is_known = self.most_ns - self.least_ns <= self.least_ns >> (FINE - 1);
        if is_known { Some(self.least_ns) } else { None }
    }

    /// The larger one of two figures.
    pub(crate) fn max(self, other: Self) -> Self {
        Self::new(self.least_ns.max(other.least_ns), self.most_ns.max(other.most_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn a_figure_is_known_where_its_bounds_meet() {
        assert_eq!(LatenessBounds::exact(7).known_ns(), Some(7));
        assert_eq!(LatenessBounds::default().known_ns(), Some(0));
        assert_eq!(LatenessBounds::new(1_000, 1_016).known_ns(), Some(1_000));
        assert_eq!(LatenessBounds::new(0, 250_000).known_ns(), None);
        assert_eq!(LatenessBounds::new(1_000, 2_000).known_ns(), None);
        assert_eq!(LatenessBounds::new(9, 3).known_ns(), Some(9));
        let larger = LatenessBounds::new(1, 90).max(LatenessBounds::exact(40));
        assert_eq!((larger.least_ns(), larger.most_ns()), (40, 90));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
        #[test]
        fn a_bucket_holds_what_is_put_into_it(value in 0u64..1 << 41, bits in 3u32..8) {
            let index = bucket(value, bits);
            let capped = value.min(LONGEST_NS);
            prop_assert!(upper_ns(index, bits) >= capped);
            prop_assert!(index == 0 || upper_ns(index - 1, bits) < capped);
            let width = upper_ns(index, bits) - capped;
            prop_assert!(width as f64 <= capped as f64 / f64::from(1 << bits));
            prop_assert_eq!(bucket(upper_ns(index, bits), bits), index);
        }

        #[test]
        fn a_quantile_is_that_of_the_sorted(
            mut values in proptest::collection::vec(0u64..10_000_000, 1..200),
            share in 0.0f64..=1.0,
        ) {
            let mut spread = Spread::default();
            values.iter().for_each(|&value| spread.add(value));
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1];
            let found = spread.quantile_ns(share);
            prop_assert!(found >= exact, "{found} {exact}");
            prop_assert!(found as f64 <= exact as f64 * 1.016 + 1.0, "{found} {exact}");
            prop_assert_eq!(spread.max_ns(), values[values.len() - 1]);
        }
    }
}
