//! What a noise experiment gives: plain data, as results hold it.
//!
//! The doc comments are the descriptions in the schema of results.

use punctual::quiet::Gap;
use punctual_analysis::histogram::display::HistogramView;
use punctual_analysis::summary::{Distribution, SummaryStats};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What took CPUs away from threads that only spin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseOutcome {
    /// Two reads of the clock that are this far apart, or farther, are a gap.
    pub threshold_ns: u64,
    /// The share of the time that was spun, in (0, 1].
    pub duty: f64,
    /// From the beginning of a window to that of the next.
    pub frame_ns: u64,
    /// The length of a window.
    pub window_ns: u64,
    /// Windows that were spun.
    pub windows: u64,
    /// One for each measured CPU.
    pub cpus: Vec<CpuNoise>,
    /// How long gaps were, on all CPUs in the same steps: 1, 2, 5, 10 and so on.
    pub lengths: Vec<Lengths>,
    /// Gaps that all measured CPUs had at once; null where one CPU was measured.
    pub at_once: Option<AtOnce>,
    /// System management interrupts of the firmware during the measurement; null if the machine
    /// does not count them.
    pub smi: Option<u64>,
}

/// What took one CPU away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuNoise {
    /// The CPU.
    pub cpu: u32,
    /// The policy that the thread really had: "SCHED_FIFO".
    pub policy: String,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// How long it was spun.
    pub spun_ns: u64,
    /// Mean time from one read of the clock to the next, gaps left out: no gap is known finer.
    pub read_ns: Option<f64>,
    /// Gaps.
    pub gaps: u64,
    /// Their total length.
    pub lost_ns: u64,
    /// Their share of the time that was spun, in [0, 1].
    pub lost_share: Option<f64>,
    /// The longest.
    pub worst: Option<WorstGap>,
    /// How long gaps were.
    pub gap_ns: SummaryStats,
    /// The same as a histogram.
    pub histogram: HistogramView,
    /// Gaps that did not fit in memory: they are only in `gaps`, `lost_ns` and `worst`.
    pub unlisted: u64,
    /// Page faults of the spinning thread.
    pub page_faults: u64,
    /// Times that it was preempted.
    pub preempted: u64,
    /// Time that the host took from this CPU, as the kernel counts it in steps of 10 ms, rests
    /// included; null if the kernel does not report it.
    pub steal_ns: Option<u64>,
    /// Interrupts of this CPU, rests included; null if the kernel does not report them.
    pub interrupts: Option<u64>,
    /// The most frequent kinds of interrupts.
    pub most_often: Vec<Interrupt>,
}

/// Gaps of about one length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lengths {
    /// As long as this, or longer.
    pub from_ns: u64,
    /// Shorter than this.
    pub to_ns: u64,
    /// How many, by CPU in the order of `cpus`.
    pub counts: Vec<u64>,
}

/// A kind of interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interrupt {
    /// As /proc/interrupts has it: "LOC Local timer interrupts".
    pub name: String,
    /// How often it came.
    pub count: u64,
}

/// The longest of some gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorstGap {
    /// When it began, on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// How long it was.
    pub length_ns: u64,
}

/// Simultaneous gaps on all measured CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtOnce {
    /// All of them.
    pub all: Overlaps,
    /// Those at the phase of the kernel's tick, which also comes on all CPUs at once; null if its
    /// period is unknown.
    pub tick: Option<Overlaps>,
    /// The others: the host of a guest, or the firmware.
    pub elsewhere: Overlaps,
}

/// Times in which all CPUs had a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overlaps {
    /// How many.
    pub count: u64,
    /// All of them together.
    pub total_ns: u64,
    /// The longest.
    pub worst: Option<WorstGap>,
}

impl Lengths {
    /// The gaps of each CPU by length; steps in which there are none at either end are left out.
    pub(super) fn of(cpus: &[Distribution]) -> Vec<Self> {
        let step = |exponent: u32| [1, 2, 5].map(|first| first * 10u64.pow(exponent));
        let edges: Vec<u64> = (0..=18).flat_map(step).collect();
        let rows = edges.windows(2).map(|pair| Self {
            from_ns: pair[0],
            to_ns: pair[1],
            counts: cpus.iter().map(|gaps| within(gaps, pair[0], pair[1])).collect(),
        });
        let rows: Vec<Self> = rows.collect();
        let some = |row: &Self| row.counts.iter().any(|&count| count > 0);
        let (first, last) = (rows.iter().position(some), rows.iter().rposition(some));
        first.zip(last).map_or_else(Vec::new, |(first, last)| rows[first..=last].to_vec())
    }
}

/// Values from `from_ns` to below `to_ns`, by the lowest of their bucket.
fn within(gaps: &Distribution, from_ns: u64, to_ns: u64) -> u64 {
    let inside = |ns: i64| u64::try_from(ns).is_ok_and(|ns| (from_ns..to_ns).contains(&ns));
    let buckets = gaps.histogram().buckets();
    buckets.filter(|bucket| inside(bucket.lowest_ns)).map(|bucket| bucket.count).sum()
}

impl WorstGap {
    pub(super) fn of(gap: Gap) -> Self {
        Self { at_ns: gap.at.as_ns(), length_ns: gap.length.as_ns().unsigned_abs() }
    }
}

impl Overlaps {
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.total_ns += other.total_ns;
        // Of equal ones the first stays.
        let longer =
            |worst: &WorstGap| self.worst.is_none_or(|own| own.length_ns < worst.length_ns);
        if let Some(worst) = other.worst.filter(longer) {
            self.worst = Some(worst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_in_steps_and_every_gap_is_in_one() {
        let mut busy = Distribution::default();
        let all = [1_000, 1_500, 1_999, 2_000, 90_000, 3_000_000_000];
        all.into_iter().for_each(|ns| busy.push(ns));
        let rows = Lengths::of(&[busy, Distribution::default()]);
        let first = &rows[0];
        assert_eq!((first.from_ns, first.to_ns, &first.counts[..]), (1_000, 2_000, &[3, 0][..]));
        let last = rows.last().expect("some");
        assert_eq!((last.from_ns, last.to_ns), (2_000_000_000, 5_000_000_000));
        assert_eq!(rows.iter().map(|row| row.counts[0]).sum::<u64>(), all.len() as u64);
        assert!(rows.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        assert_eq!(Lengths::of(&[Distribution::default()]), []);
    }
}
