//! A signed integer of 256 bits, for products of two exact sums.
//!
//! For the final steps of the fit, where doubles would cancel. Multiplies, adds, converts; wraps
//! nowhere: every operation that could overflow returns `None`.

/// A signed 256-bit integer in two's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wide {
    high: i128,
    low: u128,
}

const HALF: u32 = 64;
const MASK: u128 = (1 << HALF) - 1;

impl Wide {
    /// The exact product.
    pub(super) fn product(a: i128, b: i128) -> Self {
        let (high, low) = magnitude_product(a.unsigned_abs(), b.unsigned_abs());
        // The magnitude is at most 2²⁵⁴, so that `high` fits.
        let product = Self { high: high.cast_signed(), low };
        if (a < 0) != (b < 0) { product.negated() } else { product }
    }

    fn negated(self) -> Self {
        let (low, carry) = (!self.low).overflowing_add(1);
        Self { high: (!self.high).wrapping_add(i128::from(carry)), low }
    }

    /// The sum; `None` on overflow.
    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let (low, carry) = self.low.overflowing_add(other.low);
        let high = self.high.checked_add(other.high)?.checked_add(i128::from(carry))?;
        Some(Self { high, low })
    }

    /// The difference; `None` on overflow.
    pub(super) fn minus(self, other: Self) -> Option<Self> {
        self.plus(other.negated())
    }

    /// The product with a plain integer; `None` on overflow.
    pub(super) fn times(self, factor: i128) -> Option<Self> {
        // self = high·2¹²⁸ + low, with low unsigned: low = 2·half + bit keeps the halves signed.
        let half = (self.low >> 1).cast_signed();
        let bit = (self.low & 1).cast_signed();
        let low = Self::product(half, factor).shifted(1)?.plus(Self::product(bit, factor))?;
        let high = Self { high: self.high.checked_mul(factor)?, low: 0 };
        high.plus(low)
    }

    /// The product with 2^`bits`, `bits` in [1, 127]; `None` on overflow.
    pub(super) fn shifted(self, bits: u32) -> Option<Self> {
        let high = self.high.checked_mul(1i128.checked_shl(bits)?)?;
        let carried = (self.low >> (128 - bits)).cast_signed();
        Some(Self { high: high | carried, low: self.low << bits })
    }

    /// The nearest double.
    pub(super) fn to_f64(self) -> f64 {
        if self.high < 0 {
            return -self.negated().to_f64();
        }
        self.high as f64 * 2f64.powi(128) + self.low as f64
    }
}

fn magnitude_product(a: u128, b: u128) -> (u128, u128) {
    let (a_high, a_low) = (a >> HALF, a & MASK);
    let (b_high, b_low) = (b >> HALF, b & MASK);
    let low = a_low * b_low;
    // Neither of these sums can overflow: (2⁶⁴ − 1)² + 2·(2⁶⁴ − 1) = 2¹²⁸ − 1.
    let middle = a_high * b_low + (low >> HALF);
    let other = a_low * b_high + (middle & MASK);
    let high = a_high * b_high + (middle >> HALF) + (other >> HALF);
    (high, (other << HALF) | (low & MASK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn small(value: i128) -> Wide {
        Wide::product(value, 1)
    }

    #[test]
    fn extremes() {
        let most = Wide::product(i128::MIN, i128::MIN);
        assert_eq!(most.to_f64(), 2f64.powi(254));
        assert_eq!(most.plus(most), None);
        assert_eq!(most.minus(most), Some(small(0)));
        assert_eq!(most.shifted(1), None);
        assert_eq!(Wide::product(i128::MIN, 1).to_f64(), -(2f64.powi(127)));
    }

    proptest! {
        #[test]
        fn agrees_with_i128_where_that_is_enough(
            a in any::<i64>(), b in any::<i64>(), c in any::<i64>(), bits in 1u32..60,
        ) {
            let (a, b, c) = (i128::from(a), i128::from(b), i128::from(c >> 2));
            prop_assert_eq!(Wide::product(a, b), small(a * b));
            prop_assert_eq!(small(a * b).minus(small(c)), Some(small(a * b - c)));
            prop_assert_eq!(small(a).times(c), Some(small(a * c)));
            prop_assert_eq!(small(a).shifted(bits), Some(small(a << bits)));
            prop_assert_eq!(small(a * b).to_f64(), (a * b) as f64);
        }

        #[test]
        fn products_distribute(a in any::<i128>(), b in any::<i128>(), c in any::<i128>()) {
            let (a, b, c) = (a >> 1, b >> 1, c >> 1);
            let sum = Wide::product(a, b).plus(Wide::product(a, c));
            prop_assert_eq!(sum, Some(Wide::product(a, b + c)));
        }
    }
}
