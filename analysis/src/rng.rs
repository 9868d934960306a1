//! Pseudo-random numbers for resampling and for simulated series: the same seed gives the same
//! numbers on every machine.
//!
//! xoshiro256++ (Blackman and Vigna, Scrambled linear pseudorandom number generators, ACM TOMS 47,
//! 2021), seeded by splitmix64. Not for secrets. Reads no clock and no entropy.

/// A generator. Its period is 2²⁵⁶ − 1.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator of a seed; any seed is as good as any other.
    pub fn new(seed: u64) -> Self {
        let mut at = seed;
        let mut split = || {
            at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = at;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self { state: [split(), split(), split(), split()] }
    }

    /// Sixty-four random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in [0, 1), in steps of 2⁻⁵³.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform among 0 … n − 1; 0 for n = 0. The bias is below n/2⁶⁴.
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// Normal with mean 0 and variance 1 (Box and Muller, one of the two).
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_reference() {
        // The reference implementation, state {1, 2, 3, 4}.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let numbers: Vec<u64> = (0..3).map(|_| rng.bits()).collect();
        assert_eq!(numbers, [41_943_041, 58_720_359, 3_588_806_011_781_223]);
    }

    #[test]
    fn moments_are_right_and_a_seed_repeats() {
        let (mut rng, mut again) = (Rng::new(7), Rng::new(7));
        let n = 100_000;
        let (mut uniform, mut normal, mut squares, mut waits) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..n {
            assert_eq!(rng.bits(), again.bits());
            uniform += rng.uniform();
            let value = rng.normal();
            (normal, squares) = (normal + value, squares + value * value);
            waits += rng.exponential();
            again = rng.clone();
        }
        let mean = |sum: f64| sum / f64::from(n);
        assert!((mean(uniform) - 0.5).abs() < 0.005);
        assert!(mean(normal).abs() < 0.02 && (mean(squares) - 1.0).abs() < 0.03);
        assert!((mean(waits) - 1.0).abs() < 0.02);
        assert!((0..1_000).all(|_| rng.below(7) < 7) && rng.below(0) == 0);
    }
}
