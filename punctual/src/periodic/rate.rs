//! A period as an exact fraction of nanoseconds.
//!
//! For the builder: 3 Hz is 1 000 000 000 / 3 ns, and stays that over any number of cycles.

use std::fmt;

use punctual_core::table::PERIOD_MAX_NS;
use punctual_core::time::Period;

/// A period of `num / den` nanoseconds, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    num_ns: u64,
    den: u64,
}

impl Rate {
    /// A period of `num_ns / den` nanoseconds; `None` below 1 ns, above 2⁶² ns (146 years) or for a
    /// denominator of zero.
    ///
    /// # Real-time: setup only
    pub fn new(num_ns: u64, den: u64) -> Option<Self> {
        let whole = num_ns.checked_div(den)?;
        let by = gcd(u128::from(num_ns), u128::from(den)) as u64;
        (1..=PERIOD_MAX_NS).contains(&whole).then(|| Self { num_ns: num_ns / by, den: den / by })
    }

    /// `hertz` cycles in a second; `None` for none, and above 10⁹.
    ///
    /// # Real-time: setup only
    pub fn hertz(hertz: u64) -> Option<Self> {
        Self::new(1_000_000_000, hertz)
    }

    /// The numerator, ns.
    ///
    /// # Real-time: setup only
    pub fn num_ns(self) -> u64 {
        self.num_ns
    }

    /// The denominator.
    ///
    /// # Real-time: setup only
    pub fn den(self) -> u64 {
        self.den
    }

    /// The period in nanoseconds, rounded down.
    ///
    /// # Real-time: setup only
    pub fn whole_ns(self) -> u64 {
        self.num_ns / self.den
    }

    /// The period in nanoseconds, for sums of shares.
    ///
    /// # Real-time: setup only
    pub fn as_ns(self) -> f64 {
        self.num_ns as f64 / self.den as f64
    }
}

impl From<Period> for Rate {
    /// The same period; one above 2⁶² ns is refused by the builder.
    fn from(period: Period) -> Self {
        Self { num_ns: period.as_ns(), den: 1 }
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rate {
    /// By length, exactly.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let cross = |a: &Self, b: &Self| u128::from(a.num_ns) * u128::from(b.den);
        cross(self, other).cmp(&cross(other, self))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.den {
            1 => write!(f, "{} ns", self.num_ns),
            den => write!(f, "{}/{den} ns", self.num_ns),
        }
    }
}

/// The greatest common divisor.
pub(super) fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_kept_exactly_is_a_rate() {
        assert_eq!(Rate::new(0, 1), None);
        assert_eq!(Rate::new(1, 2), None);
        assert_eq!(Rate::new(1, 0), None);
        assert_eq!(Rate::new(PERIOD_MAX_NS + 1, 1), None);
        assert_eq!(Rate::hertz(2_000_000_000), None);
        assert_eq!(Rate::hertz(1_000).map(|rate| rate.to_string()).as_deref(), Some("1000000 ns"));
        assert_eq!(Rate::hertz(3).map(|r| r.to_string()).as_deref(), Some("1000000000/3 ns"));
    }

    #[test]
    fn order_is_by_length() {
        let rate = |num, den| Rate::new(num, den).expect("in range");
        assert!(rate(10, 3) < rate(7, 2) && rate(7, 2) < rate(4, 1));
        assert_eq!(rate(20, 6), rate(10, 3));
    }
}
