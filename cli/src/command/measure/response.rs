//! `punctual measure response`: how fast threads answer a stimulus.
//!
//! The full loop of the Windows CE benchmark, with the sources that this machine has.

use std::path::Path;

use anyhow::{Result, bail};
use punctual_lab::load::Loads;
use punctual_lab::response::{ResponseExperiment, ResponseRow, SOURCES, STIMULI_MAX, SourceName};
use punctual_report::measured::ResponseBody;

use crate::args::RootArgs;
use crate::experiment::{self, Machine};
use crate::measuring::{
    Measuring, Outcome, Planned, Shown, StageArgs, lost_source, stimulus_cpu, with_idle,
};
use crate::output::OutputArgs;
use crate::{format, parse};

/// The shortest period: threads that answer more often would leave their CPU no rest.
const PERIOD_MIN_NS: u64 = 20_000;

/// `punctual measure response`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
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
    #[command(flatten)]
    stages: StageArgs,
    /// Loads to run after the idle measurement, as for 'measure periodic'
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The help of `--source`.
fn help() -> String {
    let sources: Vec<String> =
        SOURCES.iter().map(|row| format!("'{}': {}", row.form(), row.help)).collect();
    format!("What raises stimuli; {}", sources.join("; "))
}

/// Why a condition has no stage 0 though its source has one.
fn left_out(row: &ResponseRow) -> Option<String> {
    let why = row.kernel_left_out.as_ref()?;
    Some(format!("{}: stage 0 is left out: {why}", row.condition))
}

impl Measuring for Args {
    const NAME: &'static str = "measure response";
    type Experiment = ResponseExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<ResponseExperiment>> {
        let facts = &machine.measuring;
        let (cpu, choice) = experiment::one_cpu(self.cpu.as_deref(), facts, "both stages run")?;
        let stimulus_cpu = stimulus_cpu(self.stimulus_cpu.as_deref(), cpu, facts)?;
        let period = self.period.period()?;
        if period.as_ns() < PERIOD_MIN_NS {
            let got = format::period(period.as_ns());
            bail!("--period {got}: it must be at least {}", format::period(PERIOD_MIN_NS));
        }
        let experiment = ResponseExperiment {
            source: self.source.clone(),
            cpu,
            stimulus_cpu,
            period,
            duration: self.duration.0,
            first: self.stages.first(),
            second: self.stages.second(),
            competitor: self.stages.competitor(),
            conditions: with_idle(&self.load),
        };
        if experiment.stimuli() > STIMULI_MAX {
            bail!(
                "--duration and --period give {} stimuli for each condition; at most {} are kept",
                format::count(experiment.stimuli()),
                format::count(STIMULI_MAX)
            );
        }
        Ok(Planned { experiment, choice })
    }

    fn shown(&self, outcome: Outcome<'_, ResponseExperiment>) -> Shown {
        let loads = outcome.load_rows();
        let rows = &outcome.figures.rows;
        let warnings = rows.iter().filter_map(left_out).collect();
        let trouble = rows.iter().any(|row| row.lost.is_some()).then(lost_source);
        Shown {
            warnings,
            trouble,
            ..Shown::body(ResponseBody { response: outcome.figures, loads })
        }
    }
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
