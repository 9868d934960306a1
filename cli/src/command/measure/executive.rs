//! `punctual measure executive`: what the executive's table costs, compared with the ways of
//! others.
//!
//! One thread on one CPU; the designs take turns in short blocks. Reports also what a turn of the
//! loop adds to the bare wait.

use std::time::{Duration, Instant};

use anyhow::Result;
use punctual::RtThread;
use punctual_core::time::Span;
use punctual_lab::executive::ExecutiveExperiment;

use crate::command;
use crate::exit::Exit;
use crate::experiment::{self, Machine, PRIORITY, words};
use crate::format;
use crate::output::OutputArgs;
use crate::parse;
use crate::report::{Body, ExecutiveBody, Report};

/// `punctual measure executive`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The CPU to measure on [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    /// How long to measure, in all; each number of tasks has an equal share of it, with warm and
    /// with cold caches. At least three blocks of each design are measured: about 10 s with all
    /// numbers of tasks; where that takes twice this time or longer, the result has a warning
    #[arg(
        long,
        short,
        default_value = "30s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    /// The numbers of tasks, all due at once, separated by commas: up to 100000 each
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "1,10,50,100,1000,10000,100000",
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    tasks: Vec<u32>,
    /// Write the result as JSON to FILE; '-' writes JSON to standard output and nothing else
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// The experiment with these numbers of tasks, with the policy of a measuring loop.
pub(crate) fn experiment(cpu: u32, sizes: Vec<u32>, duration: Span) -> ExecutiveExperiment {
    ExecutiveExperiment { thread: RtThread::cpu(cpu).fifo(PRIORITY), sizes, duration }
}

/// That the least number of blocks took much longer than `wanted`; `None` where it did not.
fn took_longer(wanted: Span, took: Duration) -> Option<String> {
    let wanted_ns = wanted.as_ns().max(0).unsigned_abs();
    (took.as_nanos() >= 2 * u128::from(wanted_ns)).then(|| {
        format!(
            "measured for {}, not for the {} of --duration: each design has at least three blocks \
             with each number of tasks; fewer --tasks take less time",
            format::long(took.as_nanos() as f64),
            format::period(wanted_ns),
        )
    })
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    let machine = Machine::of(None)?;
    let (cpu, choice) =
        experiment::one_cpu(args.cpu.as_deref(), &machine.here, "the executive is measured")?;
    let outputs = args.output.open()?;
    let (started, begun) = (jiff::Timestamp::now(), Instant::now());
    let executive = experiment(cpu, args.tasks.clone(), args.duration.0);
    let finished = experiment::run(executive, &machine.here, &mut ()).map_err(words::error)?;
    let took = begun.elapsed();
    let mut envelope =
        experiment::envelope("measure executive", &machine, choice, started, &finished);
    envelope.warnings.extend(took_longer(args.duration.0, took));
    let outcome = finished.outcome;
    let body = ExecutiveBody { rows: outcome.rows, ratios: outcome.ratios, turn: outcome.turn };
    command::write(&Report { envelope, body: Body::Measured(body.into()) }, outputs)?;
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_of_twice_the_wanted_time_has_a_warning_with_both() {
        let took_longer = |took| took_longer(Span::from_ms(600), Duration::from_millis(took));
        assert_eq!((took_longer(500), took_longer(1_199)), (None, None));
        let warning = took_longer(8_123).expect("much longer");
        assert!(warning.contains("for 8.1 s, not for the 600 ms of --duration"), "{warning}");
        assert!(took_longer(1_200).is_some());
    }
}
