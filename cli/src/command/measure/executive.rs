//! `punctual measure executive`: what the executive's table costs, compared with the ways of
//! others.
//!
//! One thread on one CPU; the designs take turns in short blocks. Reports also what a turn of the
//! loop adds to the bare wait.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use punctual::RtThread;
use punctual_core::time::Span;
use punctual_lab::executive::ExecutiveExperiment;
use punctual_papers::ant;
use punctual_report::measured::ExecutiveBody;

use crate::args::{RequestedPolicyArgs, RootArgs};
use crate::experiment::Machine;
use crate::measuring::{CpuArgs, Measuring, Outcome, Planned, Shown};
use crate::output::OutputArgs;
use crate::{format, parse};

/// `punctual measure executive`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    cpu: CpuArgs,
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
    #[command(flatten)]
    policy: RequestedPolicyArgs,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    output: OutputArgs,
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

impl Measuring for Args {
    const NAME: &'static str = "measure executive";
    const HAS_PROGRESS: bool = false;
    type Experiment = ExecutiveExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<ExecutiveExperiment>> {
        let (cpu, choice) = self.cpu.choose(machine, "the executive is measured")?;
        let experiment = ExecutiveExperiment {
            thread: RtThread::cpu(cpu).with_policy(self.policy.policy()),
            sizes: self.tasks.clone(),
            duration: self.duration.0,
            rivals: ant::RIVALS.to_vec(),
        };
        Ok(Planned { experiment, choice })
    }

    fn shown(&self, outcome: Outcome<'_, ExecutiveExperiment>) -> Shown {
        let warnings = took_longer(self.duration.0, outcome.took).into_iter().collect();
        let figures = outcome.figures;
        let body = ExecutiveBody { rows: figures.rows, ratios: figures.ratios, turn: figures.turn };
        Shown { warnings, ..Shown::body(body) }
    }
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
