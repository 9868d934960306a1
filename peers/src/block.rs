//! What a contender did, in one block and in all.

use punctual_analysis::histogram::Histogram;
use punctual_analysis::quantile::Probability;

use crate::contender::Contender;
use crate::result::{Quantiles, Ratios, Row};

/// One block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// How late each wake was, ns.
    pub(crate) lateness_ns: Histogram,
    /// Releases that never ran; `None` where that is not counted.
    pub(crate) missed: Option<u64>,
    /// CPU time of the loop's thread over wall time; `None` where it could not be seen.
    pub(crate) cpu_load: Option<f64>,
}

/// All blocks of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    lateness_ns: Histogram,
    missed: Option<u64>,
    /// Shares of the CPU, one a block.
    loads: Vec<f64>,
    /// One a block.
    quantiles: Vec<Quantiles>,
    blocks: u32,
    /// Why it has no block any more.
    pub(crate) left_out: Option<String>,
}

impl Score {
    /// One block more.
    pub(crate) fn add(&mut self, block: &Block) {
        self.lateness_ns.merge(&block.lateness_ns);
        self.missed = match (self.blocks, self.missed, block.missed) {
            (0, _, first) => first,
            (_, Some(so_far), Some(more)) => Some(so_far + more),
            _ => None,
        };
        self.loads.extend(block.cpu_load);
        self.quantiles.push(quantiles(&block.lateness_ns));
        self.blocks += 1;
    }

    /// The share of the CPU, the mean over blocks of equal length; `None` when never seen.
    pub(crate) fn cpu_load(&self) -> Option<f64> {
        let n = self.loads.len();
        (n > 0).then(|| self.loads.iter().sum::<f64>() / n as f64)
    }

    /// Each quantile of its middle block; of an even number, the lower one of the two.
    fn median_block(&self) -> Quantiles {
        let quantile_of = |quantile: fn(&Quantiles) -> Option<i64>| {
            let mut values: Vec<i64> = self.quantiles.iter().filter_map(quantile).collect();
            values.sort_unstable();
            // A block that is too short to tell leaves nothing to take the middle of.
            let known = values.len() == self.quantiles.len();
            values.get(values.len().saturating_sub(1) / 2).copied().filter(|_| known)
        };
        Quantiles {
            p50_ns: quantile_of(|block| block.p50_ns),
            p99_ns: quantile_of(|block| block.p99_ns),
            p99_9_ns: quantile_of(|block| block.p99_9_ns),
        }
    }

    /// Its row; without ratios.
    pub(crate) fn row(&self, contender: Contender, name: String) -> Row {
        let Quantiles { p50_ns, p99_ns, p99_9_ns } = quantiles(&self.lateness_ns);
        Row {
            name,
            figures: contender.figures(),
            blocks: self.blocks,
            n: self.lateness_ns.count(),
            p50_ns,
            p99_ns,
            p99_9_ns,
            max_ns: self.lateness_ns.max(),
            block: self.median_block(),
            cpu_load: self.cpu_load(),
            missed: self.missed,
            against: None,
            ratios: Ratios::default(),
            block_ratios: Ratios::default(),
            left_out: self.left_out.clone(),
        }
    }
}

fn quantiles(lateness_ns: &Histogram) -> Quantiles {
    let quantile_ns = |p| lateness_ns.quantile(p);
    Quantiles {
        p50_ns: quantile_ns(Probability::P50),
        p99_ns: quantile_ns(Probability::P99),
        p99_9_ns: quantile_ns(Probability::P99_9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(values: &[i64], missed: Option<u64>, cpu_load: Option<f64>) -> Block {
        let mut block = Block { missed, cpu_load, ..Block::default() };
        values.iter().for_each(|&value| block.lateness_ns.push(value));
        block
    }

    #[test]
    fn blocks_add_up() {
        let mut score = Score::default();
        score.add(&block(&[1, 2], Some(1), Some(0.1)));
        score.add(&block(&[3, 9], Some(2), Some(0.3)));
        let row = score.row(Contender::SpinSleep, "x".to_owned());
        assert_eq!((row.n, row.blocks, row.missed, row.max_ns), (4, 2, Some(3), Some(9)));
        assert!((row.cpu_load.expect("seen") - 0.2).abs() < 1e-12);
        assert_eq!(row.p99_9_ns, None, "four cannot support it");
    }

    #[test]
    fn the_median_block_is_not_the_one_in_the_burst() {
        let mut score = Score::default();
        for late in [40, 9_000, 50] {
            score.add(&block(&[late; 200], Some(0), None));
        }
        let row = score.row(Contender::SpinSleep, "x".to_owned());
        let near = |ns: Option<i64>, right: i64| ns.is_some_and(|ns| (ns - right).abs() <= 1);
        assert!(near(row.block.p50_ns, 50) && row.block.p99_ns != row.p99_ns, "{row:?}");
        score.add(&block(&[1], Some(0), None));
        let row = score.row(Contender::SpinSleep, "x".to_owned());
        assert_eq!(row.block.p99_ns, None, "one of them is too short");
    }

    #[test]
    fn what_one_block_cannot_say_the_sum_cannot_either() {
        let mut score = Score::default();
        assert_eq!(score.cpu_load(), None);
        score.add(&block(&[1], None, None));
        score.add(&block(&[1], Some(2), None));
        assert_eq!((score.missed, score.cpu_load()), (None, None));
    }
}
