//! The figures of a session: counts, and latencies in buckets a thirty-second wide.

use core::fmt::{Result, Write};

/// Parts of each power of two.
const PARTS: u64 = 32;
const PART_BITS: u32 = PARTS.trailing_zeros();
/// Powers of two above the exact ones: up to 2³⁶ ticks, nine minutes at 125 MHz.
const POWERS: usize = 32;
const BUCKETS: usize = PARTS as usize * (POWERS + 1);

/// Latencies in ticks; those beyond the last bucket are in it.
#[derive(Debug)]
pub struct Latencies {
    buckets: [u32; BUCKETS],
    count: u32,
    least: u64,
    largest: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// None yet.
    pub const fn new() -> Self {
        Self { buckets: [0; BUCKETS], count: 0, least: u64::MAX, largest: 0 }
    }

    fn bucket(ticks: u64) -> usize {
        if ticks < PARTS {
            return ticks as usize;
        }
        let power = ticks.ilog2() - PART_BITS;
        let part = (ticks >> power) - PARTS;
        ((u64::from(power) + 1) * PARTS + part).min(BUCKETS as u64 - 1) as usize
    }

    /// The largest value of a bucket.
    fn end(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        if bucket < PARTS {
            return bucket;
        }
        let power = bucket / PARTS - 1;
        ((bucket % PARTS + PARTS + 1) << power) - 1
    }

    /// Takes in one.
    pub fn push(&mut self, ticks: u64) {
        let bucket = &mut self.buckets[Self::bucket(ticks)];
        *bucket = bucket.saturating_add(1);
        self.count = self.count.saturating_add(1);
        self.least = self.least.min(ticks);
        self.largest = self.largest.max(ticks);
    }

    /// Number of latencies.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The value of rank ⌈n·parts/whole⌉, rounded up by a thirty-second at most; `None` where n is
    /// too small for it: fewer than `whole / (whole − parts)`.
    pub fn quantile(&self, parts: u32, whole: u32) -> Option<u64> {
        let n = u64::from(self.count);
        if n * u64::from(whole - parts) < u64::from(whole) && n < u64::from(whole) {
            return None;
        }
        let rank = (n * u64::from(parts)).div_ceil(u64::from(whole)).max(1);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return Some(Self::end(bucket).min(self.largest));
            }
        }
        None
    }

    /// The least and the largest one, exact; `None` without any.
    pub fn ends(&self) -> Option<(u64, u64)> {
        (self.count > 0).then_some((self.least, self.largest))
    }
}

/// The counts and latencies of a session.
#[derive(Debug, Default)]
pub struct SessionFigures {
    /// Stimuli that were sent.
    pub stimuli: u32,
    /// Stimuli that were not, because the board was late by a period or the line was full.
    pub not_sent: u32,
    /// Of the first ones, those that were answered when the next was due, or later.
    pub late: u32,
    /// Answers to a stimulus that had its answer.
    pub duplicates: u32,
    /// Answers that belong to no stimulus that is waited for.
    pub replayed: u32,
    /// Bytes that are no frame, and frames that no responder sends.
    pub foreign: u32,
    /// From the first bit of a stimulus until after the last one of its answer.
    pub latency: Latencies,
}

impl SessionFigures {
    /// Writes them as lines of a name and a number; `ticks_per_us` are of the clock of the stamps.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(&self, to: &mut impl Write, ticks_per_us: u32) -> Result {
        let answered = self.latency.count();
        let counts = [
            ("stimuli", self.stimuli),
            ("not_sent", self.not_sent),
            ("answered", answered),
            ("late", self.late),
            ("lost", self.stimuli.saturating_sub(answered)),
            ("duplicates", self.duplicates),
            ("replayed", self.replayed),
            ("foreign", self.foreign),
        ];
        for (name, count) in counts {
            write!(to, "{name} {count}\r\n")?;
        }
        let ends = self.latency.ends();
        let rows = [
            ("latency_min_ns", ends.map(|(least, _)| least)),
            ("latency_p50_ns", self.latency.quantile(1, 2)),
            ("latency_p99_ns", self.latency.quantile(99, 100)),
            ("latency_p99_9_ns", self.latency.quantile(999, 1_000)),
            ("latency_max_ns", ends.map(|(_, largest)| largest)),
        ];
        for (name, ticks) in rows {
            match ticks {
                Some(ticks) => {
                    let ns = ticks.saturating_mul(1_000) / u64::from(ticks_per_us.max(1));
                    write!(to, "{name} {ns}\r\n")?;
                }
                None => write!(to, "{name} -\r\n")?,
            }
        }
        to.write_str("end\r\n")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::String;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn buckets_follow_each_other_and_are_no_wider_than_a_part() {
        for bucket in 0..BUCKETS - 1 {
            let end = Latencies::end(bucket);
            assert_eq!((Latencies::bucket(end), Latencies::bucket(end + 1)), (bucket, bucket + 1));
        }
        assert_eq!(Latencies::bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values_rounded_up_by_a_part() {
        let mut state = 9_u64;
        let values = (0..5_000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % (1 << (10 + (state >> 60)))
        });
        let mut values: Vec<u64> = values.collect();
        let mut latencies = Latencies::new();
        values.iter().for_each(|value| latencies.push(*value));
        values.sort_unstable();
        for (parts, whole) in [(1, 2), (99, 100), (999, 1_000)] {
            let rank = (values.len() * parts as usize).div_ceil(whole as usize);
            let (exact, got) =
                (values[rank - 1], latencies.quantile(parts, whole).expect("enough"));
            assert!((exact..=exact + exact / PARTS + 1).contains(&got), "{exact} {got}");
        }
        assert_eq!(latencies.ends(), Some((values[0], values[4_999])));
    }

    #[test]
    fn what_n_does_not_support_is_not_written() {
        let mut figures = SessionFigures { stimuli: 3, ..SessionFigures::default() };
        [125, 250].iter().for_each(|ticks| figures.latency.push(*ticks));
        let mut text = String::new();
        figures.write(&mut text, 125).expect("memory");
        for line in ["answered 2", "lost 1", "latency_min_ns 1000", "latency_p99_ns -", "end"] {
            assert!(text.lines().any(|got| got == line), "{line}: {text}");
        }
        assert_eq!(Latencies::new().quantile(1, 2), None);
    }
}
