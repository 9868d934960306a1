//! Samples by the block: most of a recording, one pass for each accumulator.
//!
//! A block is at most [`BLOCK`] cycles without a gap or a flag, each within 67 ms of its release:
//! their sums fit in words, none starts or ends anything, and each accumulator keeps its state in
//! registers while it passes over them. The result is exactly that of `Recording::push` sample by
//! sample; every other sample goes there.

use punctual_core::sample::{Flags, Sample};

use super::{Kept, Recording, ReleaseInstants, ReleaseKind};

/// The most samples at once.
pub(crate) const BLOCK: usize = 256;
/// Lateness within ± this: 256 squares of intervals, of twice that, fit in 2⁶².
const NEAR_NS: i64 = 1 << 26;

/// Neighbouring cycles, and the intervals that lead to them.
struct Block {
    first_cycle: u64,
    len: usize,
    lateness_ns: [i64; BLOCK],
    interval_ns: [i64; BLOCK],
}

impl Block {
    const EMPTY: Self =
        Self { first_cycle: 0, len: 0, lateness_ns: [0; BLOCK], interval_ns: [0; BLOCK] };

    /// Holds `samples` from now on, which follow on `previous`; false where they are no block. In
    /// place, because returning a value of this size costs more than filling it.
    fn hold(&mut self, previous: &Sample, samples: &[Sample]) -> bool {
        let Some(first_cycle) = samples.first().map(|sample| sample.cycle) else { return false };
        if previous.cycle.checked_add(1) != Some(first_cycle) || samples.len() > BLOCK {
            return false;
        }
        (self.first_cycle, self.len) = (first_cycle, samples.len());
        let mut last_ns = previous.lateness.as_ns();
        // Bits that must all be 0: one pass without a branch.
        let mut odd = far(last_ns);
        let slots = self.lateness_ns.iter_mut().zip(&mut self.interval_ns);
        for ((cycle, sample), (lateness, interval)) in (first_cycle..).zip(samples).zip(slots) {
            let ns = sample.lateness.as_ns();
            odd |= far(ns) | (sample.cycle ^ cycle) | u64::from(sample.flags.bits());
            *lateness = ns;
            *interval = ns.wrapping_sub(last_ns);
            last_ns = ns;
        }
        odd == 0
    }
}

/// 0 for a lateness in [−2²⁶, 2²⁶) ns.
#[inline]
fn far(ns: i64) -> u64 {
    ns.wrapping_add(NEAR_NS).cast_unsigned() >> (NEAR_NS.trailing_zeros() + 1)
}

impl Recording {
    /// Takes in a block of samples.
    pub fn extend(&mut self, samples: &[Sample]) {
        let mut block = Block::EMPTY;
        for some in samples.chunks(BLOCK) {
            let known = matches!(self.setup.releases, ReleaseInstants::Known);
            match self.walk.follows().filter(|_| known) {
                Some(previous) if block.hold(previous, some) => {
                    self.push_block(&block, some);
                }
                _ => some.iter().for_each(|sample| self.push(sample)),
            }
        }
    }

    fn push_block(&mut self, block: &Block, samples: &[Sample]) {
        debug_assert!(samples.iter().all(|sample| sample.flags == Flags::NONE));
        let lateness_ns = &block.lateness_ns[..block.len];
        let interval_ns = &block.interval_ns[..block.len];
        self.walk.stride(block.len as u64, samples.last());
        self.interval.extend_near(interval_ns);
        self.requested.extend(interval_ns);
        if let Some(grid) = &mut self.grid {
            grid.extend_near(block.first_cycle, lateness_ns);
        }
        let largest_ns = self.lateness.extend_near(lateness_ns);
        self.exceedances.extend(lateness_ns);
        self.peaks.extend(lateness_ns, largest_ns);
        if self.worst.takes(largest_ns) {
            for (cycle, &ns) in (block.first_cycle..).zip(lateness_ns) {
                let kind = ReleaseKind::Ran;
                self.worst.push(Kept { lateness_ns: ns, cycle, deviation_ns: ns, kind });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RecordingConfig, RunFigures};
    use super::*;
    use crate::claim::ask::Ask;
    use proptest::prelude::*;
    use punctual_core::time::{Instant, Period, Span};

    fn outcome(
        setup: &RecordingConfig,
        requested: &[Ask],
        samples: &[Sample],
        at_once: bool,
    ) -> RunFigures {
        let mut recording = Recording::new(setup.clone()).watching(requested);
        if at_once {
            recording.extend(samples);
        } else {
            samples.iter().for_each(|sample| recording.push(sample));
        }
        recording.finish(0)
    }

    /// Blocks with what ends them: gaps, flags, stalls, steps back, absurd values.
    fn recordings() -> impl Strategy<Value = Vec<Sample>> {
        let lateness = prop_oneof![
            60 => 2_000i64..9_000,
            6 => -50_000i64..200_000,
            1 => -100_000_000i64..100_000_000,
        ];
        let odd = prop_oneof![
            400 => Just((1u64, Flags::NONE, 0i64)),
            1 => (2u64..9, Just(Flags::NONE), Just(0i64)),
            1 => (1u64..9, Just(Flags::FIRST.with(Flags::COLD)), Just(0i64)),
            1 => Just((1, Flags::COLD, 0)),
            1 => Just((1, Flags::NONE, 1i64 << 40)),
        ];
        (0u64..1 << 40, prop::collection::vec((odd, lateness), 0..6_000)).prop_map(
            |(mut k, all)| {
                let samples = all.into_iter().map(|((step, flags, stall), lateness)| {
                    k += step;
                    Sample { cycle: k, lateness: Span::from_ns(lateness + stall), flags }
                });
                samples.collect()
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_block_gives_what_its_samples_give(
            samples in recordings(), leave_out_cold: bool, with_period: bool, asks: bool,
        ) {
            let setup = RecordingConfig {
                period: Period::from_ns(1_000_000).filter(|_| with_period),
                epoch: Instant::from_ns(7),
                leave_out_cold,
                ..RecordingConfig::default()
            };
            let ask = |text: &str| text.parse::<Ask>().unwrap();
            let requested = ["p(|interval|>5us)<1e-3", "p(missed)<1e-3"].map(ask);
            let requested = if asks { &requested[..] } else { &[] };
            let of = |at_once| outcome(&setup, requested, &samples, at_once);
            let [one, all] = [false, true].map(of);
            prop_assert_eq!(format!("{one:?}"), format!("{all:?}"));
        }
    }

    #[test]
    fn the_border_of_what_is_near_is_exact() {
        assert_eq!([far(NEAR_NS - 1), far(-NEAR_NS), far(0)], [0; 3]);
        assert!(far(NEAR_NS) > 0 && far(-NEAR_NS - 1) > 0 && far(i64::MIN) > 0);
    }
}
