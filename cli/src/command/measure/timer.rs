//! `punctual measure timer`: how late timers reach a thread, with work of several kinds behind it.

use anyhow::{Result, bail};
use clap::ValueEnum;
use punctual::RtThread;
use punctual_core::time::Period;
use punctual_host::facts::MachineFacts;
use punctual_lab::timer::{Background, PERIOD_MIN_NS, TimerExperiment};

use crate::command;
use crate::exit::Exit;
use crate::experiment::{self, Machine, words};
use crate::format;
use crate::output::OutputArgs;
use crate::parse;
use crate::report::Report;
use crate::report::body::Body;
use crate::report::measured::TimerBody;

/// Periods of one run at most.
const PERIODS_MAX: usize = 8;

/// `punctual measure timer`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The CPU to measure on [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
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
    /// The priority to request, SCHED_FIFO, as the kernel counts
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: u8,
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

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    let machine = Machine::of(None)?;
    let here = &machine.here;
    let (cpu, choice) = experiment::one_cpu(args.cpu.as_deref(), here, "timers are measured")?;
    let mut periods = args.period.iter().map(|of| of.period()).collect::<Result<Vec<Period>>>()?;
    periods.sort();
    periods.dedup();
    if periods.len() > PERIODS_MAX {
        bail!("--period: {} periods; at most {PERIODS_MAX} are measured", periods.len());
    }
    if let Some(short) = periods.first().filter(|of| of.as_ns() < PERIOD_MIN_NS) {
        let got = format::period(short.as_ns());
        bail!("--period {got}: it must be at least {}", format::period(PERIOD_MIN_NS));
    }
    let outputs = args.output.open()?;
    let started = jiff::Timestamp::now();
    let timer = TimerExperiment {
        thread: RtThread::cpu(cpu).fifo(args.priority),
        periods,
        backgrounds: backgrounds(&args.background)?,
        duration: args.duration.0,
        loads: Vec::new(),
    };
    let finished = experiment::run(timer, here, &mut ()).map_err(words::error)?;
    let mut envelope = experiment::envelope("measure timer", &machine, choice, started, &finished);
    envelope.warnings.extend(preempt_rt(here).map(str::to_owned));
    let body = TimerBody { timer: finished.outcome };
    command::write(&Report { envelope, body: Body::Measured(body.into()) }, outputs)?;
    Ok(Exit::Fine)
}

/// Those that were requested; without a request all that the processor has.
fn backgrounds(requested: &[BackgroundName]) -> Result<Vec<Background>> {
    let all = BackgroundName::value_variants();
    let kinds = if requested.is_empty() { all } else { requested }.iter().map(|name| name.kind());
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
fn preempt_rt(here: &MachineFacts) -> Option<&'static str> {
    let real_time = here.preemption.preemption.value().is_some_and(|of| of.contains("PREEMPT_RT"));
    real_time.then_some(
        "PREEMPT_RT: timerfd and POSIX timers expire in a kernel thread of low priority \
         (ktimers), and wait for it; clock_nanosleep of a real-time thread does not",
    )
}
