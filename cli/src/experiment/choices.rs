//! The choices of a periodic experiment, and the plan that is made of them: loops on CPUs, loads
//! that take turns, blocks that visit them.
//!
//! For the commands that measure loops of any CPUs and periods. One loop for each CPU and period,
//! all at once; the shortest period has the highest priority (rate-monotonic, as LinuxCNC's base
//! and servo threads).

use anyhow::{Result, bail};
use punctual::RtThread;
use punctual_core::time::Span;
use punctual_host::choose::helper_cpu;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::load::{LoadSpec, Loads};
use punctual_lab::periodic::{Condition, ConditionBlock, PeriodicPlan, Stream, WaitKind, split};
use punctual_lab::waits::WAITS;
use punctual_report::Choice;

use super::{COLD_CYCLES, condition_name, pick};
use crate::args::{PolicyName, WaitName};
use crate::parse::{self, Phase};

/// The most loops at once: more threads than any machine's loops, few enough to hold in memory.
const STREAMS_MAX: usize = 256;

/// Visits to each load in turn, about, as long as its blocks are not shorter.
const VISITS: i64 = 3;
const BLOCK_MIN: Span = Span::from_ms(1_000);

/// The choices of a periodic experiment.
pub(crate) struct LoopChoices<'a> {
    /// The CPUs, as requested.
    pub(crate) cpu: Option<&'a str>,
    /// One or more periods.
    pub(crate) period: &'a [parse::Duration],
    /// The time to measure, in all.
    pub(crate) duration: Span,
    /// The policy to ask for.
    pub(crate) policy: PolicyName,
    /// The priority of the shortest period.
    pub(crate) priority: u8,
    /// The way to wait.
    pub(crate) wait: WaitKind,
    /// The grid's offset.
    pub(crate) phase: Phase,
    /// The loads.
    pub(crate) load: &'a Loads,
}

/// A periodic experiment that is chosen.
pub(crate) struct PlannedLoops {
    /// The loops, their conditions and blocks.
    pub(crate) plan: PeriodicPlan,
    /// The CPUs, and why those.
    pub(crate) choice: Choice,
}

impl LoopChoices<'_> {
    /// The plan for the machine with these facts.
    ///
    /// # Errors
    /// In one line, which option asks for what cannot be.
    pub(crate) fn plan(&self, facts: &MachineFacts) -> Result<PlannedLoops> {
        let (cpus, choice) = pick(self.cpu, facts)?;
        let streams = self.streams(&cpus)?;
        let conditions = conditions(self.load);
        let housekeeping = helper_cpu(&cpus, facts).into_iter().collect();
        let blocks = blocks(conditions.len(), self.duration);
        let plan = PeriodicPlan { streams, conditions, blocks, housekeeping, cold: COLD_CYCLES };
        Ok(PlannedLoops { plan, choice })
    }

    /// One stream for each CPU and period; the shortest period first in priority.
    pub(crate) fn streams(&self, cpus: &CpuList) -> Result<Vec<Stream>> {
        let mut periods = self.period.iter().map(|p| p.period()).collect::<Result<Vec<_>>>()?;
        periods.sort();
        periods.dedup();
        if cpus.len().saturating_mul(periods.len()) > STREAMS_MAX {
            bail!("--cpu and --period give more than {STREAMS_MAX} loops at once");
        }
        if let Some(long) = periods.last()
            && long.as_ns() > self.duration.as_ns().unsigned_abs()
        {
            bail!("--duration is shorter than one period");
        }
        let mut streams = Vec::new();
        for cpu in cpus.iter() {
            for (rank, &period) in periods.iter().enumerate() {
                let step = u8::try_from(rank).unwrap_or(u8::MAX);
                let Some(priority) = self.priority.checked_sub(step).filter(|&p| p > 0) else {
                    bail!("--priority {}: too low for {} periods", self.priority, periods.len());
                };
                streams.push(Stream {
                    thread: RtThread::cpu(cpu)
                        .with_policy(self.policy.with(priority))
                        .wait(self.wait),
                    period,
                    // A quiet one is settled once it is sure that something is measured.
                    phase_ns: self.phase.at_ns(),
                });
            }
        }
        Ok(streams)
    }
}

/// The way to wait of this name; what only some ways have is refused for the others.
pub(crate) fn wait_kind(
    name: WaitName,
    margin: Option<parse::Duration>,
    budget: f64,
) -> Result<WaitKind> {
    if margin.is_some() && !name.0.has_margin {
        let with: Vec<String> = WAITS
            .iter()
            .filter(|row| row.has_margin)
            .map(|row| format!("--wait {}", row.name))
            .collect();
        bail!("--margin requires {}", with.join(" or "));
    }
    Ok(name.0.kind(margin.map(|margin| margin.0), budget))
}

fn conditions(load: &Loads) -> Vec<Condition> {
    let condition = |loads: Vec<LoadSpec>| Condition {
        name: condition_name(&loads),
        wait: None,
        library: None,
        loads,
    };
    load.turns().into_iter().map(condition).collect()
}

/// Blocks that visit each condition in turn, `duration` in all.
pub(crate) fn blocks(conditions: usize, duration: Span) -> Vec<ConditionBlock> {
    let once: Vec<usize> = (0..conditions).collect();
    if conditions == 1 {
        return split(&once, duration);
    }
    let shortest = BLOCK_MIN.as_ns() * i64::try_from(conditions).unwrap_or(i64::MAX);
    let visits = (duration.as_ns() / shortest).clamp(1, VISITS);
    split(&once.repeat(usize::try_from(visits).unwrap_or(1)), duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_in_turn_come_around_when_there_is_time() {
        assert_eq!(blocks(1, Span::from_ms(10_000)).len(), 1);
        assert_eq!(blocks(8, Span::from_ms(10_000)).len(), 8);
        assert_eq!(blocks(8, Span::from_ms(60_000)).len(), 24);
        assert_eq!(blocks(8, Span::from_ms(100)).len(), 8);
    }
}
