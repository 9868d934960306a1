//! `punctual stimulate`: stimuli to another machine, and how fast it answers.

use anyhow::{Result, anyhow, bail};
use punctual::RtThread;
use punctual_lab::outside::{Link, LinkName, STIMULI_MAX, StimulateExperiment};
use punctual_report::measured::StimulateBody;
use punctual_report::{Body, Report};

use crate::args::PolicyName;
use crate::command;
use crate::exit::Exit;
use crate::experiment::{self, Machine, words};
use crate::format;
use crate::output::{self, OutputArgs, Outputs};
use crate::parse;

/// The shortest period.
const PERIOD_MIN_NS: u64 = 50_000;

/// `punctual stimulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct StimulateArgs {
    /// The way to 'punctual respond': udp:HOST:PORT, or serial:PATH for a serial line
    link: LinkName,
    /// From one stimulus to the next, 50us or more
    #[arg(
        long,
        short,
        default_value = "1ms",
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    period: parse::Duration,
    /// How long to stimulate
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    #[command(flatten)]
    end: EndArgs,
}

/// How an end of a link runs.
#[derive(Debug, clap::Args)]
pub(crate) struct EndArgs {
    /// The speed of a serial line, in baud
    #[arg(long, default_value_t = 115_200)]
    baud: u32,
    /// The CPU to run on [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    /// The scheduling policy to request
    #[arg(long, value_enum, default_value = "fifo")]
    policy: PolicyName,
    /// The priority to request, as the kernel counts
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: u8,
    #[command(flatten)]
    output: OutputArgs,
}

impl EndArgs {
    pub(crate) fn thread(&self, cpu: u32) -> RtThread {
        RtThread::cpu(cpu).with_policy(self.policy.with(self.priority))
    }

    pub(crate) fn cpu(&self) -> Option<&str> {
        self.cpu.as_deref()
    }

    pub(crate) fn outputs(&self) -> Result<Outputs> {
        self.output.open()
    }

    pub(crate) const fn baud(&self) -> u32 {
        self.baud
    }
}

/// Runs the subcommand.
pub(crate) fn run(args: &StimulateArgs) -> Result<Exit> {
    let machine = Machine::of(None)?;
    let (cpu, choice) = experiment::one_cpu(args.end.cpu(), &machine.here, "stimuli are sent")?;
    let period = args.period.period()?;
    if period.as_ns() < PERIOD_MIN_NS {
        let (got, least) = (format::period(period.as_ns()), format::period(PERIOD_MIN_NS));
        bail!("--period {got}: the shortest period between stimuli is {least}");
    }
    let link = Link::to(&args.link, args.end.baud()).map_err(|why| anyhow!(why))?;
    let stimulate = StimulateExperiment {
        link,
        name: args.link.clone(),
        thread: args.end.thread(cpu),
        period,
        duration: args.duration.0,
    };
    if stimulate.stimuli() > STIMULI_MAX {
        let (count, most) = (stimulate.stimuli(), STIMULI_MAX);
        bail!(
            "--duration and --period give {} stimuli; at most {} are kept",
            format::count(count),
            format::count(most)
        );
    }
    let outputs = args.end.outputs()?;
    let started = jiff::Timestamp::now();
    output::message(&format!(
        "sending a stimulus to {} every {}",
        args.link,
        format::period(period.as_ns())
    ));
    let finished = experiment::run(stimulate, &machine.here, &mut ()).map_err(words::error)?;
    let envelope = experiment::envelope("stimulate", &machine, choice, started, &finished);
    let ended = finished.outcome.ended.clone();
    let body = StimulateBody { stimulate: finished.outcome };
    command::write(&Report { envelope, body: Body::Measured(body.into()) }, outputs)?;
    ended.map_or(Ok(Exit::Fine), |why| Err(anyhow!(format::plain(&why))))
}
