//! The cost of recording a sample: in a hot loop, and inside a real cycle where all is cold.
//!
//! For `check` and `measure`, which report it with their numbers. Measures on the calling thread;
//! never prints.

use std::sync::atomic::AtomicU64;

use punctual_core::clock::Clock;
use punctual_engine::clocks::MachineClock;

use punctual_core::ring::{SplitRing, split, words};
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::Span;

/// Costs of one recorded sample, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordCost {
    /// In a loop that does nothing else: median over batches, the empty loop subtracted.
    pub hot_ns: f64,
    /// Median of single pushes, one after each sleep of a millisecond, stamps subtracted.
    pub cold_ns: f64,
    /// Number of single pushes.
    pub cold_n: u32,
}

/// Samples in a batch, all of which fit in the ring, and batches.
const BATCH: u64 = 4_000;
const BATCHES: usize = 51;

impl RecordCost {
    /// Measures for about `cold_n` milliseconds.
    ///
    /// `None` when the storage could not be laid out.
    pub fn measure(clock: &mut MachineClock, cold_n: u32) -> Option<Self> {
        Some(Self { hot_ns: hot(clock)?, cold_ns: cold(clock, cold_n)?, cold_n })
    }
}

fn sample(cycle: u64) -> Sample {
    // Spread as real lateness is: 4 to 12 µs.
    let lateness = Span::from_ns(4_000 + (cycle.wrapping_mul(2_654_435_761) & 8191).cast_signed());
    Sample { cycle, lateness, flags: Flags::NONE }
}

fn hot(clock: &mut MachineClock) -> Option<f64> {
    let storage: Vec<AtomicU64> = (0..words(4096)).map(|_| AtomicU64::new(0)).collect();
    let SplitRing { ring: mut recorder, mut drain, .. } = split(&storage)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        with.push(batch(clock, |sample| recorder.push(sample)));
        while drain.pop().is_some() {}
        without.push(batch(clock, |_| ()));
    }
    Some((median(with)? - median(without)?).max(0.0))
}

/// Cost of one call for one sample, in ns, over a batch of made-up ones.
fn batch(clock: &mut MachineClock, mut keep: impl FnMut(Sample)) -> f64 {
    let before = clock.wake();
    for cycle in 0..BATCH {
        keep(sample(std::hint::black_box(cycle)));
    }
    (clock.wake() - before).as_ns() as f64 / BATCH as f64
}

fn cold(clock: &mut MachineClock, n: u32) -> Option<f64> {
    let storage: Vec<AtomicU64> = (0..words(4096)).map(|_| AtomicU64::new(0)).collect();
    let SplitRing { ring: mut recorder, mut drain, .. } = split(&storage)?;
    let mut at = clock.wake();
    let (mut costs, mut stamps) = (Vec::new(), Vec::new());
    for cycle in 0..u64::from(n) {
        at += Span::from_ms(1);
        clock.sleep_until(at);
        clock.wake();
        let before = clock.now();
        recorder.push(std::hint::black_box(sample(cycle)));
        let between = clock.now();
        let after = clock.now();
        costs.push((between - before).as_ns() as f64);
        stamps.push((after - between).as_ns() as f64);
        drain.pop();
    }
    Some((median(costs)? - median(stamps)?).max(0.0))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recording_is_measured_and_not_free() {
        let cost = RecordCost::measure(&mut MachineClock::best(), 20).expect("storage fits");
        assert!(cost.hot_ns >= 0.0 && cost.cold_ns >= 0.0 && cost.cold_n == 20);
        let storage: Vec<AtomicU64> = (0..words(4096)).map(|_| AtomicU64::new(0)).collect();
        let SplitRing { ring: mut recorder, view, .. } = split(&storage).expect("fits");
        let mut clock = MachineClock::best();
        assert!(batch(&mut clock, |sample| recorder.push(sample)) > 0.0);
        assert_eq!((view.count(), view.unrecorded()), (BATCH, 0), "what is measured is recording");
    }
}
