//! The largest lateness of each of many blocks of equal length, in fixed memory.
//!
//! For extreme values. When there are too many blocks, neighbours become one and the length
//! doubles: every block always holds the same number of cycles, however long it goes on.

use serde::{Deserialize, Serialize};

/// Cycles of a block at first.
pub const BLOCK_CYCLES: u64 = 1_000;

/// The most blocks; from the first doubling on there are at least half as many.
pub const BLOCKS_MAX: usize = 1_024;

/// A series of block maxima.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maxima {
    /// Cycles of each block: [`BLOCK_CYCLES`] times a power of two.
    block_cycles: u64,
    /// Of whole blocks, oldest first.
    largest_ns: Vec<i64>,
    /// Cycles of the block that is not full yet, and the largest of them.
    open: u64,
    open_largest_ns: i64,
}

impl Default for Maxima {
    fn default() -> Self {
        let largest_ns = Vec::new();
        Self { block_cycles: BLOCK_CYCLES, largest_ns, open: 0, open_largest_ns: i64::MIN }
    }
}

impl Maxima {
    /// Takes in the lateness of the next cycle.
    #[inline]
    pub fn push(&mut self, lateness_ns: i64) {
        self.open_largest_ns = self.open_largest_ns.max(lateness_ns);
        self.open += 1;
        if self.open == self.block_cycles {
            self.close();
        }
    }

    #[cold]
    fn close(&mut self) {
        self.largest_ns.push(self.open_largest_ns);
        (self.open, self.open_largest_ns) = (0, i64::MIN);
        if self.largest_ns.len() == BLOCKS_MAX {
            let pairs = self.largest_ns.as_chunks::<2>().0;
            self.largest_ns = pairs.iter().map(|&[a, b]| a.max(b)).collect();
            self.block_cycles *= 2;
        }
    }

    /// Cycles of each block.
    pub fn block_cycles(&self) -> u64 {
        self.block_cycles
    }

    /// The maxima of all whole blocks, ns, oldest first.
    pub fn largest_ns(&self) -> &[i64] {
        &self.largest_ns
    }

    pub(super) fn is_sound(&self) -> bool {
        let times = self.block_cycles / BLOCK_CYCLES;
        self.block_cycles.is_multiple_of(BLOCK_CYCLES)
            && times.is_power_of_two()
            && times <= 1 << 40
            && self.open < self.block_cycles
            && self.largest_ns.len() < BLOCKS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // Each case is millions of cycles.
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn every_block_holds_as_many_cycles(blocks in 0usize..5_000, rest in 0usize..999) {
            let lateness = |k: usize| ((k as i64) * 7_919) % 1_000_003;
            let mut maxima = Maxima::default();
            let cycles = blocks * BLOCK_CYCLES as usize + rest;
            (0..cycles).for_each(|k| maxima.push(lateness(k)));
            let of = maxima.block_cycles() as usize;
            prop_assert!(maxima.is_sound());
            prop_assert_eq!(maxima.largest_ns().len(), cycles / of);
            let few = maxima.largest_ns().len() < BLOCKS_MAX / 2;
            prop_assert!(of == BLOCK_CYCLES as usize || !few);
            for (at, &largest) in maxima.largest_ns().iter().enumerate().step_by(97) {
                prop_assert_eq!(Some(largest), (at * of..(at + 1) * of).map(lateness).max());
            }
        }
    }
}
