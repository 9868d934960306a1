//! `punctual measure accuracy`: how exactly a wait ends at an instant of the processor's counter.
//!
//! Maruti's experiment: polling loops of known code, targets that sweep all offsets.

use std::path::Path;

use anyhow::Result;
use punctual::RtThread;
use punctual_lab::accuracy::AccuracyExperiment;
use punctual_papers::maruti;
use punctual_report::measured::AccuracyBody;

use crate::args::{RequestedPolicyArgs, RootArgs};
use crate::experiment::Machine;
use crate::measuring::{CpuArgs, Measuring, Outcome, Planned, Shown};
use crate::output::OutputArgs;
use crate::parse;

/// `punctual measure accuracy`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    cpu: CpuArgs,
    /// How long to measure, in all; the ways to wait take turns, and each is swept at least once
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

impl Measuring for Args {
    const NAME: &'static str = "measure accuracy";
    const HAS_PROGRESS: bool = false;
    type Experiment = AccuracyExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<AccuracyExperiment>> {
        let (cpu, choice) = self.cpu.choose(machine, "accuracy is measured")?;
        let thread = RtThread::cpu(cpu).with_policy(self.policy.policy());
        let rivals = maruti::RIVALS.to_vec();
        let experiment = AccuracyExperiment { thread, duration: self.duration.0, rivals };
        Ok(Planned { experiment, choice })
    }

    fn shown(&self, outcome: Outcome<'_, AccuracyExperiment>) -> Shown {
        Shown::body(AccuracyBody { accuracy: outcome.figures })
    }
}
