//! The tests of a run that need no extrapolation, in the order of their cost.
//!
//! Three sets of largest values: many for what changes with time, fewer for what a tail is, and the
//! fewest to fit, because only the very end of a tail is near its limit. None is larger than a
//! fixed share of the cycles.

use super::peaks::{KEPT, Ordered};
use super::test::{About, Test};
use super::{gpd, independence, stationarity, tail};

/// Fewer different values than this, and nothing can be tested.
pub(super) const LATE_MIN: usize = 900;
/// Values between the many and the few, for a test of time: at most one in a hundred.
const BETWEEN: usize = 400;
/// Values that are fitted.
pub const FITTED: usize = 100;
/// Cycles below which nothing is extrapolated: with 10 000 half of the mixtures that the tests are
/// made to see passed them (`examples/extremes_rates.rs`).
pub const CYCLES_MIN: u64 = 40_000;

/// One test of the battery; `None` where a run has too many equal values for it.
type Run = fn(&Ordered) -> Option<Test>;

/// All of them, in order.
const TESTS: [Run; 10] = [
    company,
    company_at_top,
    evenness,
    evenness_between,
    evenness_at_top,
    dispersion,
    sizes,
    blocks,
    top,
    fitted,
];

/// The first test that the run fails; `Ok` with none.
pub(super) fn first_failed(ordered: &Ordered) -> Option<Test> {
    TESTS.iter().filter_map(|test| test(ordered)).find(|test| !test.passes())
}

/// The result of every test, to find critical values and powers.
pub(super) fn all(ordered: &Ordered) -> Vec<Test> {
    TESTS.iter().filter_map(|test| test(ordered)).collect()
}

/// How many values stand for "late" in tests of time: at most one in ten, and one must be left over
/// for a threshold. Fewer than [`LATE_MIN`] are too few.
pub(super) fn late(ordered: &Ordered) -> usize {
    share(ordered, 10, KEPT).min(ordered.values.len().saturating_sub(1))
}

/// How many values the end of the tail is held against: at most one in forty.
fn reference(ordered: &Ordered) -> usize {
    share(ordered, 40, 1_024)
}

fn share(ordered: &Ordered, one_in: u64, most: usize) -> usize {
    usize::try_from(ordered.n / one_in).unwrap_or(most).min(most)
}

fn evenness(ordered: &Ordered) -> Option<Test> {
    let what = "late cycles are more frequent in one part of the run than in another";
    let places = ordered.places_in_time(late(ordered));
    Some(stationarity::evenness(&places, ordered.n, what))
}

/// Between the many and the few: a rarer mechanism is drowned in the many and thin in the few.
fn evenness_between(ordered: &Ordered) -> Option<Test> {
    let what = "rather late cycles are more frequent in one part of the run than in another";
    let places = ordered.places_in_time(share(ordered, 100, BETWEEN));
    Some(stationarity::evenness(&places, ordered.n, what))
}

fn dispersion(ordered: &Ordered) -> Option<Test> {
    Some(stationarity::dispersion(&ordered.places_in_time(late(ordered)), ordered.n))
}

fn sizes(ordered: &Ordered) -> Option<Test> {
    Some(stationarity::sizes(&ordered.values_in_time(late(ordered))))
}

fn evenness_at_top(ordered: &Ordered) -> Option<Test> {
    let what = "the latest cycles are more frequent in one part of the run than in another";
    Some(stationarity::evenness(&ordered.places_in_time(FITTED), ordered.n, what))
}

fn company(ordered: &Ordered) -> Option<Test> {
    Some(independence::company_within(&ordered.places_in_time(late(ordered)), ordered.n))
}

fn company_at_top(ordered: &Ordered) -> Option<Test> {
    let places = ordered.places_in_time(FITTED);
    Some(independence::company(&places, ordered.n))
}

fn blocks(ordered: &Ordered) -> Option<Test> {
    match ordered.block_maxima() {
        Some(maxima) => Some(independence::correlation(&maxima)),
        None => Some(Test {
            about: About::Stationarity,
            fails_when: "a whole block has no late cycle",
            name: "blocks",
            statistic: f64::INFINITY,
            limit: 0.0,
        }),
    }
}

fn top(ordered: &Ordered) -> Option<Test> {
    Some(tail::top(&ordered.excesses(reference(ordered)).1))
}

fn fitted(ordered: &Ordered) -> Option<Test> {
    let (_, excesses) = ordered.excesses(FITTED);
    Some(tail::fitted(&excesses, &gpd::fit(&excesses, 0)?))
}
