//! `punctual measure timer`: how late timers reach a thread, with work of several kinds behind it.

use std::path::Path;

use anyhow::{Result, bail};
use clap::ValueEnum;
use punctual::RtThread;
use punctual_core::time::Period;
use punctual_host::facts::MachineFacts;
use punctual_lab::timer::{Background, PERIOD_MIN_NS, TimerExperiment};
use punctual_report::measured::TimerBody;

use crate::args::{RequestedPolicyArgs, RootArgs};
use crate::experiment::Machine;
use crate::measuring::{CpuArgs, Measuring, Outcome, Planned, Shown};
use crate::output::OutputArgs;
use crate::{format, parse};

/// Periods of one run at most.
const PERIODS_MAX: usize = 8;

/// `punctual measure timer`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    cpu: CpuArgs,
    /// From one expiry to the next, 15us or more; several, separated by commas, take turns
    #[arg(
        long,
        short,
        value_delimiter = ',',
        default_value = "100us",
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    period: Vec<parse::Duration>,
    /// What runs on the same CPU, as SCHED_OTHER; several, separated by commas, take turns
    /// [default: all that the processor has]
    #[arg(long, value_enum, value_delimiter = ',')]
    background: Vec<BackgroundName>,
    /// How long to measure, in all; each combination has at least one block of 20 ms
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    #[command(flatten)]
    policy: RequestedPolicyArgs,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// What can run behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BackgroundName {
    /// Nothing
    None,
    /// A loop of NOPs
    Nop,
    /// A loop of SERIALIZE, which waits for all before it
    Serialize,
    /// A loop of CPUID, which also serialises, and exits to the host in a virtual machine
    Cpuid,
}

impl BackgroundName {
    fn kind(self) -> Background {
        match self {
            Self::None => Background::None,
            Self::Nop => Background::Nop,
            Self::Serialize => Background::Serialize,
            Self::Cpuid => Background::Cpuid,
        }
    }
}

impl Measuring for Args {
    const NAME: &'static str = "measure timer";
    const HAS_PROGRESS: bool = false;
    type Experiment = TimerExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<TimerExperiment>> {
        let (cpu, choice) = self.cpu.choose(machine, "timers are measured")?;
        let periods = self.period.iter().map(|period| period.period());
        let mut periods = periods.collect::<Result<Vec<Period>>>()?;
        periods.sort();
        periods.dedup();
        if periods.len() > PERIODS_MAX {
            bail!("--period: {} periods; at most {PERIODS_MAX} are measured", periods.len());
        }
        if let Some(short) = periods.first().filter(|period| period.as_ns() < PERIOD_MIN_NS) {
            let got = format::period(short.as_ns());
            bail!("--period {got}: it must be at least {}", format::period(PERIOD_MIN_NS));
        }
        let experiment = TimerExperiment {
            thread: RtThread::cpu(cpu).with_policy(self.policy.policy()),
            periods,
            backgrounds: backgrounds(&self.background)?,
            duration: self.duration.0,
            in_a_row: 0,
            loads: Vec::new(),
        };
        Ok(Planned { experiment, choice })
    }

    fn shown(&self, outcome: Outcome<'_, TimerExperiment>) -> Shown {
        let warnings = preempt_rt(outcome.facts).map(str::to_owned).into_iter().collect();
        Shown { warnings, ..Shown::body(TimerBody { timer: outcome.figures }) }
    }
}

/// Those that were requested; without a request all that the processor has.
fn backgrounds(requested: &[BackgroundName]) -> Result<Vec<Background>> {
    let known = BackgroundName::value_variants();
    let names = if requested.is_empty() { known } else { requested };
    let kinds = names.iter().map(|name| name.kind());
    let mut chosen = Vec::new();
    for kind in kinds {
        if !kind.is_supported() {
            if !requested.is_empty() {
                bail!("--background {}: this processor has no such instruction", kind.name());
            }
        } else if !chosen.contains(&kind) {
            chosen.push(kind);
        }
    }
    Ok(chosen)
}

/// On PREEMPT_RT some timers expire in a thread of their own.
fn preempt_rt(facts: &MachineFacts) -> Option<&'static str> {
    let real_time =
        facts.preemption.preemption.value().is_some_and(|name| name.contains("PREEMPT_RT"));
    real_time.then_some(
        "PREEMPT_RT: timerfd and POSIX timers expire in a kernel thread of low priority \
         (ktimers), and wait for it; clock_nanosleep of a real-time thread does not",
    )
}
