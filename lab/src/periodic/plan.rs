//! PeriodicPlan: loops, the conditions they are measured under, the blocks in which these take
//! turns.

use punctual::{RtThread, WaitPolicy};
use punctual_core::time::{Period, Span};
use punctual_core::wait::{Adaptive, Learned};
use punctual_engine::safety::is_real_time;
use punctual_engine::wait_policy::{SPIN_PERIOD_MIN, WARM_UP_MAX, WaitKind};

use crate::experiment::{ConditionBlock, Demand, Risk};
use crate::load::LoadSpec;

/// One loop: a thread with a CPU and a period.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Its thread: the CPU, the policy that it is to have, and the wait.
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

/// The state of the machine that loops are measured under.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Its name in results: `idle`, `cpu`, …
    pub name: String,
    /// The wait of the streams under it, where not their usual one.
    pub wait: Option<WaitKind>,
    /// The loop that runs under it instead, where that is one as this library makes it by default.
    pub library: Option<LibraryLoop>,
    /// The loads that run meanwhile.
    pub loads: Vec<LoadSpec>,
}

/// A loop with the defaults of [`punctual::Loop`], on the thread and with the period of its stream:
/// the wait of [`RtThread::any`], which learns first, and a phase of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryLoop {
    /// The quiet phase that was found for it ([`crate::quiet`]), ns; 0 where there is none.
    pub phase_ns: u64,
}

/// The wait that an earlier run learned on a machine, for loops like its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownWait {
    /// The CPU.
    pub cpu: u32,
    /// The period.
    pub period: Period,
    /// The share of the CPU that the wait might take.
    pub budget: f64,
    /// The parameters that it learned.
    pub learned: Learned,
}

impl KnownWait {
    /// Returns true where it is of a loop that waits like this.
    fn is_of(&self, stream: &Stream, wait: WaitKind) -> bool {
        (Some(self.cpu), self.period) == (stream.thread.pinned_to(), stream.period)
            && wait == WaitKind::Adaptive(self.budget)
    }
}

/// The earlier result for a stream that waits like this; `None` where there is none.
pub(super) fn known(waits: &[KnownWait], stream: &Stream, wait: WaitKind) -> Option<Learned> {
    waits.iter().find(|known| known.is_of(stream, wait)).map(|known| known.learned)
}

/// A whole experiment.
#[derive(Clone, Debug)]
pub struct PeriodicPlan {
    /// The loops, which all run in every block.
    pub streams: Vec<Stream>,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// The blocks in the order in which they run.
    pub blocks: Vec<ConditionBlock>,
    /// CPUs for all that is not the loop; empty to leave that to the kernel.
    pub housekeeping: Vec<u32>,
    /// Cycles at the start of each block that are marked as cold.
    pub cold: u32,
}

impl PeriodicPlan {
    /// The number of the run of stream `stream` under condition `condition`.
    pub fn run_index(&self, stream: usize, condition: usize) -> usize {
        stream * self.conditions.len() + condition
    }

    /// Returns true where a condition counts as one with others where conditions do: all but the
    /// first, unless it has a wait or a loop of its own.
    pub fn counts_as_one(&self, condition: usize) -> bool {
        let planned = self.conditions.get(condition);
        let waits_alike = |planned: &Condition| planned.wait.is_none() && planned.library.is_none();
        condition > 0 && planned.is_some_and(waits_alike)
    }

    /// The kind of a stream's wait under a condition.
    pub fn wait(&self, stream: &Stream, condition: usize) -> WaitKind {
        self.policy(stream, condition).kind()
    }

    /// The wait policy of a stream under a condition.
    pub fn policy(&self, stream: &Stream, condition: usize) -> WaitPolicy {
        let planned = &self.conditions[condition];
        match (planned.library, planned.wait) {
            (Some(_), _) => *RtThread::any().wait_policy(),
            (None, Some(wait)) => wait.into(),
            (None, None) => *stream.thread.wait_policy(),
        }
    }

    /// The offset of a stream's grid under a condition, ns.
    pub fn phase_ns(&self, stream: &Stream, condition: usize) -> u64 {
        let library = self.conditions[condition].library;
        library.map_or(stream.phase_ns, |library| library.phase_ns)
    }

    /// The longest that a wait may learn before the first block: as long as it takes, but for a
    /// loop of the library, whose users wait no longer than this either.
    pub(super) fn warm_up_max(&self, stream: &Stream, condition: usize) -> Span {
        match self.conditions[condition].library {
            Some(_) => WARM_UP_MAX,
            None => Adaptive::calibration(stream.period),
        }
    }

    /// Number of runs: one for each stream and condition.
    pub fn runs(&self) -> usize {
        self.streams.len() * self.conditions.len()
    }

    /// Time of all blocks of condition `condition`.
    pub fn length_of(&self, condition: usize) -> Span {
        let blocks = self.blocks.iter().filter(|block| block.condition == condition);
        Span::from_ns(blocks.map(|block| block.length.as_ns()).sum())
    }

    /// The most that its threads may take of their CPUs.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spin_without_a_rest_is_refused() {
        let plan = |period_ns| PeriodicPlan {
            streams: vec![Stream {
                thread: RtThread::cpu(1).fifo(90).wait(WaitKind::Spin),
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
}
