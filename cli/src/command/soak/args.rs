//! The options of `punctual soak`.
//!
//! What decides how late the loops are has no default here: a campaign that goes on keeps its own.

use std::path::PathBuf;

use clap::Args;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::limit::MetricLimit;
use punctual_lab::load::Loads;

use crate::args::{PolicyName, RootArgs, WaitName};
use crate::output::OutputArgs;
use crate::parse::{self, Phase};

/// `punctual soak`.
#[derive(Debug, Default, Args)]
pub(crate) struct SoakArgs {
    /// The campaign's directory: begins one there, or goes on with the one that is there
    /// [default: a new one in punctual-results]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["resume", "show"])]
    pub(crate) campaign: Option<PathBuf>,
    /// Continue the campaign in DIR, which must exist; options that are not given keep their values
    #[arg(long, value_name = "DIR", conflicts_with = "show")]
    pub(crate) resume: Option<PathBuf>,
    /// Report on the campaign in DIR so far, and measure nothing; it may be running
    #[arg(long, value_name = "DIR")]
    pub(crate) show: Option<PathBuf>,
    /// The campaign's name [default: its directory's]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,
    /// Continue although the machine or an option has changed; the results are kept apart
    #[arg(long)]
    pub(crate) allow_change: bool,
    /// How long to measure, in all batches of all boots together [default: no end]
    #[arg(long, short, allow_hyphen_values = true, value_parser = parse::duration)]
    pub(crate) duration: Option<parse::Duration>,
    /// The CPUs to measure, as the kernel lists them: 1, 0-3,5 or all [default: as check chooses]
    #[arg(long, short, value_name = "LIST")]
    pub(crate) cpu: Option<String>,
    /// The period; several, separated by commas, run at once on each CPU, shorter periods with
    /// higher priority [default: 1ms]
    #[arg(
        long,
        short,
        value_delimiter = ',',
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    pub(crate) period: Vec<parse::Duration>,
    /// The scheduling policy to request [default: fifo]
    #[arg(long, value_enum)]
    pub(crate) policy: Option<PolicyName>,
    /// The priority to request, as the kernel counts: 98 is the highest [default: 90]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=98))]
    pub(crate) priority: Option<u8>,
    /// How to wait for a release [default: sleep]
    #[arg(long, value_enum)]
    pub(crate) wait: Option<WaitName>,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC: zero or a duration
    /// [default: zero]
    #[arg(long, allow_hyphen_values = true, value_parser = parse::phase)]
    pub(crate) phase: Option<Phase>,
    /// Loads to run during the measurement, as for 'measure periodic'; loads in turn all run within
    /// each batch [default: none]
    #[arg(long, value_parser = parse::loads)]
    pub(crate) load: Option<Loads>,
    /// Length of a batch; each ends with a printed line and a new result.json [default: 1h]
    #[arg(long, allow_hyphen_values = true, value_parser = parse::duration)]
    pub(crate) every: Option<parse::Duration>,
    /// How often the state is saved: a kill or a power cut loses at most this much
    #[arg(
        long,
        default_value = "30s",
        allow_hyphen_values = true,
        value_name = "TIME",
        value_parser = parse::duration
    )]
    pub(crate) save_every: parse::Duration,
    /// Fail (exit 1) unless this limit holds for the whole campaign: 'p99.9<50us', 'max<1ms',
    /// 'missed<1'; checked each time the state is saved, and reported as soon as it cannot hold any
    /// more; may be given again
    #[arg(
        long = "limit",
        value_name = "LIMIT",
        allow_hyphen_values = true,
        value_parser = limit
    )]
    pub(crate) limits: Vec<MetricLimit>,
    /// Fail (exit 1) unless the campaign shows this claim: 'p(lateness>50us)<1e-6'; its bounds stay
    /// valid however often it is checked; may be given again
    #[arg(
        long = "claim",
        value_name = "CLAIM",
        allow_hyphen_values = true,
        value_parser = ask
    )]
    pub(crate) claims: Vec<Ask>,
    /// Fail (exit 1) also where a claim holds only if late cycles come alone
    #[arg(long)]
    pub(crate) strict: bool,
    /// Stop as soon as a limit or claim cannot hold any more
    #[arg(long)]
    pub(crate) stop_on_fail: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Include the cold cycles at the start of each block, which are left out by default
    #[arg(long)]
    pub(crate) keep_cold: bool,
    #[command(flatten)]
    pub(crate) root: RootArgs,
}

fn name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.chars().count() > 100 || text.contains(char::is_control) {
        return Err("name must be 1 to 100 characters, without control characters".to_owned());
    }
    Ok(text.to_owned())
}

/// A campaign fits no grid: none lasts over boots.
fn limit(text: &str) -> Result<MetricLimit, String> {
    use punctual_analysis::limit::Metric::{JitterPp, JitterRms};
    let limit = parse::limit(text)?;
    match limit.metric() {
        JitterPp | JitterRms => Err(format!(
            "{limit}: a campaign has no fitted grid, because no grid lasts over a reboot; \
             'punctual measure periodic' has one"
        )),
        _ => Ok(limit),
    }
}

fn ask(text: &str) -> Result<Ask, String> {
    Ask::parse(text).map_err(|why| why.to_string())
}
