//! Samples a second that the analysis takes in, without any file:
//! `cargo run --release -p punctual-analysis --example throughput -- [SAMPLES]`.
//!
//! Lateness is a body of 4 to 12 µs with a tail to 1 ms, from a fixed generator. Alternates between
//! samples one by one and in blocks, five times, and prints each with the median.

use std::time::Instant;

use punctual_analysis::recording::{Recording, RecordingConfig};
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::{Period, Span};

/// Samples in a block, as a sample file has them.
const BLOCK: usize = 1 << 14;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let samples: u64 = std::env::args().nth(1).map_or(Ok(10_000_000), |text| text.parse())?;
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        for (at_once, rates) in [false, true].into_iter().zip(&mut rates) {
            rates.push(rate(samples, at_once));
        }
    }
    for (how, mut rates) in ["one by one", "in blocks"].into_iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        let shown: Vec<String> = rates.iter().map(|rate| format!("{:.1}", rate / 1e6)).collect();
        println!("{how:10}  median {:.1} M/s  of {}", rates[2] / 1e6, shown.join(" "));
    }
    Ok(())
}

/// Samples a second, made-up ones not counted.
fn rate(samples: u64, at_once: bool) -> f64 {
    let setup =
        RecordingConfig { period: Period::from_ns(1_000_000), ..RecordingConfig::default() };
    let mut recording = Recording::new(setup);
    let (mut state, mut cycle, mut spent) = (1u64, 0u64, 0.0);
    let mut block = Vec::with_capacity(BLOCK);
    while cycle < samples {
        block.clear();
        block.extend((cycle..cycle + BLOCK as u64).map(|cycle| sample(cycle, &mut state)));
        cycle += BLOCK as u64;
        let start = Instant::now();
        if at_once {
            recording.extend(&block);
        } else {
            block.iter().for_each(|sample| recording.push(sample));
        }
        spent += start.elapsed().as_secs_f64();
    }
    assert_eq!(recording.finish(0).cycles, cycle);
    cycle as f64 / spent
}

/// The next of a linear congruential generator (Knuth, MMIX): quick and the same everywhere.
fn sample(cycle: u64, state: &mut u64) -> Sample {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let (body, tail) = ((*state >> 40) & 0x1fff, (*state >> 20) & 0xfffff);
    let rare = (*state >> 53).is_multiple_of(1_000);
    let lateness = Span::from_ns((4_000 + body + if rare { tail } else { 0 }).cast_signed());
    Sample { cycle, lateness, flags: if cycle == 0 { Flags::FIRST } else { Flags::NONE } }
}
