//! The tests of a run that need no extrapolation, in the order of their cost.
//!
//! Three sets of largest values: many for what changes with time, fewer for what a tail is, and the
//! fewest to fit, because only the very end of a tail is near its limit. None is larger than a
//! fixed share of the cycles.
//!
//! - *Stationarity*: tests of the largest values by their places in the run, which are uniform and
//!   independent of the values if nothing changed; their distributions are free of that of the
//!   values. A change that does not affect the largest values is no change of the tail.
//! - *Independence*: clusters of exceedances near each other, and correlation of block maxima far
//!   from each other. A cycle that is late by the beat of a periodic cause (each fourth, say) has
//!   no more neighbours within a whole number of beats than by chance.
//! - *Tail*: critical values without a formula, because parameters are estimated: found by
//!   simulation (`examples/extremes_rates.rs critical` prints them again).

use std::fmt;

use super::gpd::{Gpd, Likelihood, SHAPE_MAX, SHAPE_MIN};
use super::peaks::{BLOCKS, KEPT, Ordered};
use super::search::largest;
use super::{gev, gpd};
use crate::special::gamma_upper;

/// Fewer different values than this, and nothing can be tested.
pub(super) const LATE_MIN: usize = 900;
/// Values between the many and the few, for a test of time: at most one in a hundred.
const BETWEEN: usize = 400;
/// The most values that the end of the tail is held against: at most one in forty.
const REFERENCE: usize = 1_024;
/// Values that are fitted.
pub const FITTED: usize = 100;
/// Cycles below which nothing is extrapolated: with 10 000 half of the mixtures that the tests are
/// made to see passed them (`examples/extremes_rates.rs`).
pub const CYCLES_MIN: u64 = 40_000;

/// A test of the battery; `None` where a run has too many equal values for it.
type Run = fn(&Ordered) -> Option<Test>;

/// All of them, in the order of their cost.
const TESTS: [Run; 10] = [
    |ordered| Some(company_within(&ordered.places_in_time(late(ordered)), ordered.n)),
    |ordered| Some(company(&ordered.places_in_time(FITTED), ordered.n)),
    |ordered| {
        let why = "late cycles are more frequent in one part of the run than in another";
        Some(evenness(&ordered.places_in_time(late(ordered)), ordered.n, why))
    },
    // Between the many and the few: a rarer mechanism is drowned in the many and thin in the few.
    |ordered| {
        let why = "rather late cycles are more frequent in one part of the run than in another";
        let places = ordered.places_in_time(share(ordered, 100, BETWEEN));
        Some(evenness(&places, ordered.n, why))
    },
    |ordered| {
        let why = "the latest cycles are more frequent in one part of the run than in another";
        Some(evenness(&ordered.places_in_time(FITTED), ordered.n, why))
    },
    |ordered| Some(dispersion(&ordered.places_in_time(late(ordered)), ordered.n)),
    |ordered| Some(sizes(&ordered.values_in_time(late(ordered)))),
    |ordered| Some(blocks(ordered)),
    |ordered| Some(top(&ordered.excesses(share(ordered, 40, REFERENCE)).1)),
    |ordered| {
        let (_, excesses) = ordered.excesses(FITTED);
        Some(fitted(&excesses, &gpd::fit(&excesses, 0)?))
    },
];

/// The first test that the run fails; `None` where it passes all.
pub(super) fn first_failed(ordered: &Ordered) -> Option<Test> {
    TESTS.iter().filter_map(|test| test(ordered)).find(|test| !test.passes())
}

/// The result of every test, to find critical values and powers.
pub(super) fn results(ordered: &Ordered) -> Vec<Test> {
    TESTS.iter().filter_map(|test| test(ordered)).collect()
}

/// The number of values that stand for "late" in tests of time: at most one in ten, and one must be
/// left over for a threshold. Fewer than [`LATE_MIN`] are too few.
pub(super) fn late(ordered: &Ordered) -> usize {
    share(ordered, 10, KEPT).min(ordered.values.len().saturating_sub(1))
}

/// One in `one_in` of the cycles, `most` at most.
fn share(ordered: &Ordered, one_in: u64, most: usize) -> usize {
    usize::try_from(ordered.n / one_in).unwrap_or(most).min(most)
}

/// Correlation of block maxima; failed where a block has none.
fn blocks(ordered: &Ordered) -> Test {
    match ordered.block_maxima() {
        Some(maxima) => correlation(&maxima),
        None => Test {
            about: About::Stationarity,
            fails_when: "a whole block has no late cycle",
            name: "blocks",
            statistic: f64::INFINITY,
            limit: 0.0,
        },
    }
}

/// The subject of a test: the three conditions for an extrapolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The same distribution from the first cycle to the last.
    Stationarity,
    /// Late cycles do not come in clusters.
    Independence,
    /// One tail, of the fitted kind, up to the largest value.
    Tail,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stationarity => "stationarity",
            Self::Independence => "independence",
            Self::Tail => "tail",
        })
    }
}

/// One test with its outcome: a statistic and the critical value that it must not exceed.
///
/// Each critical value is exceeded by a stationary independent series with a tail of the assumed
/// kind in the given share of runs; all shares together stay below 8 %, so that such a run is
/// refused in fewer.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The condition that it tests.
    pub about: About,
    /// The behaviour of a series that fails it, in words.
    pub fails_when: &'static str,
    /// The name of the statistic.
    pub name: &'static str,
    /// Its value; infinite or NaN where it could not be computed, which passes nothing.
    pub statistic: f64,
    /// The critical value.
    pub limit: f64,
}

impl Test {
    /// True where the series passed.
    pub fn passes(&self) -> bool {
        // A statistic that could not be computed passes nothing.
        self.statistic <= self.limit
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { about, fails_when, name, statistic, limit } = self;
        write!(f, "the {about} test failed: {fails_when} ({name} {statistic:.2} > {limit:.2})")
    }
}

/// Exceeded in 0.75 % of runs: Kuiper's distribution.
const KUIPER: f64 = 2.042;
/// Exceeded in 0.75 % of runs: Kolmogorov's distribution.
const KOLMOGOROV: f64 = 1.671;
/// Segments of the run in which exceedances are counted.
const SEGMENTS: usize = 64;
/// Exceeded in 0.5 % of runs: χ² with 63 degrees of freedom.
const DISPERSION: f64 = 95.65;

/// Tests that exceedances are spread evenly over the n cycles, by the places of each (rising).
fn evenness(places: &[u64], n: u64, fails_when: &'static str) -> Test {
    let uniform = |&place: &u64| (place as f64 + 0.5) / n as f64;
    let each = places.iter().map(uniform).map(|at| EvenPart { from: at, to: at, count: 1 });
    let statistic = kuiper(each, places.len() as u64, places.len() as f64);
    let name = "Kuiper's V";
    Test { about: About::Stationarity, fails_when, name, statistic, limit: KUIPER }
}

/// A part of [0, 1] in which places lie evenly.
pub(crate) struct EvenPart {
    /// Its lower end.
    pub from: f64,
    /// Its upper end; the lower one again for one place.
    pub to: f64,
    /// The number of places in it.
    pub count: u64,
}

/// Kuiper's V = D⁺ + D⁻ of `total` places in [0, 1], with Stephens' factor for the sample size
/// (JRSS B 32, 1970), given by parts of [0, 1] in rising order. It detects a drift, a step, and a
/// change in the middle equally well. `independent`: places that count as independent.
pub(crate) fn kuiper(parts: impl Iterator<Item = EvenPart>, total: u64, independent: f64) -> f64 {
    let (mut seen, mut above, mut below) = (0, 0.0f64, 0.0f64);
    for EvenPart { from, to, count } in parts {
        below = below.max(from - seen as f64 / total as f64);
        seen += count;
        above = above.max(seen as f64 / total as f64 - to);
    }
    (above + below) * (independent.sqrt() + 0.155 + 0.24 / independent.sqrt())
}

/// Tests that exceedances are as many in each of 64 segments: the index of dispersion.
fn dispersion(places: &[u64], n: u64) -> Test {
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

/// Tests that exceedances are as large at one time as at another: the largest partial sum of their
/// exponential scores (Savage's) in order of time, over its standard deviation; a CUSUM.
fn sizes(values: &[f64]) -> Test {
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
fn scores(values: &[f64], score: impl Fn(f64) -> f64) -> Vec<f64> {
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

/// Tests for exceedances (places rising) that have more neighbours than by chance: pairs within 20
/// cycles, a Poisson variable for independent cycles. An extremal index below 1 means the same.
/// Each of 64 segments is taken by itself, and two with the most pairs too many are left out, so
/// that a change is not mistaken for clustering: it lies between segments, or within two at most.
fn company_within(places: &[u64], n: u64) -> Test {
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
    company_test(found, expected, "late cycles come in clusters")
}

/// Tests exceedances that are too few for segments: over the whole run, with as many more pairs
/// expected as there are in the same of 16 segments.
fn company(places: &[u64], n: u64) -> Test {
    let pairs_of = |count: f64| count * (count - 1.0);
    let same: f64 = places
        .chunk_by(|a, b| segment(*a, n, COARSE) == segment(*b, n, COARSE))
        .map(|within| pairs_of(within.len() as f64))
        .sum();
    let crowding = (COARSE as f64 * same / pairs_of(places.len() as f64)).max(1.0);
    let expected = pairs_of(places.len() as f64) * WINDOW as f64 / n as f64 * crowding;
    company_test(pairs(places) as f64, expected, "the latest cycles come in clusters")
}

/// The segment, of so many of the n cycles, that a place lies in.
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

fn company_test(pairs: f64, expected: f64, fails_when: &'static str) -> Test {
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

/// Tests that block maxima are uncorrelated: Ljung and Box's Q (Biometrika 65, 1978) of their
/// ranks.
fn correlation(maxima: &[f64]) -> Test {
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

/// Numbers of the largest values that are set apart, in turn.
const SET_APART: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Exceeded in at most 1 % of runs.
const TOP: f64 = 9.5;
/// Exceeded in at most 0.5 % of runs.
const AGREEMENT: f64 = 4.5;

/// Tests that the largest values lie where the others predict. The j largest are set apart: beyond
/// the largest of the others they may be λ times as far out, on the scale of hazards, as the common
/// distribution has them. The statistic is the largest likelihood ratio against λ = 1, over the j
/// for which λ > 1. A second mechanism that shows in few cycles stands out (the low-density
/// mixtures of TailID, ECRTS 2025), and does not hide by bending the common fit.
///
/// `excesses` fall; at least 200 of them.
fn top(excesses: &[f64]) -> Test {
    let ratios = SET_APART
        .into_iter()
        .filter(|j| 2 * j <= excesses.len())
        .filter_map(|j| Apart { excesses, j }.ratio());
    Test {
        about: About::Tail,
        fails_when: "the largest values are larger than the others predict",
        name: "likelihood ratio",
        statistic: ratios.fold(0.0, f64::max),
        limit: TOP,
    }
}

/// The j largest of falling excesses, set apart.
struct Apart<'a> {
    excesses: &'a [f64],
    j: usize,
}

/// Likelihoods at one θ = ξ/σ, with all else at its likeliest.
struct At {
    common: f64,
    apart: f64,
    /// The mean logarithm of the largest over that of the others; above 1 they are further out.
    factor: f64,
}

impl Apart<'_> {
    /// Twice the logarithm of the likelihood ratio; `None` where the largest are not further out.
    fn ratio(&self) -> Option<f64> {
        let look = |value: fn(&At) -> f64| {
            let f = |w: f64| self.at(w).as_ref().map_or(f64::NEG_INFINITY, value);
            largest(-6.0, 6.0, 36, 24, f)
        };
        let (_, common) = look(|at| at.common)?;
        let (w, apart) = look(|at| at.apart)?;
        (self.at(w)?.factor > 1.0).then_some(2.0 * (apart - common))
    }

    /// At ln(1 + θ·top) = w.
    fn at(&self, w: f64) -> Option<At> {
        // The exponential distribution is the limit; next to it is near enough.
        let w = if w.abs() < 1e-4 { 1e-4 } else { w };
        let theta = w.exp_m1() / self.excesses[0];
        let log = |y: f64| (theta * y).ln_1p();
        let (count, j) = (self.excesses.len() as f64, self.j as f64);
        let start = log(self.excesses[self.j]);
        let upper: f64 = self.excesses[..self.j].iter().map(|&y| log(y)).sum();
        let lower: f64 = self.excesses[self.j..].iter().map(|&y| log(y)).sum();
        // The common shape, and that of the others with the j largest censored.
        let (common, others) = ((upper + lower) / count, (lower + j * start) / (count - j));
        let beyond = upper / j - start;
        let factor = beyond / others;
        let regular = |shape: f64| (SHAPE_MIN..=SHAPE_MAX).contains(&shape);
        let shared = -upper - lower - count;
        Some(At {
            common: if regular(common) {
                shared - count * (common / theta).ln()
            } else {
                f64::NEG_INFINITY
            },
            apart: if regular(others) && others * factor >= SHAPE_MIN {
                shared - (count - j) * (others / theta).ln() - j * (beyond / theta).ln()
            } else {
                f64::NEG_INFINITY
            },
            factor,
        })
    }
}

/// Tests that the fitted distribution is that of the excesses (falling): Anderson and Darling's A²,
/// with critical values for estimated parameters, which depend on the shape (Choulakian and
/// Stephens, Technometrics 43, 2001).
fn fitted(excesses: &[f64], gpd: &Gpd) -> Test {
    let n = excesses.len() as f64;
    // Probabilities of being larger, rising along falling values.
    let larger: Vec<f64> = excesses.iter().map(|&y| (-gpd.hazard(y)).exp()).collect();
    let sum: f64 = (1..=excesses.len())
        .map(|i| {
            let (s, opposite) = (larger[i - 1], larger[excesses.len() - i]);
            (2 * i - 1) as f64 * (s.max(f64::MIN_POSITIVE).ln() + (-opposite).ln_1p())
        })
        .sum();
    Test {
        about: About::Tail,
        fails_when: "the largest values do not follow the fitted distribution",
        name: "Anderson-Darling A2",
        statistic: -n - sum / n,
        limit: (1.45 - 0.5 * gpd.shape).clamp(1.2, 1.6),
    }
}

/// Tests that block maxima agree: the loss of likelihood among the fitted excesses (over
/// `threshold`) at the value that a GEV of the largest of 64 blocks gives for probability `p`.
pub(super) fn agreement(
    ordered: &Ordered,
    p: f64,
    threshold: f64,
    likelihood: &Likelihood<'_>,
) -> Test {
    let gev = ordered.block_maxima().and_then(|maxima| gev::fit(&maxima));
    let statistic = gev.map_or(f64::INFINITY, |gev| {
        let cycles = ordered.n as f64 / BLOCKS as f64;
        let value = gev.exceeded_with(-((-p).ln_1p() * cycles).exp_m1());
        if value > threshold { likelihood.loss(value - threshold) } else { f64::INFINITY }
    });
    Test {
        about: About::Tail,
        fails_when: "block maxima and peaks over the threshold disagree",
        name: "likelihood ratio",
        statistic,
        limit: AGREEMENT,
    }
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

    const LONG: u64 = 1_000_000;

    #[test]
    fn loners_pass_and_couples_do_not() {
        let alone: Vec<u64> = (0..2_000).map(|i| i * 500).collect();
        assert!(company(&alone, LONG).passes() && company_within(&alone, LONG).passes());
        let couples: Vec<u64> = (0..2_000).map(|i| i / 2 * 1_000 + i % 2 * 3).collect();
        assert_eq!(company(&couples, LONG).statistic, 1_000.0);
        assert!(!company(&couples, LONG).passes() && !company_within(&couples, LONG).passes());
    }

    #[test]
    fn a_crowded_segment_is_a_change_and_no_company() {
        // A tenth of the run has ten times as many, each by itself.
        let sparse = (0..900).map(|i| i * 1_000);
        let dense = (0..1_000).map(|i| 900_000 + i * 100 + i * 7_919 % 80);
        let places: Vec<u64> = sparse.chain(dense).collect();
        assert!(company_within(&places, LONG).passes());
        let few: Vec<u64> = places.iter().copied().step_by(20).collect();
        assert!(company(&few, LONG).passes());
    }

    #[test]
    fn a_beat_is_no_company() {
        // Every fourth cycle may be late, one in fifty of them is.
        let mut rng = crate::rng::Rng::new(2);
        let places: Vec<u64> =
            (0..LONG / 4).filter(|_| rng.below(50) == 0).map(|fourth| 4 * fourth).collect();
        assert!(company_within(&places, LONG).passes(), "{:?}", company_within(&places, LONG));
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

    /// The expected order statistics of an exponential tail, falling.
    fn ideal(count: usize) -> Vec<f64> {
        let mut sum = 0.0;
        let mut rising: Vec<f64> = (1..=count)
            .map(|i| {
                sum += 1.0 / (count + 1 - i) as f64;
                sum
            })
            .collect();
        rising.reverse();
        rising
    }

    #[test]
    fn one_tail_passes_and_a_few_far_out_do_not() {
        let mut excesses = ideal(500);
        assert!(top(&excesses).passes(), "{}", top(&excesses).statistic);
        // Three of them elsewhere.
        excesses[..3].iter_mut().for_each(|y| *y += 25.0);
        assert!(!top(&excesses).passes());
        // An end that comes sooner than expected is not further out.
        let mut short = ideal(500);
        short[..3].iter_mut().for_each(|y| *y = 4.5 + 0.01 * *y);
        assert!(top(&short).passes());
    }

    #[test]
    fn two_heaps_are_no_tail() {
        let excesses = ideal(100);
        let gpd = gpd::fit(&excesses, 0).unwrap();
        assert!(fitted(&excesses, &gpd).passes());
        let heaps: Vec<f64> =
            excesses.iter().map(|y| if *y > 0.7 { 9.0 + 0.1 * y } else { *y }).collect();
        let gpd = gpd::fit(&heaps, 0).unwrap();
        assert!(!fitted(&heaps, &gpd).passes(), "{}", fitted(&heaps, &gpd));
    }
}
