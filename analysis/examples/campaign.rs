//! The rate at which a campaign takes cycles in: `cargo run --release --example campaign [CYCLES]`.
//!
//! 10⁸ cycles unless given otherwise, in hours of 3.6 million, each added up and written as bytes.

use std::collections::BTreeMap;
use std::time::Instant as Now;

use punctual_analysis::campaign::{
    Campaign, Effort, Extent, RunSetup, Setup, Start, WatchedThresholds,
};
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::{Instant, Period, Span};

/// Cycles of an hour at 1 ms.
const HOUR: u64 = 3_600_000;

fn main() {
    let cycles = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000_000);
    let period = Period::from_ns(1_000_000).expect("positive");
    let setup = Setup { runs: vec![RunSetup::default()], facts: BTreeMap::new() };
    let mut campaign = Campaign::new("example", BTreeMap::new(), BTreeMap::new(), 0);
    campaign.begin("boot", "", 0);
    let samples: Vec<Sample> = (0..1 << 16)
        .map(|cycle: u64| {
            let mixed = cycle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let tail = if mixed.is_multiple_of(997) { mixed % 300_000 } else { 0 };
            let lateness = Span::from_ns((5_000 + mixed % 4_000 + tail) as i64);
            Sample { cycle, lateness, flags: Flags::NONE }
        })
        .collect();
    let begun = Now::now();
    let mut left = cycles;
    let mut bytes = 0;
    while left > 0 {
        let hour = left.min(HOUR);
        let (pool, _) = campaign.pool(&setup).expect("one setup has room");
        let epoch = Instant::from_ns(0);
        let start = Start { period, epoch, time_of_day_ns: 0, leave_out_cold: true, boot: 1 };
        let mut batch = campaign.batch(pool, &[start], &WatchedThresholds::default());
        for cycle in 0..hour {
            let sample = samples[(cycle % samples.len() as u64) as usize];
            batch.collectors[0].push(&Sample { cycle, ..sample });
        }
        let extent = Extent { efforts: vec![Effort::default()], ..Extent::default() };
        campaign.add(batch, &extent);
        bytes = campaign.to_bytes(0).len();
        left -= hour;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let total = &campaign.pools()[0].totals()[0];
    let outcome = total.outcome();
    println!(
        "{} cycles in {seconds:.2} s, {:.1} M cycles/s; {bytes} bytes of state; {} claims",
        outcome.cycles,
        outcome.cycles as f64 / seconds / 1e6,
        outcome.claims.len()
    );
}
