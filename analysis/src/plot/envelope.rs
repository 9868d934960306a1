//! The smallest, largest and mean lateness of neighbouring cycles: a time series in few points.
//!
//! One pass, constant memory, for any number of cycles and any gaps between them: when there are
//! too many bins, neighbours are merged and each is twice as wide. No value is lost: the extremes
//! of the whole are the extremes of its bins.

/// Neighbouring cycles as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeBin {
    /// The first cycle that would fall in it; the last one is `width − 1` later.
    pub first: u64,
    /// Cycles in it, at least 1.
    pub n: u64,
    /// Smallest lateness, ns.
    pub min_ns: i64,
    /// Largest lateness, ns.
    pub max_ns: i64,
    /// Sum of the latenesses, ns.
    sum_ns: i128,
    /// Releases without a sample right before cycles of this bin: missed, or unrecorded where the
    /// run counts such.
    pub missed: u64,
}

impl EnvelopeBin {
    /// Mean lateness, ns.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.n as f64
    }

    fn of(first: u64, lateness_ns: i64, missed: u64) -> Self {
        let sum_ns = i128::from(lateness_ns);
        Self { first, n: 1, min_ns: lateness_ns, max_ns: lateness_ns, sum_ns, missed }
    }

    fn take(&mut self, other: &Self) {
        self.n += other.n;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
        self.missed = self.missed.saturating_add(other.missed);
    }
}

/// A time series in at most so many bins, all of one width, in rising order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    most: usize,
    shift: u32,
    bins: Vec<EnvelopeBin>,
}

impl Envelope {
    /// An empty one of at most `most` (at least 2) bins.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(2), shift: 0, bins: Vec::new() }
    }

    /// Takes in a cycle; cycles must not decrease (a lower one counts with the last).
    #[inline]
    pub fn push(&mut self, cycle: u64, lateness_ns: i64, missed: u64) {
        let first = cycle >> self.shift << self.shift;
        let one = EnvelopeBin::of(first, lateness_ns, missed);
        match self.bins.last_mut() {
            Some(last) if first <= last.first => last.take(&one),
            _ => self.append(one),
        }
    }

    fn append(&mut self, bin: EnvelopeBin) {
        self.bins.push(bin);
        while self.bins.len() > self.most {
            self.widen();
        }
    }

    /// Twice the width.
    fn widen(&mut self) {
        self.shift += 1;
        let shift = self.shift;
        for bin in &mut self.bins {
            bin.first = bin.first >> shift << shift;
        }
        self.bins.dedup_by(|next, kept| {
            let same = next.first == kept.first;
            if same {
                kept.take(next);
            }
            same
        });
    }

    /// This envelope in at most `most` (at least 2) bins.
    #[must_use]
    pub fn thinned(&self, most: usize) -> Self {
        let mut thinner = self.clone();
        thinner.most = most.max(2);
        while thinner.bins.len() > thinner.most {
            thinner.widen();
        }
        thinner
    }

    /// Cycles that a bin spans: a power of two.
    pub fn width(&self) -> u64 {
        1 << self.shift
    }

    /// The bins that hold something.
    pub fn bins(&self) -> &[EnvelopeBin] {
        &self.bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_cycles_stay_as_they_are() {
        let mut envelope = Envelope::new(4);
        for (cycle, lateness) in [(3, 7), (9, -2), (10, 5)] {
            envelope.push(cycle, lateness, 0);
        }
        assert_eq!(envelope.width(), 1);
        let firsts: Vec<_> = envelope.bins().iter().map(|s| (s.first, s.max_ns)).collect();
        assert_eq!(firsts, [(3, 7), (9, -2), (10, 5)]);
    }

    #[test]
    fn the_largest_cycles_and_values_fit() {
        let mut envelope = Envelope::new(2);
        for cycle in [0, 1, 2, u64::MAX >> 8] {
            envelope.push(cycle, i64::MAX, u64::MAX);
            envelope.push(cycle, i64::MIN, u64::MAX);
        }
        assert!(envelope.bins().len() <= 2);
        assert_eq!(envelope.bins().iter().map(|s| s.n).sum::<u64>(), 8);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_the_size_is_kept(
            steps in prop::collection::vec((1u64..5_000, -50i64..1_000, 0u64..3), 1..600),
            most in 2usize..64,
        ) {
            let mut envelope = Envelope::new(most);
            let mut cycle = 0;
            let mut all = Vec::new();
            for &(step, lateness, missed) in &steps {
                cycle += step;
                envelope.push(cycle, lateness, missed);
                all.push((cycle, lateness));
            }
            let bins = envelope.bins();
            prop_assert!(bins.len() <= most);
            prop_assert!(bins.windows(2).all(|pair| pair[0].first < pair[1].first));
            for bin in bins {
                let end = bin.first + envelope.width();
                let inside: Vec<i64> = all
                    .iter()
                    .filter(|(cycle, _)| (bin.first..end).contains(cycle))
                    .map(|&(_, lateness)| lateness)
                    .collect();
                prop_assert_eq!(bin.n, inside.len() as u64);
                prop_assert_eq!(Some(&bin.min_ns), inside.iter().min());
                prop_assert_eq!(Some(&bin.max_ns), inside.iter().max());
                let mean = inside.iter().sum::<i64>() as f64 / inside.len() as f64;
                prop_assert!((bin.mean_ns() - mean).abs() < 1e-6);
            }
            let counted: u64 = bins.iter().map(|s| s.n).sum();
            prop_assert_eq!(counted, steps.len() as u64);
            let missed: u64 = bins.iter().map(|s| s.missed).sum();
            prop_assert_eq!(missed, steps.iter().map(|s| s.2).sum::<u64>());
        }
    }
}
