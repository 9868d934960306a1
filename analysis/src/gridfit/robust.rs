//! A line that outliers do not affect: Theil–Sen over the medians of neighbouring cycles.
//!
//! For the grid fit. At most 243 block medians are held; when they are full, three neighbours
//! become one (the middle one: a remedian, Rousseeuw and Bassett 1990), so that memory stays
//! constant while the blocks coarsen. A median of medians, not the median: good to a fraction of
//! the scatter, which is what a robust line is for.

/// 3⁵, so that merging threes never leaves a rest.
const BLOCKS_MAX: usize = 243;
/// 3^32 samples a block are more than any recording has.
const LEVELS_MAX: usize = 32;

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Middle of the cycles in it.
    x: u64,
    /// Their median deviation, ns.
    d: i64,
}

/// Up to two blocks of one size that wait for a third.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    blocks: [Block; 2],
    len: usize,
}

/// The medians so far.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    done: Vec<Block>,
    /// Blocks hold 3^level samples.
    level: usize,
    pending: [Pending; LEVELS_MAX],
}

impl Default for Blocks {
    fn default() -> Self {
        Self { done: Vec::new(), level: 0, pending: [Pending::default(); LEVELS_MAX] }
    }
}

impl Blocks {
    /// Takes in one sample; x must not decrease.
    #[inline]
    pub(super) fn push(&mut self, x: u64, d: i64) {
        let mut block = Block { x, d };
        for pending in &mut self.pending[..self.level] {
            if pending.len < 2 {
                pending.blocks[pending.len] = block;
                pending.len += 1;
                return;
            }
            block = middle(pending.blocks[0], pending.blocks[1], block);
            pending.len = 0;
        }
        self.close(block);
    }

    fn close(&mut self, block: Block) {
        self.done.push(block);
        if self.done.len() == BLOCKS_MAX && self.level + 1 < LEVELS_MAX {
            for third in 0..BLOCKS_MAX / 3 {
                let [a, b, c] = [0, 1, 2].map(|i| self.done[third * 3 + i]);
                self.done[third] = middle(a, b, c);
            }
            self.done.truncate(BLOCKS_MAX / 3);
            self.level += 1;
        }
    }

    /// Slope (ns per cycle) and level at x = 0 (ns); `None` with fewer than three blocks or without
    /// two different x.
    pub(super) fn fit(&self) -> Option<(f64, f64)> {
        if self.done.len() < 3 {
            return None;
        }
        let mut slopes = Vec::with_capacity(self.done.len() * self.done.len() / 2);
        for (i, a) in self.done.iter().enumerate() {
            for b in &self.done[i + 1..] {
                if b.x > a.x {
                    let rise = i128::from(b.d) - i128::from(a.d);
                    slopes.push(rise as f64 / (b.x - a.x) as f64);
                }
            }
        }
        let slope = median(&mut slopes)?;
        let mut levels: Vec<f64> =
            self.done.iter().map(|block| block.d as f64 - slope * block.x as f64).collect();
        Some((slope, median(&mut levels)?))
    }
}

/// One block of three neighbours: the middle x, the middle d.
#[inline]
fn middle(a: Block, b: Block, c: Block) -> Block {
    let d = a.d.min(b.d).max(a.d.max(b.d).min(c.d));
    Block { x: b.x, d }
}

fn median(values: &mut [f64]) -> Option<f64> {
    let at = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(at, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_line_is_found_at_any_length() {
        for n in [3u64, 10, 242, 243, 244, 729, 100_000] {
            let mut blocks = Blocks::default();
            (0..n).for_each(|x| blocks.push(x, 40 - 2 * x as i64));
            assert_eq!(blocks.fit(), Some((-2.0, 40.0)), "{n}");
            assert!(blocks.done.len() < BLOCKS_MAX);
        }
    }

    #[test]
    fn too_little_gives_nothing() {
        let mut blocks = Blocks::default();
        blocks.push(1, 1);
        blocks.push(2, 1);
        assert_eq!(blocks.fit(), None);
        let mut still = Blocks::default();
        (0..9).for_each(|d| still.push(5, d));
        assert_eq!(still.fit(), None);
    }

    #[test]
    fn a_fifth_of_outliers_does_not_move_it() {
        let mut blocks = Blocks::default();
        for x in 0..50_000u64 {
            let outlier = if x * 2_654_435_761 % 5 == 0 { 1 << 40 } else { 0 };
            blocks.push(x, 7 * x as i64 + outlier);
        }
        let (slope, level) = blocks.fit().unwrap();
        assert!((slope - 7.0).abs() < 0.01 && level.abs() < 500.0, "{slope} {level}");
    }
}
