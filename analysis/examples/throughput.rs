//! Prints how many samples a second each part of the analysis takes in, on synthetic wakes.
//!
//! `cargo run --release -p punctual-analysis --example throughput [MILLIONS]`. Says what it saw;
//! judges nothing.

use std::hint::black_box;
use std::time::Instant;

use punctual_analysis::claim::dependence::Exceedances;
use punctual_analysis::extremes::peaks::Peaks;
use punctual_analysis::gridfit::GridFit;
use punctual_analysis::recording::{Recording, Setup};
use punctual_analysis::summary::Distribution;
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::{Period, Span};

/// A block of wakes: a body around 7.6 µs, one in 256 later, one in 65 536 much later.
fn wakes(first: u64, state: &mut u64, samples: &mut [Sample]) {
    for (i, sample) in samples.iter_mut().enumerate() {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = z ^ (z >> 27);
        let body = 6_000 + (z & 0x7ff) as i64 + ((z >> 11) & 0x3ff) as i64;
        let late = if (z >> 40) & 0xff == 0 { ((z >> 22) & 0x3_ffff) as i64 } else { 0 };
        let very = if z >> 48 == 0 { 1_000_000 } else { 0 };
        *sample = Sample {
            cycle: first + i as u64,
            lateness: Span::from_ns(body + late + very),
            flags: Flags::NONE,
        };
    }
}

/// Feeds `n` wakes to `take`, and prints the rate without the cost of making them.
fn timed(name: &str, n: u64, mut take: impl FnMut(&[Sample])) {
    let mut samples = vec![Sample::default(); 65_536];
    let (mut state, mut spent, mut done) = (1, 0.0, 0);
    while done < n {
        wakes(done, &mut state, &mut samples);
        let start = Instant::now();
        take(black_box(&samples));
        spent += start.elapsed().as_secs_f64();
        done += samples.len() as u64;
    }
    println!(
        "{name:>12}  {:6.1} M samples/s  {:5.1} ns each",
        done as f64 / spent / 1e6,
        spent / done as f64 * 1e9
    );
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20);
    let n = millions * 1_000_000;
    let Some(period) = Period::from_ns(1_000_000) else { return };
    let mut distribution = Distribution::default();
    timed("distribution", n, |samples| {
        samples.iter().for_each(|s| distribution.push(s.lateness.as_ns()));
    });
    let mut grid = GridFit::new(period);
    timed("grid fit", n, |samples| {
        samples.iter().for_each(|s| grid.push(s.cycle, s.lateness.as_ns()));
    });
    let mut exceedances = Exceedances::new(1_000_000, &[]);
    timed("exceedances", n, |samples| {
        samples.iter().for_each(|s| exceedances.push(s.lateness.as_ns(), 0, 0));
    });
    let mut peaks = Peaks::default();
    timed("peaks", n, |samples| {
        samples.iter().for_each(|s| peaks.push(s.lateness.as_ns()));
    });
    let mut recording = Recording::new(Setup { period: Some(period), ..Setup::default() });
    timed("recording", n, |samples| recording.extend(samples));
    let start = Instant::now();
    let outcome = recording.finish(0);
    println!("finish {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    println!("{:?}\n{:?}", outcome.lateness_ns, outcome.grid);
    for cluster in &outcome.histogram.clusters {
        println!("{cluster:?}");
    }
    for claim in &outcome.claims {
        println!("{:?} {}: {}", claim.level, claim.statement, claim.given);
    }
    black_box((peaks, distribution, grid.finish(), exceedances.finish(0)));
}
