//! Greatest common divisors: of numbers, and of periods.
//!
//! Pure.

use punctual_core::time::Period;

/// The greatest common divisor.
///
/// # Real-time: setup only
pub fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The longest period that divides all of these, which are whole numbers of nanoseconds; the
/// shortest of them where they are not. `None` of none.
///
/// # Real-time: setup only
pub fn of_periods(periods: &[Period]) -> Option<Period> {
    let whole = periods.iter().all(|period| period.den() == 1);
    let common = periods.iter().fold(0, |sum, period| gcd(sum, period.as_ns().into()));
    match u64::try_from(common).ok().and_then(Period::from_ns) {
        Some(common) if whole => Some(common),
        _ => periods.iter().min().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_have_a_divisor_where_they_are_whole() {
        let ns = |ns| Period::from_ns(ns).expect("positive");
        assert_eq!(of_periods(&[ns(4_000), ns(6_000), ns(10_000)]), Some(ns(2_000)));
        assert_eq!(of_periods(&[ns(4_000)]), Some(ns(4_000)));
        let third = Period::hz(3).expect("in range");
        assert_eq!(of_periods(&[third, ns(4_000)]), Some(ns(4_000)));
        assert_eq!(of_periods(&[]), None);
    }
}
