//! The exact sums of a least-squares line, and the line that they give.
//!
//! For the grid fit. Integers until the very last division; k is centred on the first cycle, then
//! on its mean. Bounds: 2³⁰ samples (10⁹) with |d| < 2⁴⁸ ns (78 h) and x < 2⁴⁶, and far more with
//! less.

/// A fit spans fewer cycles than this, so that no product overflows.
const X_MAX: u64 = 1 << 60;

/// Σ over samples of 1, x, x², d, d², x·d; x counts from the first cycle.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    n: u64,
    origin: u64,
    last: u64,
    left_out: u64,
    x: i128,
    xx: i128,
    d: i128,
    dd: i128,
    xd: i128,
    overflowed: bool,
}

impl Sums {
    /// Takes in one sample and returns its x; `None` when the cycle stands before the last one, or
    /// too far after the first (which ends the fit).
    #[inline]
    pub(super) fn push(&mut self, cycle: u64, deviation_ns: i64) -> Option<u64> {
        if self.n == 0 {
            self.origin = cycle;
            self.last = cycle;
        }
        if cycle < self.last {
            self.left_out += 1;
            return None;
        }
        let x = cycle - self.origin;
        if x >= X_MAX {
            self.overflowed = true;
            return None;
        }
        self.last = cycle;
        self.n += 1;
        let (wide_x, wide_d) = (i128::from(x), i128::from(deviation_ns));
        self.x += wide_x;
        self.d += wide_d;
        let (xx, over_x) = self.xx.overflowing_add(wide_x * wide_x);
        let (dd, over_d) = self.dd.overflowing_add(wide_d * wide_d);
        let (xd, over) = self.xd.overflowing_add(wide_x * wide_d);
        (self.xx, self.dd, self.xd) = (xx, dd, xd);
        self.overflowed |= over_x | over_d | over;
        Some(x)
    }

    /// Takes in neighbouring cycles, at most 256 with a magnitude below 2²⁶ ns, and returns the x
    /// of the first; `None`, with nothing taken in, where they must come one by one.
    #[inline]
    pub(super) fn extend_near(&mut self, first_cycle: u64, deviations_ns: &[i64]) -> Option<u64> {
        let n = deviations_ns.len() as u64;
        let x = first_cycle.checked_sub(self.origin)?;
        if self.n == 0 || first_cycle < self.last || x >= X_MAX / 2 - n {
            return None;
        }
        let (mut d, mut dd, mut id) = (0i64, 0i64, 0i64);
        for (i, &ns) in (0i64..).zip(deviations_ns) {
            d += ns;
            dd += ns * ns;
            id += i * ns;
        }
        // Of i = 0 .. n − 1, which x counts on from: Σi and Σi².
        let (i, ii) = (n * (n - 1) / 2, (n - 1) * n * (2 * n - 1) / 6);
        // n·x² stays below 2¹²⁶.
        let (wide_x, wide_n) = (i128::from(x), i128::from(n));
        self.last = first_cycle + n - 1;
        self.n += n;
        self.x += wide_n * wide_x + i128::from(i);
        self.d += i128::from(d);
        let xx = (wide_n * wide_x + 2 * i128::from(i)) * wide_x + i128::from(ii);
        let (xx, over_x) = self.xx.overflowing_add(xx);
        let (dd, over_d) = self.dd.overflowing_add(i128::from(dd));
        let (xd, over) = self.xd.overflowing_add(wide_x * i128::from(d) + i128::from(id));
        (self.xx, self.dd, self.xd) = (xx, dd, xd);
        self.overflowed |= over_x | over_d | over;
        Some(x)
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The least-squares line with a slope in fixed point; `None` with fewer than two distinct x or
    /// after an overflow.
    pub(super) fn fit(&self, bits: u32) -> Option<Fit> {
        if self.overflowed || self.n < 2 {
            return None;
        }
        let n = i128::from(self.n);
        // Centre on the whole part of the means: exact, and no larger than the sums themselves.
        let (x_mean, x_rest) = (self.x.div_euclid(n), self.x.rem_euclid(n));
        let (d_mean, d_rest) = (self.d.div_euclid(n), self.d.rem_euclid(n));
        let about = |sum: i128, mean: i128, factor: i128, rest: i128| {
            sum.checked_sub(mean.checked_mul(factor)?)?.checked_sub(mean.checked_mul(rest)?)
        };
        let xx = about(self.xx, x_mean, self.x, x_rest)?;
        let dd = about(self.dd, d_mean, self.d, d_rest)?;
        // Σ(x − x̄)(d − d̄) = Σxd − x̄·Σd − d̄·(Σx − n·x̄).
        let xd = about(self.xd, x_mean, self.d, 0)?.checked_sub(d_mean.checked_mul(x_rest)?)?;
        // n·S − rest·rest makes the centring complete; all in units of 1/n.
        let xx = Wide::product(xx, n).minus(Wide::product(x_rest, x_rest))?;
        let dd = Wide::product(dd, n).minus(Wide::product(d_rest, d_rest))?;
        let xd = Wide::product(xd, n).minus(Wide::product(x_rest, d_rest))?;
        if xx.to_f64() <= 0.0 {
            return None;
        }
        let slope = slope(xx, xd, bits)?;
        let exact_slope = slope as f64 / 2f64.powi(bits.cast_signed());
        // Σ(d − slope·x)² = (dd − slope·xd) − slope·(xd − slope·xx). Under drift these nearly
        // cancel, and the second part is not zero because the slope is rounded: all of it in
        // integers.
        let first = dd.shifted(bits)?.minus(xd.times(slope)?)?;
        let second = xd.shifted(bits)?.minus(xx.times(slope)?)?;
        let residual = first.shifted(bits)?.minus(second.times(slope)?)?;
        let n = self.n as f64;
        let squares = (residual.to_f64() / 2f64.powi(2 * bits.cast_signed())).max(0.0);
        let x_rest = x_rest as f64 / n;
        let d_rest = d_rest as f64 / n;
        let whole = (d_mean << bits).checked_sub(slope.checked_mul(x_mean)?)?;
        let offset_ns =
            whole as f64 / 2f64.powi(bits.cast_signed()) + d_rest - exact_slope * x_rest;
        Some(Fit { origin: self.origin, slope, offset_ns, rms_ns: squares.sqrt() / n })
    }
}

/// A fitted line.
pub(super) struct Fit {
    pub origin: u64,
    /// ns per cycle, scaled by 2^bits.
    pub slope: i128,
    /// The line at the origin, ns.
    pub offset_ns: f64,
    pub rms_ns: f64,
}

/// round(2^bits · xd / xx): a double first, then what it left over, until nothing is left.
fn slope(xx: Wide, xd: Wide, bits: u32) -> Option<i128> {
    let target = xd.shifted(bits)?;
    let divisor = xx.to_f64();
    let mut slope = 0i128;
    for _ in 0..3 {
        let left = target.minus(xx.times(slope)?)?;
        slope = slope.checked_add((left.to_f64() / divisor).round() as i128)?;
    }
    Some(slope)
}

/// A signed 256-bit integer in two's complement.
///
/// Multiplies, adds, converts; wraps nowhere: every operation that could overflow returns `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wide {
    high: i128,
    low: u128,
}

impl Wide {
    /// The exact product.
    fn product(a: i128, b: i128) -> Self {
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
    fn plus(self, added: Self) -> Option<Self> {
        let (low, carry) = self.low.overflowing_add(added.low);
        let high = self.high.checked_add(added.high)?.checked_add(i128::from(carry))?;
        Some(Self { high, low })
    }

    /// The difference; `None` on overflow.
    fn minus(self, taken: Self) -> Option<Self> {
        self.plus(taken.negated())
    }

    /// The product with a plain integer; `None` on overflow.
    fn times(self, factor: i128) -> Option<Self> {
        // self = high·2¹²⁸ + low, with low unsigned: low = 2·half + bit keeps the halves signed.
        let half = (self.low >> 1).cast_signed();
        let bit = (self.low & 1).cast_signed();
        let low = Self::product(half, factor).shifted(1)?.plus(Self::product(bit, factor))?;
        let high = Self { high: self.high.checked_mul(factor)?, low: 0 };
        high.plus(low)
    }

    /// The product with 2^`bits`, `bits` in [1, 127]; `None` on overflow.
    fn shifted(self, bits: u32) -> Option<Self> {
        let high = self.high.checked_mul(1i128.checked_shl(bits)?)?;
        let carried = (self.low >> (128 - bits)).cast_signed();
        Some(Self { high: high | carried, low: self.low << bits })
    }

    /// The nearest double.
    fn to_f64(self) -> f64 {
        if self.high < 0 {
            return -self.negated().to_f64();
        }
        self.high as f64 * 2f64.powi(128) + self.low as f64
    }
}

const HALF: u32 = 64;

const MASK: u128 = (1 << HALF) - 1;

fn magnitude_product(a: u128, b: u128) -> (u128, u128) {
    let (a_high, a_low) = (a >> HALF, a & MASK);
    let (b_high, b_low) = (b >> HALF, b & MASK);
    let low = a_low * b_low;
    // Neither of these sums can overflow: (2⁶⁴ − 1)² + 2·(2⁶⁴ − 1) = 2¹²⁸ − 1.
    let middle = a_high * b_low + (low >> HALF);
    let carried = a_low * b_high + (middle & MASK);
    let high = a_high * b_high + (middle >> HALF) + (carried >> HALF);
    (high, (carried << HALF) | (low & MASK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cycle_that_steps_back_is_left_out() {
        let mut sums = Sums::default();
        assert_eq!(sums.push(7, 0), Some(0));
        assert_eq!(sums.push(9, 0), Some(2));
        assert_eq!(sums.push(8, 1_000), None);
        assert_eq!(sums.left_out(), 1);
        assert_eq!(sums.fit(40).unwrap().slope, 0);
    }

    #[test]
    fn neighbours_at_once_give_what_they_give_one_by_one() {
        let deviations: Vec<i64> = (0..256).map(|k| (k * 7_919 % 4_001) - 1_000).collect();
        let (mut single, mut blocks) = (Sums::default(), Sums::default());
        assert_eq!(blocks.extend_near(5, &deviations), None, "the first one is the origin");
        for sums in [&mut single, &mut blocks] {
            sums.push(1 << 40, 3);
        }
        let first = (1 << 40) + 9;
        (first..).zip(&deviations).for_each(|(k, &d)| assert!(single.push(k, d).is_some()));
        assert_eq!(blocks.extend_near(first, &deviations), Some(9));
        assert_eq!(format!("{single:?}"), format!("{blocks:?}"));
        assert_eq!(blocks.extend_near(first, &deviations), None, "they stand before the last");
        assert_eq!(blocks.extend_near((1 << 40) + X_MAX / 2 - 9, &deviations), None, "too far");
    }

    #[test]
    fn a_line_is_found_exactly() {
        let mut sums = Sums::default();
        for k in 0..100u64 {
            sums.push(1_000 + k, 17 + 3 * k as i64);
        }
        let fit = sums.fit(40).unwrap();
        assert_eq!((fit.slope, fit.offset_ns, fit.rms_ns), (3 << 40, 17.0, 0.0));
    }

    #[test]
    fn overflow_ends_the_fit() {
        let mut sums = Sums::default();
        for _ in 0..4 {
            sums.push(0, i64::MIN);
        }
        sums.push(1, 0);
        assert!(sums.fit(40).is_none());
    }

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
