//! Differences of quantiles, by resampling blocks of chunks.
//!
//! The stationary bootstrap (Politis and Romano, JASA 89, 1994) with the block length of Politis
//! and White (2004, corrected by Patton, Politis and White, Econometric Reviews 28, 2009), from the
//! chunks themselves; the seed is fixed. With several results on a side whole results are drawn
//! first, and the level is Student's, as they are few. Only order statistics: no maximum.

use super::pooled;
use super::series::{Cells, above, bounds_ns, count};
use super::{Part, dispersion};
use crate::plain::grouped;
use crate::quantile::Probability;
use crate::rng::Rng;
use crate::special::{student_above, student_level, student_p, student_quantile_above};
use crate::summary::SummaryStats;

/// The quantiles that are compared.
pub const QUANTILES: [Probability; 4] =
    [Probability::P50, Probability::P90, Probability::P99, Probability::P99_9];

/// Resamples of each side.
const REPLICATES: usize = 1_999;

/// Independent exceedances that each side must have beyond a quantile.
const BEYOND_MIN: f64 = 20.0;

/// Chunks that each side must have.
const CHUNKS_MIN: usize = 12;

/// Batches that each side must have at the scale at which cycles depend on each other: a run that
/// wanders more slowly than that is too short.
const BATCHES_MIN: usize = 10;

/// An arbitrary seed, fixed so that results repeat.
const SEED: u64 = 0x70_75_6e_63_74_75_61_6c;

/// One quantile of both sides, and how the difference scatters.
#[derive(Clone, Debug)]
pub(super) struct Quantiles {
    pub p: Probability,
    /// Of A and of B, ns.
    pub values_ns: [f64; 2],
    /// Width of the bucket that the later one is in, ns: no difference up to that is significant.
    resolution_ns: f64,
    /// Differences B − A of the resamples, rising; empty where n does not support a test.
    replicates: Vec<f64>,
    /// Why it is not tested; `None` where it is.
    pub untested: Option<String>,
    /// Blocks that were resampled, less one a side.
    df: f64,
    /// Where there are several results on a side: standard error, degrees of freedom.
    few: Option<(f64, f64)>,
}

impl Quantiles {
    pub(super) fn difference_ns(&self) -> f64 {
        self.values_ns[1] - self.values_ns[0]
    }

    /// True where n supports a test.
    pub(super) fn is_tested(&self) -> bool {
        !self.replicates.is_empty()
    }

    /// The two-sided p value of equal quantiles.
    pub(super) fn p_value(&self) -> f64 {
        if let Some((error, df)) = self.few {
            let difference = (self.difference_ns().abs() - self.resolution_ns).max(0.0);
            return if error > 0.0 { 2.0 * student_above(difference / error, df) } else { 1.0 };
        }
        let zero = self.resolution_ns;
        let up_to_zero = self.replicates.partition_point(|&d| d <= zero);
        let from_zero = self.replicates.len() - self.replicates.partition_point(|&d| d < -zero);
        let smaller = up_to_zero.min(from_zero) + 1;
        let p = (2.0 * smaller as f64 / (self.replicates.len() + 1) as f64).min(1.0);
        student_p(p, self.df)
    }

    /// The interval of the difference that holds with confidence 1 − `alpha`, ns; `None` where too
    /// few resamples lie beyond its ends to locate them.
    pub(super) fn interval(&self, alpha: f64) -> Option<(f64, f64)> {
        if let Some((error, df)) = self.few {
            let half = student_quantile_above(alpha / 2.0, df) * error + self.resolution_ns;
            return Some((self.difference_ns() - half, self.difference_ns() + half));
        }
        let n = self.replicates.len();
        let each = student_level(alpha / 2.0, self.df);
        // A difference in every resample must not be lost to rounding.
        let rank = (each * (n + 1) as f64 + 1e-6).floor() as usize;
        (1..=n).contains(&rank).then(|| {
            let (lower, upper) = (self.replicates[rank - 1], self.replicates[n - rank]);
            (lower - self.resolution_ns, upper + self.resolution_ns)
        })
    }
}

/// All of [`QUANTILES`] that n supports on both sides.
pub(super) fn quantiles(
    sides: [&[Part<'_>]; 2],
    shown: [Option<&SummaryStats>; 2],
    ordered: bool,
) -> Vec<Quantiles> {
    let pooled_cells = pooled(sides);
    let totals = sides.map(|side| pooled([side, &[]]));
    let releases = [count(&totals[0]), count(&totals[1])];
    let mut found: Vec<Quantiles> = QUANTILES
        .into_iter()
        .filter(|p| releases.iter().all(|&n| p.is_supported(n)))
        .map(|p| unsampled(p, &totals, shown))
        .collect();
    for quantile in &mut found {
        quantile.untested = if ordered {
            lack(sides, &pooled_cells, releases, quantile.p)
        } else {
            Some("the order of the cycles is not known without samples".to_owned())
        };
    }
    let tested: Vec<usize> = (0..found.len()).filter(|&at| found[at].untested.is_none()).collect();
    if tested.is_empty() {
        return found;
    }
    let block = tested.iter().map(|&at| {
        let cell = cell_at(&pooled_cells, found[at].p);
        block_length(sides, cell).max(dispersion(sides, cell).batch as f64)
    });
    let block = block.fold(1.0, f64::max);
    let chunks: usize = sides.iter().flat_map(|side| side.iter()).map(chunks_of).sum();
    let df = (chunks as f64 / block - 2.0).max(1.0);
    let mut rng = Rng::new(SEED);
    let resampled = sides.map(|side| Resampler::new(side, &pooled_cells, block));
    let wanted: Vec<Probability> = tested.iter().map(|&at| found[at].p).collect();
    for _ in 0..REPLICATES {
        let [a, b] = [0, 1].map(|side| resampled[side].draw(&mut rng, &pooled_cells, &wanted));
        for (index, &at) in tested.iter().enumerate() {
            found[at].replicates.push(b[index] - a[index]);
        }
    }
    for at in tested {
        found[at].replicates.sort_by(f64::total_cmp);
        found[at].df = df;
        found[at].few = few([resampled[0].results.len(), resampled[1].results.len()], &found[at]);
    }
    found
}

/// A quantile of both sides before resampling: as results show it, where they do.
fn unsampled(p: Probability, totals: &[Cells; 2], shown: [Option<&SummaryStats>; 2]) -> Quantiles {
    let value = |cells: &Cells| {
        let releases = count(cells) as f64;
        let cells = cells.iter().map(|&(cell, count)| (cell, count as f64));
        quantile(cells, p.share() * releases)
    };
    let widths = totals.each_ref().map(|cells| {
        let (low, high) = bounds_ns(cell_at(cells, p));
        (high - low) as f64
    });
    Quantiles {
        p,
        values_ns: [0, 1].map(|side| {
            let shown = shown[side].and_then(|stats| stats.quantile(p));
            shown.unwrap_or_else(|| value(&totals[side]))
        }),
        // Below 256 ns each whole nanosecond has a bucket.
        resolution_ns: widths[0].max(widths[1]) - 1.0,
        replicates: Vec::new(),
        untested: None,
        df: f64::INFINITY,
        few: None,
    }
}

/// Standard error and degrees of freedom between results. A resample of m results varies by
/// (m − 1)/m of what they do.
fn few(results: [usize; 2], quantile: &Quantiles) -> Option<(f64, f64)> {
    let df: usize = results.iter().map(|m| m - 1).sum();
    let n = quantile.replicates.len() as f64;
    let mean = quantile.replicates.iter().sum::<f64>() / n;
    let variance = quantile.replicates.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let least = results.into_iter().filter(|&m| m > 1).min()? as f64;
    Some(((variance * least / (least - 1.0)).sqrt(), df as f64))
}

/// Why a quantile cannot be tested, with what that takes; `None` where it can.
fn lack(
    sides: [&[Part<'_>]; 2],
    pooled_cells: &Cells,
    releases: [u64; 2],
    p: Probability,
) -> Option<String> {
    let chunks = |side: &[Part<'_>]| side.iter().map(chunks_of).sum::<usize>();
    let have = sides.map(chunks).into_iter().min().unwrap_or(0);
    let n = releases.into_iter().min().unwrap_or(0);
    if have < CHUNKS_MIN {
        return Some(format!("{} releases are too few", grouped(n)));
    }
    let found = dispersion(sides, cell_at(pooled_cells, p));
    let beyond = (1.0 - p.share()) * n as f64;
    let independent = beyond / found.factor;
    if independent < BEYOND_MIN {
        let (n, late) = (grouped(n), grouped(beyond.round() as u64));
        let needed = format!("{BEYOND_MIN} are needed on each side");
        return Some(match found.factor > 1.0 {
            true => format!(
                "of {n} releases the {late} beyond it count as {}, as they come in clusters; \
                 {needed}",
                about(independent.round() as u64, "independent one")
            ),
            false => format!("{late} of {n} releases lie beyond it; {needed}"),
        });
    }
    (have < BATCHES_MIN * found.batch).then(|| {
        format!(
            "the {} releases depend on each other for so long that they count as {}; \
             {BATCHES_MIN} are needed on each side",
            grouped(n),
            about((have / found.batch) as u64, "independent stretch")
        )
    })
}

/// An estimated number of something, such as "about 3 independent ones".
fn about(count: u64, one: &str) -> String {
    match (count, one.ends_with("ch")) {
        (0, _) => format!("less than one {one}"),
        (1, _) => format!("about 1 {one}"),
        (_, true) => format!("about {} {one}es", grouped(count)),
        (_, false) => format!("about {} {one}s", grouped(count)),
    }
}

fn chunks_of(part: &Part<'_>) -> usize {
    part.series.chunks.len()
}

/// The cell in which the quantile lies.
fn cell_at(cells: &Cells, p: Probability) -> u16 {
    let rank = p.rank(count(cells));
    let mut seen = 0;
    let found = cells.iter().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    found.map_or(0, |&(cell, _)| cell)
}

/// The value of a (fractional) rank, in the middle of its share of the cell.
fn quantile(cells: impl Iterator<Item = (u16, f64)>, rank: f64) -> f64 {
    let (mut seen, mut last) = (0.0, 0.0);
    for (cell, count) in cells {
        if count <= 0.0 {
            continue;
        }
        let (low, high) = bounds_ns(cell);
        last = high as f64;
        if seen + count >= rank {
            let part = ((rank - seen) / count).clamp(0.0, 1.0);
            return low as f64 + part * (high - low) as f64;
        }
        seen += count;
    }
    last
}

/// A chunk as (index into all cells, count).
type Indexed = Vec<(u32, f64)>;

/// A part as its chunks.
type Chunks = Vec<Indexed>;

/// A side, ready to be resampled: the parts of each result.
struct Resampler {
    results: Vec<Vec<Chunks>>,
    block: f64,
}

impl Resampler {
    fn new(side: &[Part<'_>], pooled: &Cells, block: f64) -> Self {
        let at = |cell: u16| pooled.partition_point(|&(c, _)| c < cell) as u32;
        let mut results: Vec<(usize, Vec<_>)> = Vec::new();
        for part in side {
            let chunks: Chunks = part
                .series
                .chunks
                .iter()
                .map(|cells| cells.iter().map(|&(cell, count)| (at(cell), count as f64)).collect())
                .collect();
            match results.iter_mut().find(|(result, _)| *result == part.result) {
                Some((_, parts)) => parts.push(chunks),
                None => results.push((part.result, vec![chunks])),
            }
        }
        Self { results: results.into_iter().map(|(_, parts)| parts).collect(), block }
    }

    /// The quantiles of one resample.
    fn draw(&self, rng: &mut Rng, pooled: &Cells, wanted: &[Probability]) -> Vec<f64> {
        let mut counts = vec![0.0; pooled.len()];
        let m = self.results.len();
        for result in 0..m {
            let chosen = if m > 1 { rng.below(m) } else { result };
            self.results[chosen].iter().for_each(|part| self.add(rng, part, &mut counts));
        }
        let n: f64 = counts.iter().sum();
        let cells = || pooled.iter().zip(&counts).map(|(&(cell, _), &count)| (cell, count));
        wanted.iter().map(|p| quantile(cells(), p.share() * n)).collect()
    }

    /// As many chunks of a part as it has, in blocks of geometric length, the last chunk followed
    /// by the first.
    fn add(&self, rng: &mut Rng, part: &[Indexed], counts: &mut [f64]) {
        let m = part.len();
        let mut times = vec![0u32; m];
        let mut at = 0;
        for step in 0..m {
            let is_new = step == 0 || rng.uniform() * self.block < 1.0;
            at = if is_new { rng.below(m) } else { (at + 1) % m };
            times[at] += 1;
        }
        for (chunk, &times) in part.iter().zip(&times).filter(|(_, times)| **times > 0) {
            for &(cell, count) in chunk {
                counts[cell as usize] += count * f64::from(times);
            }
        }
    }
}

/// The mean length of blocks, in chunks, for the share of each chunk above a cell: autocovariances
/// summed over all parts.
///
/// Politis and White (Econometric Reviews 23, 2004), corrected by Patton, Politis and White (28,
/// 2009), for the stationary bootstrap.
fn block_length(sides: [&[Part<'_>]; 2], cell: u16) -> f64 {
    let mut shares: Vec<Vec<f64>> = Vec::new();
    for part in sides.iter().flat_map(|side| side.iter()) {
        let chunks = &part.series.chunks;
        let share = |cells: &Cells| above(cells, cell) as f64 / count(cells).max(1) as f64;
        let series: Vec<f64> = chunks.iter().map(share).collect();
        let mean = series.iter().sum::<f64>() / series.len().max(1) as f64;
        shares.push(series.into_iter().map(|x| x - mean).collect());
    }
    let longest = shares.iter().map(Vec::len).max().unwrap_or(0);
    let n = longest as f64;
    if longest < CHUNKS_MIN {
        return 1.0;
    }
    let covariance = |lag: usize| -> f64 {
        let products =
            |x: &Vec<f64>| -> f64 { x.iter().zip(x.iter().skip(lag)).map(|(a, b)| a * b).sum() };
        shares.iter().map(products).sum::<f64>()
    };
    let zero = covariance(0);
    if zero <= 0.0 {
        return 1.0;
    }
    // The first lag after which five correlations in a row are within chance.
    let chance = 2.0 * (n.log10() / n).sqrt();
    let lags = longest / 2;
    let small = |lag: usize| (covariance(lag) / zero).abs() < chance;
    let quiet = (1..lags).find(|&lag| (lag..lag + 5).all(small)).unwrap_or(lags);
    let window = (2 * (quiet - 1)).min(lags);
    let flat_top = |lag: usize| (2.0 * (1.0 - lag as f64 / window as f64)).clamp(0.0, 1.0);
    let (mut g, mut spectrum) = (0.0, zero);
    for lag in 1..=window {
        let weighted = 2.0 * flat_top(lag) * covariance(lag);
        spectrum += weighted;
        g += weighted * lag as f64;
    }
    if spectrum <= 0.0 {
        return 1.0;
    }
    let length = (g * g / (spectrum * spectrum) * n).cbrt();
    length.clamp(1.0, (3.0 * n.sqrt()).min(n / 3.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::sample::Sample;
    use punctual_core::time::Span;

    use super::super::series::Builder;

    #[test]
    fn one_is_not_several() {
        let words = |count| [about(count, "independent one"), about(count, "independent stretch")];
        assert_eq!(
            words(0),
            ["less than one independent one", "less than one independent stretch"]
        );
        assert_eq!(words(1), ["about 1 independent one", "about 1 independent stretch"]);
        assert_eq!(words(7), ["about 7 independent ones", "about 7 independent stretches"]);
    }

    fn series(seed: u64, n: u64, scale: f64) -> super::super::series::LatenessSeries {
        let mut rng = Rng::new(seed);
        let mut builder = Builder::new(1_000_000, true);
        for cycle in 0..n {
            let lateness = Span::from_ns((scale * (1.0 + 0.2 * rng.exponential())) as i64);
            builder.push(&Sample { cycle, lateness, ..Sample::default() });
        }
        builder.finish(0)
    }

    #[test]
    fn independent_chunks_need_no_blocks() {
        let (a, b) = (series(1, 20_000, 5_000.0), series(2, 20_000, 5_000.0));
        let [a, b] = [&a, &b].map(|series| [Part { result: 0, series }]);
        let cell = cell_at(&pooled([&a, &b]), Probability::P50);
        assert!(block_length([&a, &b], cell) < 3.0);
    }

    #[test]
    fn a_shift_is_in_its_interval_and_the_seed_repeats() {
        let (a, b) = (series(1, 60_000, 5_000.0), series(2, 60_000, 5_500.0));
        let [a, b] = [&a, &b].map(|series| [Part { result: 0, series }]);
        let found = quantiles([&a, &b], [None; 2], true);
        assert_eq!(found.len(), 4);
        for quantile in &found {
            assert!(quantile.is_tested(), "{}", quantile.p);
            let truth = 500.0 * (1.0 - 0.2 * (1.0 - quantile.p.share()).ln());
            let (lower, upper) = quantile.interval(0.01).expect("resamples enough");
            assert!(lower < truth && truth < upper, "{}: {lower} {upper}", quantile.p);
            assert_eq!(quantile.interval(0.000_5), None, "no resample lies that far out");
        }
        assert!(found[0].p_value() < 0.002, "all resamples say so");
        let again = quantiles([&a, &b], [None; 2], true);
        assert_eq!(found[3].replicates, again[3].replicates);
    }
}
