//! How long the blocks of a bootstrap must be: long enough to preserve the dependence between
//! chunks.
//!
//! Politis and White (Econometric Reviews 23, 2004), corrected by Patton, Politis and White (28,
//! 2009), for the stationary bootstrap. Arithmetic only.

use super::bootstrap::CHUNKS_MIN;
use super::dispersion::Part;
use super::series::{Cells, above, count};

/// The mean length of blocks, in chunks, for the share of each chunk above a cell: autocovariances
/// summed over all parts.
pub(super) fn block_length(sides: [&[Part<'_>]; 2], cell: u16) -> f64 {
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
        let of =
            |x: &Vec<f64>| -> f64 { x.iter().zip(x.iter().skip(lag)).map(|(a, b)| a * b).sum() };
        shares.iter().map(of).sum::<f64>()
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
