//! Whether a late cycle makes the next ones late.
//!
//! For the battery. Clusters of exceedances near each other, and correlation of block maxima far
//! from each other. A cycle that is late by the beat of a periodic cause (each fourth, say) has no
//! more neighbours within a whole number of beats than by chance.

use crate::special::gamma_upper;

use super::stationarity::{SEGMENTS, scores};
use super::test::{About, Test};

/// Exceedances within this many cycles are a pair.
const WINDOW: u64 = 20;
/// Segments among which few exceedances are told apart.
const COARSE: usize = 16;
/// Segments that may hold a change.
const LEFT_OUT: usize = 2;
/// Critical counts of pairs are exceeded in fewer than this share of runs.
const COMPANY_SHARE: f64 = 0.005;
/// Lags of block maxima.
const LAGS: usize = 10;
/// Exceeded in 0.75 % of runs by simulation; with so few blocks Q is wider than χ².
const LJUNG_BOX: f64 = 29.0;

/// Whether exceedances (places rising) have more neighbours than by chance: pairs within 20 cycles,
/// a Poisson variable for independent cycles. An extremal index below 1 means the same. Each of 64
/// segments is taken by itself, and two with the most pairs too many are left out, so that a change
/// is not mistaken for clustering: it lies between segments, or within two at most.
pub(super) fn company_within(places: &[u64], n: u64) -> Test {
    let length = n as f64 / SEGMENTS as f64;
    let near = WINDOW as f64 * (2.0 * length - WINDOW as f64 - 1.0) / (length * (length - 1.0));
    let mut segments: Vec<(f64, f64)> = places
        .chunk_by(|a, b| segment(*a, n, SEGMENTS) == segment(*b, n, SEGMENTS))
        .map(|within| {
            let count = within.len() as f64;
            (pairs(within) as f64, 0.5 * count * (count - 1.0) * near)
        })
        .collect();
    segments.sort_by(|a, b| (a.0 - a.1).total_cmp(&(b.0 - b.1)));
    segments.truncate(segments.len().saturating_sub(LEFT_OUT));
    let found: f64 = segments.iter().map(|segment| segment.0).sum();
    let expected = segments.iter().map(|segment| segment.1).sum();
    verdict(found, expected, "late cycles come in clusters")
}

/// The test for exceedances too few for segments: over the whole run, with as many more pairs
/// expected as there are in the same of 16 segments.
pub(super) fn company(places: &[u64], n: u64) -> Test {
    let both = |count: f64| count * (count - 1.0);
    let same: f64 = places
        .chunk_by(|a, b| segment(*a, n, COARSE) == segment(*b, n, COARSE))
        .map(|within| both(within.len() as f64))
        .sum();
    let crowding = (COARSE as f64 * same / both(places.len() as f64)).max(1.0);
    let expected = both(places.len() as f64) * WINDOW as f64 / n as f64 * crowding;
    verdict(pairs(places) as f64, expected, "the latest cycles come in clusters")
}

/// Which of so many segments of the n cycles a place lies in.
fn segment(place: u64, n: u64, segments: usize) -> u128 {
    u128::from(place) * segments as u128 / u128::from(n)
}

/// Pairs of places (rising) within the window.
fn pairs(places: &[u64]) -> u64 {
    let near = |(i, &place): (usize, &u64)| {
        places[i + 1..].iter().take_while(|&&next| next - place <= WINDOW).count() as u64
    };
    places.iter().enumerate().map(near).sum()
}

fn verdict(pairs: f64, expected: f64, fails_when: &'static str) -> Test {
    Test {
        about: About::Independence,
        fails_when,
        name: "pairs",
        statistic: pairs,
        limit: most(expected) as f64,
    }
}

/// The least count that a Poisson variable exceeds in fewer than the share of runs.
fn most(mean: f64) -> u64 {
    // P(X > c) = 1 − P(X < c + 1); the normal tail brackets the count.
    let (mut low, mut high) = (0u64, (mean + 10.0 * mean.sqrt() + 20.0) as u64);
    while low < high {
        let middle = low + (high - low) / 2;
        if 1.0 - gamma_upper(middle as f64 + 1.0, mean) < COMPANY_SHARE {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Whether block maxima are uncorrelated: Ljung and Box's Q (Biometrika 65, 1978) of their ranks.
pub(super) fn correlation(maxima: &[f64]) -> Test {
    let scores = scores(maxima, |p| p);
    let n = maxima.len() as f64;
    let variance: f64 = scores.iter().map(|s| s * s).sum();
    let q = (1..=LAGS.min(maxima.len().saturating_sub(1))).map(|lag| {
        let together: f64 = scores.iter().zip(&scores[lag..]).map(|(a, b)| a * b).sum();
        (together / variance).powi(2) / (n - lag as f64)
    });
    Test {
        about: About::Independence,
        fails_when: "the maxima of neighbouring blocks are correlated",
        name: "Ljung-Box Q",
        statistic: n * (n + 2.0) * q.sum::<f64>(),
        limit: LJUNG_BOX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: u64 = 1_000_000;

    #[test]
    fn loners_pass_and_couples_do_not() {
        let alone: Vec<u64> = (0..2_000).map(|i| i * 500).collect();
        assert!(company(&alone, N).passes() && company_within(&alone, N).passes());
        let couples: Vec<u64> = (0..2_000).map(|i| i / 2 * 1_000 + i % 2 * 3).collect();
        assert_eq!(company(&couples, N).statistic, 1_000.0);
        assert!(!company(&couples, N).passes() && !company_within(&couples, N).passes());
    }

    #[test]
    fn a_crowded_segment_is_a_change_and_no_company() {
        // A tenth of the run has ten times as many, each by itself.
        let sparse = (0..900).map(|i| i * 1_000);
        let dense = (0..1_000).map(|i| 900_000 + i * 100 + i * 7_919 % 80);
        let places: Vec<u64> = sparse.chain(dense).collect();
        assert!(company_within(&places, N).passes());
        let few: Vec<u64> = places.iter().copied().step_by(20).collect();
        assert!(company(&few, N).passes());
    }

    #[test]
    fn a_beat_is_no_company() {
        // Every fourth cycle may be late, one in fifty of them is.
        let mut rng = crate::rng::Rng::new(2);
        let places: Vec<u64> =
            (0..N / 4).filter(|_| rng.below(50) == 0).map(|fourth| 4 * fourth).collect();
        assert!(company_within(&places, N).passes(), "{:?}", company_within(&places, N));
    }

    #[test]
    fn counts_are_limited_as_poisson_variables_are() {
        // P(X > 10) = 0.27 % at a mean of 4, and P(X > 9) = 0.81 %.
        assert_eq!((most(0.0), most(4.0)), (0, 10));
        assert!((250..260).contains(&most(1_000.0).saturating_sub(830)), "{}", most(1_000.0));
    }

    #[test]
    fn neighbouring_blocks_that_go_together_are_seen() {
        let scattered: Vec<f64> = (0..64).map(|i| f64::from(i * 37 % 64)).collect();
        let waves: Vec<f64> = (0..64).map(|i| (f64::from(i) / 6.0).sin()).collect();
        assert!(correlation(&scattered).statistic < correlation(&waves).statistic);
        assert!(!correlation(&waves).passes());
    }
}
