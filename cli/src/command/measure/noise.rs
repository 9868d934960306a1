//! `punctual measure noise`: what takes CPUs away from threads that only spin.
//!
//! As oslat, sysjitter and the kernel's hwlat tracer look for it, in windows with rests between
//! them, so that the machine stays usable.

use std::path::Path;

use anyhow::{Result, bail};
use punctual::RtThread;
use punctual_host::choose::{check_cpus, helper_cpu};
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::load::Loads;
use punctual_lab::noise::NoiseExperiment;
use punctual_os::affinity;

use super::periodic::condition_name;
use super::{Measuring, Outcome, OutputArgs, Planned, RequestedPolicyArgs, Shown};
use crate::command::RootArgs;
use crate::experiment::{self, Machine};
use crate::parse;
use crate::report::Choice;
use crate::report::measured::NoiseBody;

/// `punctual measure noise`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The CPUs to measure, as the kernel lists them: 1, 0-3,5 or all [default: all that can be
    /// measured, so that gaps on all CPUs at once are found]
    #[arg(long, short, value_name = "LIST")]
    cpu: Option<String>,
    /// How long to measure, including the rests
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    /// The shortest gap: two reads of the clock that are this far apart
    #[arg(
        long,
        default_value = "1us",
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    threshold: parse::Duration,
    /// The share of the time to spin, in windows that begin every 97.31 ms; in the rest other tasks
    /// can run
    #[arg(long, default_value = "50%", value_name = "SHARE", value_parser = parse::share)]
    duty: f64,
    #[command(flatten)]
    policy: RequestedPolicyArgs,
    /// Loads to run during the measurement, as for 'measure periodic', all at once
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    root: RootArgs,
}

impl Measuring for Args {
    const NAME: &'static str = "measure noise";
    type Experiment = NoiseExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<NoiseExperiment>> {
        let here = &machine.here;
        let (cpus, choice) = pick(self.cpu.as_deref(), here)?;
        let [loads] = &self.load.turns()[..] else {
            bail!("--load: measure noise takes one load or several at once, not in turn");
        };
        let experiment = NoiseExperiment {
            cpus: cpus.iter().collect(),
            thread: RtThread::any().with_policy(self.policy.policy()),
            threshold: self.threshold.0,
            duration: self.duration.0,
            duty: self.duty,
            loads: (condition_name(loads), loads.clone()),
            housekeeping: helper_cpu(&cpus, here).into_iter().collect(),
            tick_hz: here.kernel.tick_hz.value().copied(),
            counts_smi: here.power.smi_count.value().is_some(),
        };
        Ok(Planned { experiment, choice })
    }

    fn shown(&self, outcome: Outcome<'_, NoiseExperiment>) -> Shown {
        let loads = outcome.load_rows();
        Shown::body(NoiseBody { noise: outcome.figures, loads })
    }
}

/// The CPUs to measure: as requested, else all that this process may use and those that are
/// isolated.
fn pick(requested: Option<&str>, here: &MachineFacts) -> Result<(CpuList, Choice)> {
    if requested.is_some() {
        return experiment::pick(requested, here);
    }
    let mine = affinity::get(0).map(|mask| mask.iter().collect()).unwrap_or_default();
    let cpus: CpuList = here.isolation.isolated().iter().chain::<Vec<u32>>(mine).collect();
    check_cpus(&cpus, here)?;
    Ok((cpus.clone(), Choice { cpus: cpus.to_string(), why: "all that can be measured".into() }))
}
