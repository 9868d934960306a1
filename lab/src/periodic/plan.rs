//! What a periodic experiment is to do: streams, conditions, blocks.
//!
//! For whoever sets one up. Plain data and pure arithmetic; reads no clock.

use punctual::core::time::{Period, Span};
use punctual::core::wait::adaptive::Aim;
use punctual::core::wait::{Adaptive, Rearm, Sleep, Spin, Strategy};
use punctual::os::scheduler::Policy;

/// How a stream waits for its releases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WaitKind {
    /// An absolute sleep.
    Sleep,
    /// A sleep of a tenth of the period, and 20 µs at least, then a spin.
    Spin,
    /// A sleep that ends this much before the release, then a spin.
    Fixed(Span),
    /// NIST's: early calls this far apart, √(T·S) if that is not said, then a spin.
    Rearm(Option<Period>),
    /// Learned: hops and margin, for this share of the CPU at most.
    Adaptive(f64),
}

impl WaitKind {
    /// Whether it spins before a release.
    pub const fn spins(self) -> bool {
        !matches!(self, Self::Sleep)
    }

    /// Its name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Spin => "spin",
            Self::Fixed(_) => "fixed",
            Self::Rearm(_) => "rearm",
            Self::Adaptive(_) => "adaptive",
        }
    }
}

/// The share of each period in which a spinning loop sleeps: twice what Linux's real-time
/// throttling keeps for others by default (5 %, `sched_rt_runtime_us`).
const SPIN_REST: f64 = 0.1;

/// The shortest such sleep: a shorter one is over before the thread has left the CPU.
const SPIN_REST_MIN: Span = Span::from_us(20);

/// The shortest period that a spinning loop can have: half of it rest.
pub const SPIN_PERIOD_MIN: Span = Span::from_us(40);

/// One loop: a thread with a CPU and a period.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Where it runs; `None` to leave that to the kernel.
    pub cpu: Option<u32>,
    /// Its period.
    pub period: Period,
    /// The offset of its grid from multiples of the period on CLOCK_MONOTONIC, in ns.
    pub phase_ns: u64,
    /// The policy to ask for.
    pub policy: Policy,
    /// How it waits.
    pub wait: WaitKind,
}

impl Stream {
    /// The strategy behind a way to wait, for this loop. `cost` measures NIST's S, and is called
    /// where that is needed.
    pub(super) fn strategy(&self, wait: WaitKind, cost: impl FnOnce() -> Span) -> Strategy {
        match wait {
            WaitKind::Sleep => Strategy::Sleep(Sleep),
            WaitKind::Spin => Strategy::Spin(Spin::new(self.margin())),
            WaitKind::Fixed(margin) => Strategy::Spin(Spin::new(margin)),
            WaitKind::Rearm(every) => {
                let every = every.unwrap_or_else(|| Rearm::best(self.period, cost()));
                Strategy::Rearm(Rearm::new(every))
            }
            WaitKind::Adaptive(budget) => {
                let aim = Aim { budget, wake_cost: cost(), ..Aim::of(self.period) };
                Strategy::Adaptive(Adaptive::new(aim))
            }
        }
    }

    /// For a spinning loop, how long before each release its sleep ends.
    pub fn margin(&self) -> Span {
        let period_ns = i64::try_from(self.period.as_ns()).unwrap_or(i64::MAX);
        let rest_ns = ((period_ns as f64 * SPIN_REST) as i64).max(SPIN_REST_MIN.as_ns());
        Span::from_ns(period_ns.saturating_sub(rest_ns).max(0))
    }

    /// The share of a CPU that it takes by its plan, at most; for a sleeping loop next to nothing.
    pub fn cpu_share(&self) -> f64 {
        let period_ns = self.period.as_ns() as f64;
        match self.wait {
            WaitKind::Sleep => 0.0,
            WaitKind::Spin => self.margin().as_ns() as f64 / period_ns,
            WaitKind::Fixed(margin) => (margin.as_ns() as f64 / period_ns).min(1.0),
            WaitKind::Rearm(every) => {
                every.map_or(0.5, |a| (a.as_ns() as f64 / period_ns).min(1.0))
            }
            WaitKind::Adaptive(budget) => budget,
        }
    }
}

/// What else the machine does meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// How results name it: `idle`, `cpu`, …
    pub name: String,
    /// How the streams wait under it, where not as they do otherwise.
    pub wait: Option<WaitKind>,
}

/// A stretch of the experiment under one condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Index of the condition.
    pub condition: usize,
    /// How long, starting and stopping the load included.
    pub length: Span,
}

/// A whole experiment.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The loops, which all run in every block.
    pub streams: Vec<Stream>,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// What happens when.
    pub blocks: Vec<Block>,
    /// CPUs for all that is not the loop; empty to leave that to the kernel.
    pub housekeeping: Vec<u32>,
    /// How many cycles at the start of each block are marked as cold.
    pub cold: u32,
}

impl Plan {
    /// The run of stream `stream` under condition `condition`.
    pub fn run(&self, stream: usize, condition: usize) -> usize {
        stream * self.conditions.len() + condition
    }

    /// How a stream waits under a condition.
    pub fn wait(&self, stream: &Stream, condition: usize) -> WaitKind {
        self.conditions[condition].wait.unwrap_or(stream.wait)
    }

    /// How many runs there are: one for each stream and condition.
    pub fn runs(&self) -> usize {
        self.streams.len() * self.conditions.len()
    }

    /// The whole experiment's length.
    pub fn length(&self) -> Span {
        Span::from_ns(self.blocks.iter().map(|block| block.length.as_ns()).sum())
    }
}

/// Blocks that visit conditions 0 (idle) and 1 to `loads` in turn, so that a drift of the machine
/// hits all alike: in each of `rounds` rounds, one block of idle before every second load.
pub fn interleave(loads: usize, rounds: u32, total: Span) -> Vec<Block> {
    let mut order = Vec::new();
    for _ in 0..rounds {
        if loads == 0 {
            order.push(0);
        }
        for load in 0..loads {
            if load % 2 == 0 {
                order.push(0);
            }
            order.push(load + 1);
        }
    }
    split(&order, total)
}

/// Blocks of equal length that visit `order`; they add up to `total` exactly.
pub fn split(order: &[usize], total: Span) -> Vec<Block> {
    let count = order.len() as i64;
    let edge = |block: i64| {
        i64::try_from(i128::from(total.as_ns()) * i128::from(block) / i128::from(count.max(1)))
            .unwrap_or(i64::MAX)
    };
    (0..)
        .zip(order)
        .map(|(at, &condition)| Block { condition, length: Span::from_ns(edge(at + 1) - edge(at)) })
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
    fn a_spin_rests_a_tenth_of_its_period_and_never_less_than_a_sleep_takes() {
        let stream = |period_ns, wait| Stream {
            cpu: None,
            period: Period::from_ns(period_ns).expect("positive"),
            phase_ns: 0,
            policy: Policy::Fifo(1),
            wait,
        };
        let share = |period_ns| stream(period_ns, WaitKind::Spin).cpu_share();
        assert!((share(1_000_000) - 0.9).abs() < 1e-9);
        assert!((share(40_000) - 0.5).abs() < 1e-9);
        assert_eq!((share(5_000), stream(5_000, WaitKind::Sleep).cpu_share()), (0.0, 0.0));
    }

    #[test]
    fn without_loads_there_is_idle_alone() {
        let blocks = interleave(0, 1, Span::from_ms(5));
        assert_eq!(blocks, [Block { condition: 0, length: Span::from_ms(5) }]);
        assert_eq!(split(&[], Span::from_ms(5)), []);
    }
}
