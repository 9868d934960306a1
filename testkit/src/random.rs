//! Numbers that a seed decides: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).

use std::f64::consts::TAU;

/// A sequence of pseudo-random numbers, the same for a seed on every machine. Not for secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed; each seed has its own.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The sequence of a seed and a name, so that what has another name draws other numbers.
    pub fn named(seed: u64, name: &str) -> Self {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mix))
    }

    /// The next number, of all of 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is above 0; small ones are likelier by up to `end` in 2⁶⁴.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// A place in what has so many elements, at least one.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number from `-most` to `most`; `most` is below 2⁶².
    pub fn within(&mut self, most: i64) -> i64 {
        self.below(2 * most.unsigned_abs() + 1).cast_signed() - most
    }

    /// Uniform in (0, 1): neither end is ever drawn, so that its logarithm is finite.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Normal, of mean 0 and deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let angle = TAU * self.uniform();
        (-2.0 * self.uniform().ln()).sqrt() * angle.cos()
    }

    /// One of the items, of which there is at least one.
    pub fn one_of<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.index(items.len())]
    }

    /// The items in another order; each order is as likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            items.swap(index, self.index(index + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_of_the_paper() {
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.bits(), random.bits()], expected);
    }

    #[test]
    fn numbers_stay_where_they_are_asked_for() {
        let mut random = Random::named(1, "bounds");
        let mut sum = 0.0;
        for _ in 0..10_000 {
            assert!(random.below(7) < 7);
            assert!(random.within(3).abs() <= 3);
            let uniform = random.uniform();
            assert!(uniform > 0.0 && uniform < 1.0, "{uniform}");
            sum += random.normal();
        }
        assert!(sum.abs() < 500.0, "five deviations: {sum}");
        let mut order = [1, 2, 3, 4, 5, 6, 7, 8];
        random.shuffle(&mut order);
        assert!(order.contains(random.one_of(&[1, 8])));
        order.sort_unstable();
        assert_eq!(order, [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
