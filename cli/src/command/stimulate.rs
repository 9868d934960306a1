//! `punctual stimulate`: stimuli to another machine, and how fast it answers; `punctual respond`:
//! the machine under test answers them.

use anyhow::{Result, anyhow, bail};
use punctual::RtThread;
use punctual_lab::outside::{Link, LinkName, RespondExperiment, STIMULI_MAX, StimulateExperiment};
use punctual_report::measured::{RespondBody, StimulateBody};
use punctual_report::{Body, Report};

use crate::args::RequestedPolicyArgs;
use crate::experiment::{self, Machine, words};
use crate::output::{self, OutputArgs};
use crate::subcommand::{Execute, Exit};
use crate::{format, parse, writing};

/// The shortest period.
const PERIOD_MIN_NS: u64 = 50_000;

/// `punctual stimulate`.
#[derive(Debug, clap::Args)]
pub(super) struct StimulateArgs {
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

/// The thread and the output of an end of a link.
#[derive(Debug, clap::Args)]
struct EndArgs {
    /// The speed of a serial line, in baud
    #[arg(long, default_value_t = 115_200)]
    baud: u32,
    /// The CPU to run on [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    #[command(flatten)]
    policy: RequestedPolicyArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl EndArgs {
    /// The thread of this end, on a CPU.
    fn thread(&self, cpu: u32) -> RtThread {
        RtThread::cpu(cpu).with_policy(self.policy.policy())
    }
}

impl Execute for StimulateArgs {
    fn execute(&self) -> Result<Exit> {
        let machine = Machine::of(None)?;
        let (cpu, choice) =
            experiment::one_cpu(self.end.cpu.as_deref(), &machine.measuring, "stimuli are sent")?;
        let period = self.period.period()?;
        if period.as_ns() < PERIOD_MIN_NS {
            let (got, least) = (format::period(period.as_ns()), format::period(PERIOD_MIN_NS));
            bail!("--period {got}: the shortest period between stimuli is {least}");
        }
        let link = Link::to(&self.link, self.end.baud).map_err(|why| anyhow!(why))?;
        let stimulate = StimulateExperiment {
            link,
            name: self.link.clone(),
            thread: self.end.thread(cpu),
            period,
            duration: self.duration.0,
        };
        if stimulate.stimuli() > STIMULI_MAX {
            let (count, most) = (stimulate.stimuli(), STIMULI_MAX);
            bail!(
                "--duration and --period give {} stimuli; at most {} are kept",
                format::count(count),
                format::count(most)
            );
        }
        let outputs = self.end.output.open()?;
        let started = jiff::Timestamp::now();
        output::message(&format!(
            "sending a stimulus to {} every {}",
            self.link,
            format::period(period.as_ns())
        ));
        let finished =
            experiment::run(stimulate, &machine.measuring, &mut ()).map_err(words::error)?;
        let envelope = experiment::envelope("stimulate", &machine, choice, started, &finished);
        let ended = finished.outcome.ended.clone();
        let body = StimulateBody { stimulate: finished.outcome };
        writing::write(&Report { envelope, body: Body::Measured(body.into()) }, outputs)?;
        ended.map_or(Ok(Exit::Fine), |why| Err(anyhow!(format::plain(&why))))
    }
}

/// `punctual respond`.
#[derive(Debug, clap::Args)]
pub(super) struct RespondArgs {
    /// Where stimuli come from: udp:ADDRESS:PORT (0.0.0.0 for every network, port 0 for a free
    /// one), or serial:PATH for a serial line
    link: LinkName,
    /// How long to respond [default: until interrupted]
    #[arg(long, short, allow_hyphen_values = true, value_parser = parse::duration)]
    duration: Option<parse::Duration>,
    #[command(flatten)]
    end: EndArgs,
}

impl Execute for RespondArgs {
    fn execute(&self) -> Result<Exit> {
        let machine = Machine::of(None)?;
        let (cpu, choice) = experiment::one_cpu(
            self.end.cpu.as_deref(),
            &machine.measuring,
            "stimuli are answered",
        )?;
        let (link, name) = Link::at(&self.link, self.end.baud).map_err(|why| anyhow!(why))?;
        let outputs = self.end.output.open()?;
        let started = jiff::Timestamp::now();
        output::message(&format!("responds at {name}"));
        let respond = RespondExperiment {
            link,
            name,
            thread: self.end.thread(cpu),
            duration: self.duration.map(|duration| duration.0),
        };
        let finished =
            experiment::run(respond, &machine.measuring, &mut ()).map_err(words::error)?;
        let envelope = experiment::envelope("respond", &machine, choice, started, &finished);
        let ended = finished.outcome.ended.clone();
        let body = RespondBody { respond: finished.outcome };
        writing::write(&Report { envelope, body: Body::Measured(body.into()) }, outputs)?;
        ended.map_or(Ok(Exit::Fine), |why| {
            Err(anyhow!("the link was lost: {}", format::plain(&why)))
        })
    }
}
