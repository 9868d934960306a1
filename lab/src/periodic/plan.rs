//! What a periodic experiment is to do: streams, conditions, blocks.
//!
//! For whoever sets one up. Plain data and pure arithmetic; reads no clock.

use punctual::RtThread;
use punctual::safety::is_real_time;
pub use punctual::wait_policy::{SPIN_PERIOD_MIN, WaitKind};
use punctual_core::time::{Period, Span};
use punctual_core::wait::Learned;

use crate::experiment::{Demand, Risk};
use crate::load::LoadSpec;

/// One loop: a thread with a CPU and a period.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Where it runs, the policy to ask for, and how it waits.
    pub thread: RtThread,
    /// Its period.
    pub period: Period,
    /// The offset of its grid from multiples of the period on CLOCK_MONOTONIC, in ns.
    pub phase_ns: u64,
}

impl Stream {
    /// The share of a CPU that it takes by its plan, at most; for a sleeping loop next to nothing.
    pub fn cpu_share(&self) -> f64 {
        self.thread.wait_kind().cpu_share(self.period)
    }
}

/// What else the machine does meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// How results name it: `idle`, `cpu`, …
    pub name: String,
    /// How the streams wait under it, where not as they do otherwise.
    pub wait: Option<WaitKind>,
    /// The loads that run meanwhile.
    pub loads: Vec<LoadSpec>,
}

/// What an earlier run learned of a machine, for loops like its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownWait {
    /// The CPU.
    pub cpu: u32,
    /// The period.
    pub period: Period,
    /// The share of the CPU that the wait might take.
    pub budget: f64,
    /// What it learned.
    pub learned: Learned,
}

impl KnownWait {
    /// Whether it is of a loop that waits like this.
    fn is_of(&self, stream: &Stream, wait: WaitKind) -> bool {
        (Some(self.cpu), self.period) == (stream.thread.pinned_to(), stream.period)
            && wait == WaitKind::Adaptive(self.budget)
    }
}

/// What is known for a stream that waits like this.
pub(super) fn known(all: &[KnownWait], stream: &Stream, wait: WaitKind) -> Option<Learned> {
    all.iter().find(|known| known.is_of(stream, wait)).map(|known| known.learned)
}

/// A part of the experiment under one condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionBlock {
    /// Index of the condition.
    pub condition: usize,
    /// How long its loops run, once its loads are up.
    pub length: Span,
}

/// A whole experiment.
#[derive(Clone, Debug)]
pub struct PeriodicPlan {
    /// The loops, which all run in every block.
    pub streams: Vec<Stream>,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// What happens when.
    pub blocks: Vec<ConditionBlock>,
    /// CPUs for all that is not the loop; empty to leave that to the kernel.
    pub housekeeping: Vec<u32>,
    /// How many cycles at the start of each block are marked as cold.
    pub cold: u32,
}

impl PeriodicPlan {
    /// The run of stream `stream` under condition `condition`.
    pub fn run(&self, stream: usize, condition: usize) -> usize {
        stream * self.conditions.len() + condition
    }

    /// Whether a condition counts as one with others where conditions do: all but the first, unless
    /// it has a wait of its own.
    pub fn counts_as_one(&self, condition: usize) -> bool {
        let of = self.conditions.get(condition);
        condition > 0 && of.is_some_and(|of| of.wait.is_none())
    }

    /// How a stream waits under a condition.
    pub fn wait(&self, stream: &Stream, condition: usize) -> WaitKind {
        self.conditions[condition].wait.unwrap_or(stream.thread.wait_kind())
    }

    /// How many runs there are: one for each stream and condition.
    pub fn runs(&self) -> usize {
        self.streams.len() * self.conditions.len()
    }

    /// How long condition `condition` is to run in all.
    pub fn length_of(&self, condition: usize) -> Span {
        let blocks = self.blocks.iter().filter(|block| block.condition == condition);
        Span::from_ns(blocks.map(|block| block.length.as_ns()).sum())
    }

    /// What its threads may take of their CPUs.
    pub fn demands(&self) -> Vec<Demand> {
        let demand = |stream: &Stream| Demand {
            cpu: stream.thread.pinned_to(),
            real_time: is_real_time(stream.thread.policy()),
            period: stream.period,
            share: stream.cpu_share(),
        };
        self.streams.iter().map(demand).collect()
    }

    /// Refuses a loop that would spin without a rest.
    ///
    /// # Errors
    /// Which period is too short.
    pub fn check(&self) -> Result<(), Risk> {
        let shortest = SPIN_PERIOD_MIN;
        let spins =
            self.streams.iter().filter(|stream| stream.thread.wait_kind() == WaitKind::Spin);
        let mut periods = spins.map(|stream| stream.period);
        let short = periods.find(|period| period.as_ns() < shortest.as_ns().unsigned_abs());
        short.map_or(Ok(()), |period| Err(Risk::NoRest { period, shortest }))
    }

    /// The whole experiment's length.
    pub fn length(&self) -> Span {
        Span::from_ns(self.blocks.iter().map(|block| block.length.as_ns()).sum())
    }
}

/// Blocks that visit conditions 0 (idle) and 1 to `loads` in turn, so that a drift of the machine
/// hits all alike: in each of `rounds` rounds, one block of idle before every second load.
pub fn interleave(loads: usize, rounds: u32, total: Span) -> Vec<ConditionBlock> {
    let rounds = usize::try_from(rounds).unwrap_or(1);
    split(&round(loads).repeat(rounds), total)
}

/// One round of [`interleave`].
pub fn round(loads: usize) -> Vec<usize> {
    let of = |load: usize| load.is_multiple_of(2).then_some(0).into_iter().chain([load + 1]);
    if loads == 0 { vec![0] } else { (0..loads).flat_map(of).collect() }
}

/// Blocks of equal length that visit `order`; they add up to `total` exactly.
pub fn split(order: &[usize], total: Span) -> Vec<ConditionBlock> {
    let count = order.len() as i64;
    let edge = |block: i64| {
        i64::try_from(i128::from(total.as_ns()) * i128::from(block) / i128::from(count.max(1)))
            .unwrap_or(i64::MAX)
    };
    (0..)
        .zip(order)
        .map(|(at, &condition)| ConditionBlock {
            condition,
            length: Span::from_ns(edge(at + 1) - edge(at)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_add_up_and_each_condition_has_its_share() {
        let total = Span::from_ns(60_000_000_001);
        let blocks = interleave(8, 2, total);
        assert_eq!(blocks.len(), 24);
        assert_eq!(blocks.iter().map(|block| block.length.as_ns()).sum::<i64>(), total.as_ns());
        let visits = |condition| blocks.iter().filter(|b| b.condition == condition).count();
        assert_eq!(visits(0), 8);
        assert!((1..=8).all(|load| visits(load) == 2));
        assert!(blocks.windows(2).all(|pair| pair[0].condition != pair[1].condition));
    }

    #[test]
    fn a_spin_without_a_rest_is_refused() {
        let plan = |period_ns| PeriodicPlan {
            streams: vec![Stream {
                thread: RtThread::cpu(1).fifo(90).with_wait(WaitKind::Spin),
                period: Period::from_ns(period_ns).expect("positive"),
                phase_ns: 0,
            }],
            conditions: Vec::new(),
            blocks: Vec::new(),
            housekeeping: Vec::new(),
            cold: 0,
        };
        let refused = plan(5_000).check().expect_err("refused");
        assert!(matches!(refused, Risk::NoRest { period, .. } if period.as_ns() == 5_000));
        assert_eq!(plan(40_000).check(), Ok(()));
    }

    #[test]
    fn without_loads_there_is_idle_alone() {
        let blocks = interleave(0, 1, Span::from_ms(5));
        assert_eq!(blocks, [ConditionBlock { condition: 0, length: Span::from_ms(5) }]);
        assert_eq!(split(&[], Span::from_ms(5)), []);
    }
}
