//! The recent latenesses of sleeps: a histogram that forgets.
//!
//! For the learner. 256 bins of 12.5 %, 1 KiB; when it is full, every count is halved, so that the
//! past fades. Never allocates.

/// Bins: eight a power of two, up to 2³³ ns (8.6 s).
const BINS: usize = 256;
/// The count at which all are halved: what is known is of this many sleeps at most, and of half as
/// many at least.
const FULL: u32 = 1 << 15;

/// A decayed histogram of latenesses, ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bins {
    counts: [u32; BINS],
    n: u32,
}

impl Bins {
    pub(super) const fn new() -> Self {
        Self { counts: [0; BINS], n: 0 }
    }

    /// One more sleep came back this late.
    #[inline]
    pub(super) fn push(&mut self, ns: u64) {
        self.counts[bin(ns)] += 1;
        self.n += 1;
        if self.n >= FULL {
            self.halve();
        }
    }

    /// Makes the past count half.
    pub(super) fn halve(&mut self) {
        self.n = 0;
        for count in &mut self.counts {
            *count /= 2;
            self.n += *count;
        }
    }

    pub(super) fn n(&self) -> u32 {
        self.n
    }

    /// The time that a margin is spun on average, ns: ∫F(w)dw up to it, F the share of sleeps that
    /// came back within w. All of it while nothing is known.
    pub(super) fn spin_ns(&self, margin_ns: u64) -> f64 {
        let mut spun = 0.0;
        let mut known = 0;
        for (lowest, upper, share) in self.shares() {
            if lowest >= margin_ns {
                break;
            }
            known = upper.min(margin_ns);
            spun += share * (known - lowest) as f64;
        }
        spun + (margin_ns - known.min(margin_ns)) as f64
    }

    /// The widest margin that is spun for `spin_ns` on average, ns.
    pub(super) fn margin_ns(&self, spin_ns: f64) -> u64 {
        let mut spun = 0.0;
        let mut known = 0;
        for (lowest, upper, share) in self.shares() {
            let more = share * (upper - lowest) as f64;
            if spun + more > spin_ns {
                return lowest + ((spin_ns - spun) / share) as u64;
            }
            spun += more;
            known = upper;
        }
        known.saturating_add((spin_ns - spun).max(0.0) as u64)
    }

    /// For each bin up to the last that holds something: its ends, and the share of sleeps that
    /// came back before its middle.
    fn shares(&self) -> impl Iterator<Item = (u64, u64, f64)> + '_ {
        let used = self.counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        let mut before = 0;
        self.counts[..used].iter().enumerate().map(move |(bin, &count)| {
            let within = f64::from(before) + f64::from(count) / 2.0;
            before += count;
            (lowest(bin), lowest(bin + 1), within / f64::from(self.n.max(1)))
        })
    }

    /// A lateness that a share `p` of the sleeps is known to exceed at most, ns: the upper end of a
    /// bin, one sleep more than came back later allowed for. `None` before `1/p` sleeps.
    pub(super) fn bound_ns(&self, p: f64) -> Option<u64> {
        let allowed = (p * f64::from(self.n)) as u32;
        allowed.checked_sub(1).map(|most| self.upper_ns(most))
    }

    /// A lateness that no more than a share `p` of the sleeps exceeded, ns: the upper end of a bin.
    pub(super) fn exceeded_by_ns(&self, p: f64) -> u64 {
        self.upper_ns((p * f64::from(self.n)) as u32)
    }

    /// The share of sleeps that came back later than `ns`, as far as the bins tell.
    pub(super) fn share_above(&self, ns: u64) -> f64 {
        f64::from(self.above(ns)) / f64::from(self.n.max(1))
    }

    /// The number of sleeps that came back later than `ns`.
    pub(super) fn above(&self, ns: u64) -> u32 {
        self.counts[bin(ns) + 1..].iter().sum()
    }

    /// The upper end of the last bin that `most` sleeps at most exceeded, ns.
    fn upper_ns(&self, most: u32) -> u64 {
        let mut above = 0;
        for bin in (0..BINS).rev() {
            above += self.counts[bin];
            if above > most {
                return lowest(bin + 1) - 1;
            }
        }
        0
    }
}

#[inline]
fn bin(ns: u64) -> usize {
    // Below 8 ns a bin is 1 ns; then the three bits after the leading one.
    let high = 63 - (ns | 8).leading_zeros();
    let shift = high - 3;
    let at = ((shift << 3) as usize) + (ns >> shift) as usize;
    at.min(BINS - 2)
}

fn lowest(bin: usize) -> u64 {
    if bin < 16 {
        return bin as u64;
    }
    ((bin as u64 & 7) + 8) << ((bin >> 3) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_join_and_are_narrow() {
        for at in 0..BINS - 2 {
            assert_eq!(bin(lowest(at)), at);
            assert_eq!(bin(lowest(at + 1) - 1), at);
            assert!(at < 16 || (lowest(at + 1) - lowest(at)) * 8 <= lowest(at));
        }
        assert_eq!(bin(u64::MAX), BINS - 2);
    }

    #[test]
    fn quantiles_are_those_of_what_was_pushed() {
        let mut bins = Bins::new();
        (0..20_000).for_each(|i| bins.push(i));
        let near = |p, exact: f64| (bins.exceeded_by_ns(p) as f64 / exact - 1.0).abs() < 0.13;
        assert!(near(0.5, 10_000.0) && near(1e-2, 19_800.0) && near(1e-3, 19_980.0));
        assert!((bins.share_above(9_999) - 0.5).abs() < 0.07);
        // A wake uniform in 0 to 20 µs: a margin m in it is spun for m²/2 of 20 µs.
        assert!((bins.spin_ns(10_000) / 2_500.0 - 1.0).abs() < 0.02);
        assert!((bins.spin_ns(30_000) / 20_000.0 - 1.0).abs() < 0.02);
        assert!((bins.margin_ns(2_500.0) as f64 / 10_000.0 - 1.0).abs() < 0.02);
        assert!((bins.margin_ns(20_000.0) as f64 / 30_000.0 - 1.0).abs() < 0.02);
        assert_eq!((Bins::new().spin_ns(7), Bins::new().margin_ns(7.0)), (7.0, 7));
    }

    #[test]
    fn a_bound_waits_for_enough_sleeps_and_allows_for_one_more() {
        let mut bins = Bins::new();
        (0..999).for_each(|_| bins.push(1_000));
        assert_eq!(bins.bound_ns(1e-3), None);
        bins.push(500_000);
        assert!(bins.bound_ns(1e-3).is_some_and(|ns| ns >= 500_000));
        (0..1_000).for_each(|_| bins.push(1_000));
        assert!(bins.bound_ns(1e-3).is_some_and(|ns| ns < 1_200));
    }

    #[test]
    fn the_past_fades() {
        let mut bins = Bins::new();
        (0..FULL).for_each(|_| bins.push(100_000));
        (0..FULL * 20).for_each(|_| bins.push(1_000));
        assert!(bins.exceeded_by_ns(1e-3) < 1_200, "{}", bins.exceeded_by_ns(1e-3));
        assert!(bins.n() < FULL);
    }
}
