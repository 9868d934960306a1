//! `punctual measure saturation`: the highest frequency of stimuli that is served.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use punctual_lab::response::SourceName;
use punctual_lab::saturation::SaturationExperiment;
use punctual_report::measured::SaturationBody;

use crate::args::RootArgs;
use crate::experiment::{self, Machine};
use crate::measuring::{Measuring, Outcome, Planned, Shown, StageArgs, lost_source, stimulus_cpu};
use crate::output::OutputArgs;
use crate::parse;
use crate::stored::STATE;
use crate::unthrottled::Unthrottled;

/// `punctual measure saturation`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What raises stimuli, as for 'measure response'; not the kernel's timer
    #[arg(long, default_value_t)]
    source: SourceName,
    /// The CPU of both stages and of the background [default: an isolated one, else the last that
    /// is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    /// The CPU that raises stimuli, by polling the clock: another one [default: another core]
    #[arg(long, value_name = "CPU")]
    stimulus_cpu: Option<String>,
    /// How long to search at most: half of it unloaded, half with polygons on the same CPU; thirds
    /// with --competitor, whose search is one more
    #[arg(
        long,
        short,
        default_value = "2min",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    #[command(flatten)]
    stages: StageArgs,
    /// Switch real-time throttling, and the fair server of --cpu, off meanwhile, to find the
    /// frequency that leaves nothing for others. Dangerous: in trials of 2.5 s two CPUs run nothing
    /// else, and a machine with two hangs that long. Root; a process of its own puts the settings
    /// back, also where this one is killed. Tested in virtual machines only; that this is one is
    /// not checked
    #[arg(long)]
    unsafe_no_throttle: bool,
    /// The directory of the journal of --unsafe-no-throttle, which 'punctual tune revert' reads
    #[arg(long, value_name = "DIR", default_value = STATE)]
    state: PathBuf,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// When throttling is put back at the latest: well after the measurement should have ended.
fn limit(args: &Args) -> Duration {
    const AFTER: Duration = Duration::from_secs(60);
    let measured = args.duration.0.as_ns().max(0).unsigned_abs();
    Duration::from_nanos(measured.saturating_mul(2)).saturating_add(AFTER)
}

impl Measuring for Args {
    const NAME: &'static str = "measure saturation";
    type Experiment = SaturationExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<SaturationExperiment>> {
        let facts = &machine.measuring;
        let (cpu, choice) = experiment::one_cpu(self.cpu.as_deref(), facts, "both stages run")?;
        let stimulus_cpu = stimulus_cpu(self.stimulus_cpu.as_deref(), cpu, facts)?;
        if stimulus_cpu == cpu {
            bail!("saturation needs two CPUs: one raises stimuli by polling, another answers them");
        }
        if self.source.row().by_kernel {
            bail!("--source {}: the kernel raises no stimuli at a chosen load", self.source);
        }
        let experiment = SaturationExperiment {
            source: self.source.clone(),
            cpu,
            stimulus_cpu,
            first: self.stages.first(),
            second: self.stages.second(),
            competitor: self.stages.competitor(),
            duration: self.duration.0,
            unthrottled: self.unsafe_no_throttle,
        };
        Ok(Planned { experiment, choice })
    }

    fn unthrottle(&self, experiment: &SaturationExperiment) -> Result<Option<Unthrottled>> {
        let wanted = experiment.unthrottled;
        wanted.then(|| Unthrottled::begin(&self.state, experiment.cpu, limit(self))).transpose()
    }

    fn shown(&self, outcome: Outcome<'_, SaturationExperiment>) -> Shown {
        let saturation = outcome.figures;
        let warning = saturation.unthrottled.then(|| {
            let cpu = saturation.cpu;
            format!("real-time throttling, and the fair server of CPU {cpu}, were off")
        });
        let warnings = warning.into_iter().collect();
        let trouble = saturation.lost.is_some().then(lost_source);
        let body = SaturationBody { saturation };
        Shown { warnings, trouble, ..Shown::body(body) }
    }
}
