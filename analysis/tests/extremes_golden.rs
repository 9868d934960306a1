//! Fits and intervals against scipy and pyextremes: `fixtures/extremes/golden.json`, which
//! `golden.py` beside it wrote from the same run.

use punctual_analysis::extremes::gpd::Gpd;
use punctual_analysis::extremes::peaks::Peaks;
use punctual_analysis::extremes::{CUT, Tail, gev};
use serde_json::Value;

const CYCLES: usize = 40_960;
const GOLDEN: &str = include_str!("../../fixtures/extremes/golden.json");

/// The run of `golden.py`: splitmix64 from 1, and nothing but exact operations.
fn run() -> Vec<i64> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let uniform = (((z ^ (z >> 31)) >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
        (40_000.0 * ((1.0 / uniform).sqrt().sqrt() - 1.0)).floor() as i64
    };
    (0..CYCLES).map(|_| next()).collect()
}

fn golden() -> Value {
    serde_json::from_str(GOLDEN).unwrap()
}

fn near(ours: f64, theirs: &Value, share: f64) {
    let theirs = theirs.as_f64().unwrap();
    assert!((ours / theirs - 1.0).abs() < share, "{ours} is not {theirs}");
}

fn tail() -> Tail {
    let mut peaks = Peaks::default();
    run().into_iter().for_each(|ns| peaks.push(ns));
    Tail::accepted(&peaks, 0).unwrap()
}

#[test]
fn peaks_over_the_threshold_agree_with_scipy() {
    let (golden, tail) = (golden(), tail());
    near(CUT, &golden["cut"], 1e-12);
    for decades in 0..3i32 {
        let found = tail.at(10f64.powi(-decades) / CYCLES as f64).unwrap();
        let theirs = &golden["scipy_pot"][decades.to_string()];
        near(found.threshold_ns, &golden["threshold"], 1e-4);
        let Gpd { scale, shape } = found.fitted;
        near(shape, &theirs["shape"], 1e-3);
        near(scale, &theirs["scale"], 1e-3);
        near(found.value_ns.estimate - found.threshold_ns, &theirs["estimate"], 1e-3);
        near(found.value_ns.lower - found.threshold_ns, &theirs["lower"], 1e-3);
        near(found.value_ns.upper - found.threshold_ns, &theirs["upper"], 1e-3);
    }
}

#[test]
fn peaks_over_the_threshold_agree_with_pyextremes() {
    let (golden, tail) = (golden(), tail());
    for decades in 0..3i32 {
        let found = tail.at(10f64.powi(-decades) / CYCLES as f64).unwrap();
        near(found.value_ns.estimate, &golden["pyextremes_pot"][decades.to_string()], 1e-3);
    }
}

#[test]
fn block_maxima_agree_with_both() {
    let golden = golden();
    let run = run();
    let maxima: Vec<f64> = run
        .chunks(CYCLES / 64)
        .filter_map(|block| block.iter().max())
        .map(|&ns| ns as f64)
        .collect();
    let found = gev::fit(&maxima).unwrap();
    for theirs in [&golden["scipy_bm"], &golden["pyextremes_bm"]] {
        near(found.shape, &theirs["shape"], 2e-3);
        near(found.location, &theirs["location"], 1e-3);
        near(found.scale, &theirs["scale"], 1e-3);
    }
    near(found.exceeded_with(1e-4), &golden["scipy_bm"]["value"], 2e-3);
}
