//! Which order statistic is used for a quantile, and whether n samples support it.
//!
//! For the histogram, the summary, the claims and the limits. Arithmetic only; holds no data.

/// A probability p in (0, 1), held in parts per 10⁹ so that ranks are exact integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability {
    ppb: u32,
}

const WHOLE: u64 = 1_000_000_000;

impl Probability {
    /// p = 0.5.
    pub const P50: Self = Self { ppb: 500_000_000 };
    /// p = 0.9.
    pub const P90: Self = Self { ppb: 900_000_000 };
    /// p = 0.95.
    pub const P95: Self = Self { ppb: 950_000_000 };
    /// p = 0.99.
    pub const P99: Self = Self { ppb: 990_000_000 };
    /// p = 0.999.
    pub const P99_9: Self = Self { ppb: 999_000_000 };
    /// p = 0.9999.
    pub const P99_99: Self = Self { ppb: 999_900_000 };
    /// The quantiles that a summary holds, in rising order.
    pub const SUMMARY: [Self; 5] = [Self::P50, Self::P90, Self::P99, Self::P99_9, Self::P99_99];

    /// `ppb` parts per 10⁹; `None` outside (0, 10⁹).
    pub fn from_ppb(ppb: u64) -> Option<Self> {
        let ppb = u32::try_from(ppb).ok()?;
        (ppb > 0 && u64::from(ppb) < WHOLE).then_some(Self { ppb })
    }

    /// The share `p`, rounded to 10⁻⁹; `None` when that is not in (0, 1).
    pub fn from_share(p: f64) -> Option<Self> {
        let ppb = (p * WHOLE as f64).round();
        if ppb > 0.0 && ppb < WHOLE as f64 { Self::from_ppb(ppb as u64) } else { None }
    }

    /// p as a share in (0, 1).
    pub fn share(self) -> f64 {
        f64::from(self.ppb) / WHOLE as f64
    }

    /// The rank ⌈p·n⌉ of the order statistic used for this quantile, in [1, n] for n ≥ 1.
    pub fn rank(self, n: u64) -> u64 {
        let scaled = u128::from(self.ppb) * u128::from(n);
        // At most n, because ppb < 10⁹.
        scaled.div_ceil(u128::from(WHOLE)) as u64
    }

    /// Returns true where n samples support this quantile: n ≥ 1/(1 − p), so that on average at
    /// least one sample lies beyond it. With fewer the quantile would be the maximum under another
    /// name.
    pub fn is_supported(self, n: u64) -> bool {
        u128::from(n) * u128::from(WHOLE - u64::from(self.ppb)) >= u128::from(WHOLE)
    }

    /// The smallest n that supports this quantile.
    pub fn samples_needed(self) -> u64 {
        WHOLE.div_ceil(WHOLE - u64::from(self.ppb))
    }
}

impl std::fmt::Display for Probability {
    /// As a percentage with the `p` before it: `p50`, `p99.9`, `p99.9999999`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, part) = (self.ppb / 10_000_000, self.ppb % 10_000_000);
        if part == 0 {
            return write!(f, "p{whole}");
        }
        let digits = format!("{part:07}");
        write!(f, "p{whole}.{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_exact_where_floating_point_is_not() {
        assert_eq!(Probability::P99_9.rank(1000), 999);
        assert_eq!(Probability::P99_9.rank(1001), 1000);
        assert_eq!(Probability::P50.rank(1), 1);
        assert_eq!(Probability::P99_99.rank(u64::MAX), 18_444_899_399_302_180_660);
    }

    #[test]
    fn a_quantile_needs_a_sample_beyond_it() {
        for (p, needed) in Probability::SUMMARY.into_iter().zip([2, 10, 100, 1_000, 10_000]) {
            assert_eq!(p.samples_needed(), needed);
            assert!(p.is_supported(needed) && !p.is_supported(needed - 1), "{p}");
        }
    }

    #[test]
    fn reads_and_shows() {
        let shown = |p| Probability::from_share(p).unwrap().to_string();
        assert_eq!(shown(0.5), "p50");
        assert_eq!(shown(0.999), "p99.9");
        assert_eq!(shown(0.05), "p5");
        assert_eq!(shown(0.999_999_999), "p99.9999999");
        for bad in [0.0, 1.0, -0.1, f64::NAN, f64::INFINITY, 1e-12] {
            assert_eq!(Probability::from_share(bad), None, "{bad}");
        }
    }
}
