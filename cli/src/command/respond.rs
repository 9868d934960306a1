//! `punctual respond`: the machine under test answers the stimuli of another one.

use anyhow::{Result, anyhow};
use punctual_lab::outside::{Link, LinkName, RespondExperiment};
use punctual_report::measured::RespondBody;
use punctual_report::{Body, Report};

use super::stimulate::EndArgs;
use crate::command;
use crate::exit::Exit;
use crate::experiment::{self, Machine, words};
use crate::format;
use crate::output;
use crate::parse;

/// `punctual respond`.
#[derive(Debug, clap::Args)]
pub(crate) struct RespondArgs {
    /// Where stimuli come from: udp:ADDRESS:PORT (0.0.0.0 for every network, port 0 for a free
    /// one), or serial:PATH for a serial line
    link: LinkName,
    /// How long to respond [default: until interrupted]
    #[arg(long, short, allow_hyphen_values = true, value_parser = parse::duration)]
    duration: Option<parse::Duration>,
    #[command(flatten)]
    end: EndArgs,
}

/// Runs the subcommand.
pub(crate) fn run(args: &RespondArgs) -> Result<Exit> {
    let machine = Machine::of(None)?;
    let (cpu, choice) = experiment::one_cpu(args.end.cpu(), &machine.here, "stimuli are answered")?;
    let (link, name) = Link::at(&args.link, args.end.baud()).map_err(|why| anyhow!(why))?;
    let outputs = args.end.outputs()?;
    let started = jiff::Timestamp::now();
    output::message(&format!("responds at {name}"));
    let respond = RespondExperiment {
        link,
        name,
        thread: args.end.thread(cpu),
        duration: args.duration.map(|of| of.0),
    };
    let finished = experiment::run(respond, &machine.here, &mut ()).map_err(words::error)?;
    let envelope = experiment::envelope("respond", &machine, choice, started, &finished);
    let ended = finished.outcome.ended.clone();
    let body = RespondBody { respond: finished.outcome };
    command::write(&Report { envelope, body: Body::Measured(body.into()) }, outputs)?;
    ended.map_or(Ok(Exit::Fine), |why| Err(anyhow!("the link was lost: {}", format::plain(&why))))
}
