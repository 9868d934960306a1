//! `punctual measure response`: how fast threads answer a stimulus.
//!
//! The full loop of the Windows CE benchmark, with the sources that this machine has.

use anyhow::{Result, bail};
use punctual_host::choose::{helper_cpu, parse_cpus};
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::load::Loads;
use punctual_lab::response::{ResponseExperiment, ResponseRow, SOURCES, STIMULI_MAX, SourceName};

use super::periodic::with_idle;
use crate::args::PolicyName;
use crate::command;
use crate::exit::Exit;
use crate::experiment::{self, Machine, words};
use crate::format;
use crate::output::OutputArgs;
use crate::parse;
use crate::progress::Line;
use crate::report::body::Body;
use crate::report::measured::ResponseBody;
use crate::report::{self, Report};

/// The shortest period: threads that answer more often would leave their CPU no rest.
const PERIOD_MIN_NS: u64 = 20_000;

/// `punctual measure response`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t, help = help())]
    source: SourceName,
    /// The CPU of both stages [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    /// The CPU that raises stimuli [default: another core]
    #[arg(long, value_name = "CPU")]
    stimulus_cpu: Option<String>,
    /// From one stimulus to the next, 20us or more
    #[arg(
        long,
        short,
        default_value = "1ms",
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    period: parse::Duration,
    /// How long to measure each condition: idle, and under each load
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    /// The priority of stage 1, SCHED_FIFO, and of the thread that raises stimuli
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: u8,
    /// The scheduling policy of stage 2
    #[arg(long, value_enum, value_name = "POLICY", default_value = "fifo")]
    stage2: PolicyName,
    /// The priority of stage 2
    #[arg(
        long,
        value_name = "PRIORITY",
        default_value_t = 70,
        value_parser = clap::value_parser!(u8).range(1..=98)
    )]
    stage2_priority: u8,
    /// Let a thread with the policy and priority of stage 2 compute on its CPU for seven tenths of
    /// the time; with --stage2 rr this is the paper's load of equal priority
    #[arg(long)]
    competitor: bool,
    /// Loads to run after the idle measurement, as for 'measure periodic'
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    #[command(flatten)]
    output: OutputArgs,
}

/// What `--source` takes.
fn help() -> String {
    let of: Vec<String> =
        SOURCES.iter().map(|row| format!("'{}': {}", row.form(), row.help)).collect();
    format!("What raises stimuli; {}", of.join("; "))
}

/// The CPU that raises stimuli: as requested, else another one than `cpu`, where there is one.
pub(super) fn another_cpu(requested: Option<&str>, cpu: u32, here: &MachineFacts) -> Result<u32> {
    match requested {
        Some(text) => match parse_cpus(text, here) {
            Ok(cpus) if cpus.len() == 1 => Ok(cpus.first().unwrap_or(cpu)),
            Ok(_) => bail!("--stimulus-cpu {text}: stimuli are raised on one CPU"),
            Err(why) => bail!("--stimulus-cpu {text}: {why}"),
        },
        None => Ok(helper_cpu(&CpuList::single(cpu), here).unwrap_or(cpu)),
    }
}

/// Why a condition has no stage 0 though its source has one.
fn left_out(row: &ResponseRow) -> Option<String> {
    let why = row.kernel_left_out.as_ref()?;
    Some(format!("{}: stage 0 is left out: {why}", row.condition))
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    let machine = Machine::of(None)?;
    let here = &machine.here;
    let (cpu, choice) = experiment::one_cpu(args.cpu.as_deref(), here, "both stages run")?;
    let stimulus_cpu = another_cpu(args.stimulus_cpu.as_deref(), cpu, here)?;
    let period = args.period.period()?;
    if period.as_ns() < PERIOD_MIN_NS {
        let got = format::period(period.as_ns());
        bail!("--period {got}: it must be at least {}", format::period(PERIOD_MIN_NS));
    }
    let response = ResponseExperiment {
        source: args.source.clone(),
        cpu,
        stimulus_cpu,
        period,
        duration: args.duration.0,
        first: PolicyName::Fifo.with(args.priority),
        second: args.stage2.with(args.stage2_priority),
        competitor: args.competitor,
        conditions: with_idle(&args.load),
    };
    if response.stimuli() > STIMULI_MAX {
        bail!(
            "--duration and --period give {} stimuli for each condition; at most {} are kept",
            format::count(response.stimuli()),
            format::count(STIMULI_MAX)
        );
    }
    let outputs = args.output.open()?;
    let started = jiff::Timestamp::now();
    let finished = experiment::run(response, here, &mut Line::new()).map_err(words::error)?;
    let mut envelope =
        experiment::envelope("measure response", &machine, choice, started, &finished);
    let rows = &finished.outcome.rows;
    envelope.warnings.extend(rows.iter().filter_map(left_out));
    let lost = rows.iter().any(|row| row.lost.is_some());
    let loads = finished.loads.iter().flat_map(|loads| report::loads(loads)).collect();
    let body = ResponseBody { response: finished.outcome, loads };
    command::write(&Report { envelope, body: Body::Measured(body.into()) }, outputs)?;
    if lost {
        bail!("the source was lost while it was measured; the result has what there was");
    }
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_0_that_is_left_out_is_a_warning() {
        let why = Some("CLOCK_REALTIME, which it is on, was set by 1.00 s".to_owned());
        let row =
            ResponseRow { condition: "idle".to_owned(), kernel_left_out: why, ..<_>::default() };
        let warning = left_out(&row).expect("a reason");
        assert!(warning.starts_with("idle: stage 0 is left out: CLOCK_REALTIME"), "{warning}");
        assert_eq!(left_out(&ResponseRow::default()), None);
    }
}
