//! One cycle of a periodic loop as it is recorded, and as sixteen bytes.
//!
//! For the ring that stores it, the drain that writes it and the analysis that reads it.
//! Touches nothing; never interprets what it holds.

use crate::cycle::Job;
use crate::time::{Instant, Span};

/// The largest cycle number that a sample can hold: 2⁵⁶ − 1, 2 284 years at 1 MHz.
pub const CYCLE_MAX: u64 = (1 << 56) - 1;

/// Bytes of a sample in a file: two little-endian words.
pub const SAMPLE_BYTES: usize = 16;

/// Remarks on a cycle in addition to its lateness: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// Nothing special.
    pub const NONE: Self = Self(0);
    /// The first cycle of a segment: the loop did not run just before it, so that it has no
    /// interval.
    pub const FIRST: Self = Self(1);
    /// One of the first cycles of a segment: caches and predictors may still be cold.
    pub const COLD: Self = Self(2);

    /// Both sets together.
    ///
    /// # Real-time: in loop
    #[inline]
    #[must_use]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// True where all of `flags` is set.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The flags as they are stored; unknown bits are kept.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Flags from their stored form; unknown bits are kept.
    ///
    /// # Real-time: reader side
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
}

/// One recorded cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// k: the release was at `epoch + k·period`. In [0, `CYCLE_MAX`].
    pub cycle: u64,
    /// wake − release.
    pub lateness: Span,
    /// Its flags.
    pub flags: Flags,
}

impl Sample {
    /// The sample as two words: flags in the top byte over the cycle number, then the lateness.
    ///
    /// # Real-time: in loop
    #[inline]
    pub const fn to_words(self) -> [u64; 2] {
        [
            ((self.flags.bits() as u64) << 56) | (self.cycle & CYCLE_MAX),
            self.lateness.as_ns().cast_unsigned(),
        ]
    }

    /// The sample that `to_words` gave.
    ///
    /// # Real-time: reader side
    #[inline]
    pub const fn from_words(words: [u64; 2]) -> Self {
        Self {
            cycle: words[0] & CYCLE_MAX,
            lateness: Span::from_ns(words[1].cast_signed()),
            flags: Flags::from_bits((words[0] >> 56) as u8),
        }
    }

    /// The sample as in a file.
    ///
    /// # Real-time: reader side
    #[inline]
    pub fn to_bytes(self) -> [u8; SAMPLE_BYTES] {
        let [low, high] = self.to_words();
        (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
    }

    /// The sample from the bytes of a file.
    ///
    /// # Real-time: reader side
    #[inline]
    pub fn from_bytes(bytes: &[u8; SAMPLE_BYTES]) -> Self {
        let words = u128::from_le_bytes(*bytes);
        Self::from_words([words as u64, (words >> 64) as u64])
    }
}

/// The samples of a loop's cycles in turn: the first one has no interval to one before, and some at
/// the start are cold.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    next: Flags,
    cold: u32,
}

impl Beginning {
    /// A loop that begins, of which so many cycles count as cold.
    ///
    /// # Real-time: in loop
    pub const fn new(cold: u32) -> Self {
        Self { next: Flags::FIRST, cold }
    }

    /// The sample of the next cycle, which started at `start`.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn sample(&mut self, job: &Job, start: Instant) -> Sample {
        self.sample_of(job.cycle, start - job.release, job.passed)
    }

    /// The sample of the next cycle, of this number and lateness. One that let releases pass before
    /// it started is not cold: no cache costs a period.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn sample_of(&mut self, cycle: u64, lateness: Span, passed: u64) -> Sample {
        let mut flags = core::mem::replace(&mut self.next, Flags::NONE);
        if self.cold > 0 {
            self.cold -= 1;
            if passed == 0 {
                flags = flags.with(Flags::COLD);
            }
        }
        Sample { cycle, lateness, flags }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Period;

    #[test]
    fn survives_words_and_bytes() {
        for sample in [
            Sample::default(),
            Sample {
                cycle: CYCLE_MAX,
                lateness: Span::from_ns(i64::MIN),
                flags: Flags::FIRST.with(Flags::COLD),
            },
            Sample { cycle: 7, lateness: Span::from_ns(-1), flags: Flags::from_bits(0x80) },
        ] {
            assert_eq!(Sample::from_words(sample.to_words()), sample);
            assert_eq!(Sample::from_bytes(&sample.to_bytes()), sample);
        }
    }

    #[test]
    fn the_first_cycles_are_cold_but_those_that_let_releases_pass() {
        let period = Period::from_ns(100).unwrap();
        let mut beginning = Beginning::new(3);
        let mut flags = |cycle, late_ns| {
            let (release, lateness) = (Instant::from_ns(1_000), Span::from_ns(late_ns));
            let (next, passed) = (release + period.as_span(), (late_ns / 100) as u64);
            let job = Job { rank: 0, cycle, part: 0, release, next, missed: 0, passed, period };
            let sample = beginning.sample(&job, release + lateness);
            assert_eq!((sample.cycle, sample.lateness), (cycle, lateness));
            sample.flags
        };
        assert_eq!(flags(0, 99), Flags::FIRST.with(Flags::COLD));
        assert_eq!(flags(1, 250), Flags::NONE);
        assert_eq!(flags(4, 7), Flags::COLD);
        assert_eq!(flags(5, 7), Flags::NONE);
    }

    #[test]
    fn flags_are_sets() {
        let first_and_cold = Flags::FIRST.with(Flags::COLD);
        assert!(
            first_and_cold.has(Flags::FIRST)
                && first_and_cold.has(Flags::COLD)
                && first_and_cold.has(Flags::NONE)
        );
        assert!(!Flags::COLD.has(first_and_cold));
    }
}
