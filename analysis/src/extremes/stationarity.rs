//! Whether late cycles come as often, and as late, at one time as at another.
//!
//! For the battery. Three tests of the largest values by their places in the run, which are uniform
//! and independent of the values if nothing changed. Their distributions are free of that of the
//! values. A change that does not affect the largest values is no change of the tail.

use super::test::{About, Test};

/// Exceeded in 0.75 % of runs: Kuiper's distribution.
const KUIPER: f64 = 2.042;
/// Exceeded in 0.75 % of runs: Kolmogorov's distribution.
const KOLMOGOROV: f64 = 1.671;
/// Segments of the run in which exceedances are counted.
pub(super) const SEGMENTS: usize = 64;
/// Exceeded in 0.5 % of runs: χ² with 63 degrees of freedom.
const DISPERSION: f64 = 95.65;

/// Whether exceedances are spread evenly over the n cycles, by the places of each (rising).
pub(super) fn evenness(places: &[u64], n: u64, fails_when: &'static str) -> Test {
    let uniform = |&place: &u64| (place as f64 + 0.5) / n as f64;
    let each = places.iter().map(uniform).map(|place| (place, place, 1));
    let statistic = kuiper(each, places.len() as u64, places.len() as f64);
    let name = "Kuiper's V";
    Test { about: About::Stationarity, fails_when, name, statistic, limit: KUIPER }
}

/// Kuiper's V = D⁺ + D⁻ of `total` places in [0, 1], with Stephens' factor for the sample size
/// (JRSS B 32, 1970): given are parts of [0, 1] in rising order, from where to where, with how many
/// places lie evenly in each. It detects a drift, a step, and a change in the middle equally well.
/// `independent`: how many of the places count as independent.
pub(crate) fn kuiper(
    parts: impl Iterator<Item = (f64, f64, u64)>,
    total: u64,
    independent: f64,
) -> f64 {
    let (mut seen, mut above, mut below) = (0, 0.0f64, 0.0f64);
    for (from, to, count) in parts {
        below = below.max(from - seen as f64 / total as f64);
        seen += count;
        above = above.max(seen as f64 / total as f64 - to);
    }
    (above + below) * (independent.sqrt() + 0.155 + 0.24 / independent.sqrt())
}

/// Whether exceedances are as many in each of 64 segments: the index of dispersion.
pub(super) fn dispersion(places: &[u64], n: u64) -> Test {
    let mut counts = [0.0f64; SEGMENTS];
    for &place in places {
        let segment = u128::from(place) * SEGMENTS as u128 / u128::from(n.max(1));
        counts[(segment as usize).min(SEGMENTS - 1)] += 1.0;
    }
    let mean = places.len() as f64 / SEGMENTS as f64;
    Test {
        about: About::Stationarity,
        fails_when: "late cycles are more frequent in some parts of the run than in others",
        name: "dispersion",
        statistic: counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / mean,
        limit: DISPERSION,
    }
}

/// Whether exceedances are as large at one time as at another: the largest partial sum of their
/// exponential scores (Savage's) in order of time, over its standard deviation; a CUSUM.
pub(super) fn sizes(values: &[f64]) -> Test {
    let scores = scores(values, |p| -p.ln());
    let deviation = scores.iter().map(|s| s * s).sum::<f64>().sqrt();
    let mut sum = 0.0f64;
    let largest = scores.iter().fold(0.0f64, |largest, score| {
        sum += score;
        largest.max(sum.abs())
    });
    Test {
        about: About::Stationarity,
        fails_when: "late cycles are later at some times than at others",
        name: "CUSUM",
        statistic: largest / deviation,
        limit: KOLMOGOROV,
    }
}

/// A score of each value by the share of values at least as large, centred on 0.
pub(super) fn scores(values: &[f64], score: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    let mut scores = vec![0.0; values.len()];
    for (rank, &at) in order.iter().enumerate() {
        scores[at] = score((rank as f64 + 0.5) / values.len() as f64);
    }
    let mean = scores.iter().sum::<f64>() / values.len() as f64;
    scores.iter_mut().for_each(|score| *score -= mean);
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: u64 = 100_000;

    fn places(step: impl Fn(u64) -> u64) -> Vec<u64> {
        (0..1_000).map(step).collect()
    }

    #[test]
    fn even_places_pass_and_crowded_ones_do_not() {
        let even = places(|i| i * 100 + i * 37 % 90);
        assert!(evenness(&even, N, "").passes() && dispersion(&even, N).passes());
        let early = places(|i| i * 90);
        assert!(!evenness(&early, N, "").passes() && !dispersion(&early, N).passes());
        // As many in each half, but all of them in the middle of it.
        let crowded = places(|i| i / 500 * 50_000 + 12_000 + i % 500 * 50);
        assert!(!dispersion(&crowded, N).passes());
    }

    #[test]
    fn sizes_that_grow_are_seen_at_any_scale() {
        let size = |i: i32| f64::from(i * 7_919 % 1_000);
        let steady: Vec<f64> = (0..1_000).map(size).collect();
        assert!(sizes(&steady).passes());
        let later: Vec<f64> =
            (0..1_000).map(|i| size(i) * if i > 500 { 1.3 } else { 1.0 }).collect();
        assert!(!sizes(&later).passes());
        let ranks = |values: &[f64]| sizes(values).statistic;
        let cubed: Vec<f64> = later.iter().map(|x| x.powi(3)).collect();
        assert_eq!(ranks(&later), ranks(&cubed));
    }
}
