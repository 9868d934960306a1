//! Writes a sample file of N made-up samples, to see how fast and in how little memory it is read:
//! `cargo run --release -p punctual --example synthesize -- FILE 100000000`.
//!
//! Lateness is a body of 4 to 12 µs with a tail to 1 ms, from a fixed generator. Prints nothing.

use std::fs::File;
use std::sync::atomic::AtomicU64;

use punctual_core::ring::{SplitRing, split, words};
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::Span;
use punctual_engine::drain::{Drainage, SampleFile, Sink};

struct Nowhere;

impl Sink for Nowhere {
    fn take(&mut self, _: usize, _: &[Sample]) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(n)) = (args.next(), args.next()) else {
        return Err("name a file and a number of samples".into());
    };
    let info = r#"{"tool":"synthesize","runs":[{"name":"made up","period_ns":1000000}]}"#;
    let storage: Vec<AtomicU64> = (0..words(1 << 14)).map(|_| AtomicU64::new(0)).collect();
    let SplitRing { ring: mut recorder, drain, view } =
        split(&storage).ok_or("too little storage")?;
    let file = SampleFile::begin(File::create(path)?, info, 1)?;
    let mut drainage = Drainage::new(vec![(drain, view)], Nowhere, Some(file));
    let mut state = 1u64;
    for cycle in 0..n.parse::<u64>()? {
        // A linear congruential generator (Knuth, MMIX): quick and the same everywhere.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (body, tail) = ((state >> 40) & 0x1fff, (state >> 20) & 0xfffff);
        let rare = (state >> 53).is_multiple_of(1_000);
        let lateness_ns = 4_000 + body + if rare { tail } else { 0 };
        let flags = if cycle == 0 { Flags::FIRST } else { Flags::NONE };
        recorder.push(Sample { cycle, lateness: Span::from_ns(lateness_ns.cast_signed()), flags });
        if cycle % (1 << 14) == (1 << 14) - 1 {
            drainage.empty();
        }
    }
    match drainage.finish(false) {
        (_, None) => Ok(()),
        (_, Some(why)) => Err(why.into()),
    }
}
