//! `punctual measure periodic`: the periodic experiment with every choice open.
//!
//! One loop for each CPU and period, all at once; the shortest period has the highest priority
//! (rate-monotonic, as LinuxCNC's base and servo threads).

use std::path::PathBuf;

use anyhow::{Error, Result, bail};
use punctual::RtThread;
use punctual_core::time::Span;
use punctual_host::choose::helper_cpu;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::load::{LoadSpec, Loads};
use punctual_lab::periodic::{Condition, ConditionBlock, PeriodicPlan, Stream, WaitKind, split};
use punctual_lab::waits::WAITS;
use punctual_report::{Choice, LoopsBody, PeriodicBody, Question, Report};

use crate::args::{
    BlameWord, CausesArgs, CpusArgs, Detail, LearnArgs, LiveArgs, PeriodsArgs, PlanArgs,
    PolicyName, ReportArgs, RootArgs, StopArgs, WaitName,
};
use crate::comparison::baseline::{BaselineArgs, BaselineUse};
use crate::experiment::follow::FollowedClock;
use crate::experiment::loops::{LATE, LoopExperiment};
use crate::experiment::{self, COLD_CYCLES, Machine};
use crate::measuring::condition_name;
use crate::output::Opened;
use crate::parse::{self, FollowName, Phase};
use crate::program::PROGRAM;
use crate::question::{self, QuestionArgs};
use crate::subcommand::{self, Execute, Exit};

/// The experiment's name in results.
const NAME: &str = "measure periodic";

/// The most loops at once: more threads than any machine's loops, few enough to hold in memory.
const STREAMS_MAX: usize = 256;

/// Visits to each load in turn, about, as long as its blocks are not shorter.
const VISITS: i64 = 3;
const BLOCK_MIN: Span = Span::from_ms(1_000);

/// `punctual measure periodic`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    cpus: CpusArgs,
    #[command(flatten)]
    periods: PeriodsArgs,
    #[command(flatten)]
    question: QuestionArgs,
    /// How long to measure, in all
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    /// The scheduling policy to request
    #[arg(long, value_enum, default_value = "fifo")]
    policy: PolicyName,
    /// The priority to request, as the kernel counts: 98 is the highest, for the watchdog uses 99
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: u8,
    /// How to wait for a release
    #[arg(long, value_enum, default_value = "sleep")]
    wait: WaitName,
    /// For --wait fixed: how long before the release the sleep ends [default: 125us]; for --wait
    /// rearm: the interval of re-arming
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse::duration)]
    margin: Option<parse::Duration>,
    /// For --wait adaptive: the share of the CPU that waiting may take
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = parse::share)]
    budget: f64,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC: zero, quiet (away from
    /// the kernel's tick) or a duration
    #[arg(long, default_value = "zero", allow_hyphen_values = true)]
    phase: Phase,
    /// Align the grid with another clock than CLOCK_MONOTONIC and follow it: tai, realtime or a PTP
    /// device such as /dev/ptp0; --phase is then the offset on that clock
    #[arg(long, value_name = "CLOCK")]
    follow: Option<FollowName>,
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    #[arg(help = parse::loads_help(), long_help = parse::loads_long_help())]
    load: Loads,
    /// Write every sample to FILE, for 'punctual analyse'
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    stop: StopArgs,
    #[command(flatten)]
    live: LiveArgs,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    learn: LearnArgs,
    #[command(flatten)]
    causes: CausesArgs,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    baseline: BaselineArgs,
}

impl Execute for Args {
    fn execute(&self) -> Result<Exit> {
        let machine = Machine::of(self.root.path())?;
        let spec = self.question.spec();
        let periods = self.question.periods_to_run(&self.periods.period).map_err(Error::msg)?;
        let options = self.question.options(&self.periods.period);
        let choices = LoopChoices {
            cpu: self.cpus.cpu.as_deref(),
            period: &periods,
            duration: self.duration.0,
            policy: self.policy,
            priority: self.priority,
            wait: wait_kind(self.wait, self.margin, self.budget)?,
            phase: self.phase,
            load: &self.load,
        };
        let PlannedLoops { mut plan, choice } = choices.plan(&machine.measuring)?;
        let follow =
            self.follow.as_ref().map(|clock| FollowedClock::open(clock, self.phase)).transpose()?;
        self.report.output().distinct(self.samples.as_deref())?;
        let gate = BaselineUse::open(&self.baseline, &machine.facts, machine.foreign.is_some())?;
        gate.spare(&self.report.output())?;
        let clock = follow.as_ref().map(|target| target.name.as_str());
        gate.refuse_others(&experiment::loops::planned(
            &plan,
            false,
            self.report.keep_cold,
            clock,
        ))?;
        let outputs = self.report.output().open()?;
        let conditions = plan.conditions.len();
        let plan_of =
            |duration| PeriodicPlan { blocks: blocks(conditions, duration), ..plan.clone() };
        let plans =
            experiment::claims::plans(&self.report, &self.plan, self.duration.0, false, &plan_of);
        if self.plan.plan {
            let loops = LoopsBody { plans, ..LoopsBody::default() };
            let report = Report::new(PROGRAM, NAME, PeriodicBody { loops, compare: None });
            let announced = subcommand::measuring(self.duration.0);
            return subcommand::planned(&report, (self.duration.0, &announced), outputs);
        }
        experiment::claims::announce(&plans, self.duration.0);
        let placed = experiment::settle(&mut plan.streams, self.phase)?;
        let samples = self.samples.as_deref().map(Opened::at).transpose()?;
        let loops = LoopExperiment {
            name: NAME,
            plan,
            merge: false,
            machine: &machine,
            choice,
            args: &self.report,
            learn: self.learn,
            live: self.live.live,
            blame: self.causes.when(BlameWord::Off, gate.is_used()),
            late: LATE,
            plans,
            samples,
            follow,
            changes: None,
            stop_over: self.stop.over(),
            question: Some(Question {
                command: Some(("punctual measure periodic", options.as_str())),
                ..question::question(spec.as_ref())
            }),
            gate: self.question.is_gate(),
            notes: machine.foreign.iter().cloned().chain(placed).collect(),
            first: 0,
        };
        let measured = loops.run()?;
        let body = PeriodicBody { loops: measured.loops, compare: None };
        let mut report = Report { envelope: measured.envelope, body: body.into() };
        let uncompared = gate.judge(&mut report, &measured.recorded);
        let trouble = measured.trouble.or(uncompared);
        subcommand::write_in(&report, outputs, self.report.detail(Detail::Short))?;
        gate.keep(&report, &measured.recorded)?;
        Exit::after(&report, trouble)
    }
}

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
        let (cpus, choice) = experiment::pick(self.cpu, facts)?;
        let streams = self.streams(&cpus)?;
        let conditions = conditions(self.load);
        let housekeeping = helper_cpu(&cpus, facts).into_iter().collect();
        let blocks = blocks(conditions.len(), self.duration);
        let plan = PeriodicPlan { streams, conditions, blocks, housekeeping, cold: COLD_CYCLES };
        Ok(PlannedLoops { plan, choice })
    }

    /// One stream for each CPU and period; the shortest period first in priority.
    pub(crate) fn streams(&self, cpus: &CpuList) -> Result<Vec<Stream>> {
        let args = self;
        let mut periods = args.period.iter().map(|p| p.period()).collect::<Result<Vec<_>>>()?;
        periods.sort();
        periods.dedup();
        if cpus.len().saturating_mul(periods.len()) > STREAMS_MAX {
            bail!("--cpu and --period give more than {STREAMS_MAX} loops at once");
        }
        if let Some(long) = periods.last()
            && long.as_ns() > args.duration.as_ns().unsigned_abs()
        {
            bail!("--duration is shorter than one period");
        }
        let mut streams = Vec::new();
        for cpu in cpus.iter() {
            for (rank, &period) in periods.iter().enumerate() {
                let step = u8::try_from(rank).unwrap_or(u8::MAX);
                let Some(priority) = args.priority.checked_sub(step).filter(|&p| p > 0) else {
                    bail!("--priority {}: too low for {} periods", args.priority, periods.len());
                };
                streams.push(Stream {
                    thread: RtThread::cpu(cpu)
                        .with_policy(args.policy.with(priority))
                        .wait(args.wait),
                    period,
                    // A quiet one is settled once it is sure that something is measured.
                    phase_ns: args.phase.at_ns(),
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
