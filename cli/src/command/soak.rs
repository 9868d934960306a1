//! `punctual soak`: measures for days and over reboots, as one campaign.
//!
//! A campaign is a directory: two state files that take turns, and a result for other subcommands.
//! Begins one, goes on with one, or shows one; what it keeps is bounded, and so is what a kill can
//! cost.

mod config;
mod directory;
mod pages;
mod session;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use punctual_analysis::campaign::{Campaign, RUNS_MAX, different};
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::limit::MetricLimit;
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_host::{baseline, identity};
use punctual_lab::load::Loads;
use punctual_lab::periodic::PeriodicPlan;
use punctual_os::signal;
use punctual_report::Report;

use crate::args::{
    CpusArgs, PeriodsArgs, PolicyName, ReportArgs, RootArgs, UndecidedArgs, WaitName,
};
use crate::experiment::choices::PlannedLoops;
use crate::experiment::{Machine, words};
use crate::output::{self, JudgedOutputArgs, Opened};
use crate::parse::{self, Phase};
use crate::question::QuestionArgs;
use crate::stored::RESULT;
use crate::subcommand::{self, Execute, Exit};
use config::CampaignConfig;
use directory::{Directory, Found};
use pages::SessionFacts;
use session::{SessionStart, named, print, unix_s};

pub(super) use directory::is_campaign;

/// Where campaigns go that are given no directory.
const RESULTS: &str = "punctual-results";

/// `punctual soak`.
#[derive(Debug, Default, clap::Args)]
pub(super) struct SoakArgs {
    /// The campaign's directory: begins one there, or goes on with the one that is there
    /// [default: a new one in punctual-results]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["resume", "show"])]
    campaign: Option<PathBuf>,
    /// Continue the campaign in DIR, which must exist; options that are not given keep their values
    #[arg(long, value_name = "DIR", conflicts_with = "show")]
    resume: Option<PathBuf>,
    /// Report on the campaign in DIR so far, and measure nothing; it may be running
    #[arg(long, value_name = "DIR")]
    show: Option<PathBuf>,
    /// The campaign's name [default: its directory's]
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// Continue although the machine or an option has changed; the results are kept apart
    #[arg(long)]
    allow_change: bool,
    /// How long to measure, in all batches of all boots together [default: no end]
    #[arg(long, short, allow_hyphen_values = true, value_parser = parse::duration)]
    duration: Option<parse::Duration>,
    #[command(flatten)]
    cpus: CpusArgs,
    #[command(flatten)]
    periods: PeriodsArgs,
    #[command(flatten)]
    question: QuestionArgs,
    /// The scheduling policy to request [default: fifo]
    #[arg(long, value_enum)]
    policy: Option<PolicyName>,
    /// The priority to request, as the kernel counts: 98 is the highest [default: 90]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: Option<u8>,
    /// How to wait for a release [default: sleep]
    #[arg(long, value_enum)]
    wait: Option<WaitName>,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC: zero or a duration
    /// [default: zero]
    #[arg(long, allow_hyphen_values = true)]
    phase: Option<Phase>,
    /// Loads to run during the measurement, as for 'measure periodic'; loads in turn all run within
    /// each batch [default: none]
    #[arg(long, value_parser = parse::loads)]
    load: Option<Loads>,
    /// Length of a batch; each ends with a printed line and a new result.json [default: 1h]
    #[arg(long, allow_hyphen_values = true, value_parser = parse::duration)]
    every: Option<parse::Duration>,
    /// How often the state is saved: a kill or a power cut loses at most this much
    #[arg(
        long,
        default_value = "30s",
        allow_hyphen_values = true,
        value_name = "TIME",
        value_parser = parse::duration
    )]
    save_every: parse::Duration,
    /// Fail (exit 1) unless this limit holds for the whole campaign: 'p99.9<50us', 'max<1ms',
    /// 'missed<1'; checked each time the state is saved, and reported as soon as it cannot hold any
    /// more; may be given again
    #[arg(
        long = "limit",
        value_name = "LIMIT",
        allow_hyphen_values = true,
        value_parser = limit
    )]
    limits: Vec<MetricLimit>,
    /// Fail unless the campaign shows this claim (exit 1 where it is shown to be false, else what
    /// --undecided says): 'p(lateness>50us)<1e-6'; its bounds stay valid however often it is
    /// checked; may be given again
    #[arg(
        long = "claim",
        value_name = "CLAIM",
        allow_hyphen_values = true,
        value_parser = ask
    )]
    claims: Vec<Ask>,
    /// Fail (exit 1) also where a claim holds only if late cycles come alone
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    undecided: UndecidedArgs,
    /// Stop as soon as a limit or claim cannot hold any more
    #[arg(long)]
    stop_on_fail: bool,
    #[command(flatten)]
    output: JudgedOutputArgs,
    /// Print everything: the machine, all measures, what can be claimed
    #[arg(long, short)]
    verbose: bool,
    /// Include the cold cycles at the start of each block, which are left out by default
    #[arg(long)]
    keep_cold: bool,
    #[command(flatten)]
    root: RootArgs,
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

impl Execute for SoakArgs {
    fn execute(&self) -> Result<Exit> {
        if let Some(dir) = &self.show {
            return show(dir, self);
        }
        if self.save_every.0.as_ns() < 1_000_000_000 {
            bail!("--save-every must be at least 1 s");
        }
        let machine = Machine::of(self.root.path())?;
        let (root, facts, measuring) = (&machine.root, &machine.facts, &machine.measuring);
        // Everything that can be refused is, before a directory is made or written to.
        let mut planned = CampaignConfig::of(self, &BTreeMap::new())?;
        let existing =
            self.resume.as_ref().or(self.campaign.as_ref()).filter(|dir| is_campaign(dir));
        if existing.is_none() {
            plan(&planned, measuring)?;
        }
        let given = self.resume.iter().chain(&self.campaign).map(PathBuf::as_path);
        self.output.all().spare(given)?;
        self.output.all().spare_tree(self.root.path())?;
        let outputs = self.output.all().open()?;
        let (directory, found) = take(self)?;
        let path = directory.dir().path().to_owned();
        Opened::chosen(directory.dir(), RESULT)?;
        let trouble = found.as_ref().and_then(|found| found.trouble.clone());
        let mut campaign = match found {
            Some(Found { campaign, .. }) => {
                planned = CampaignConfig::of(self, &campaign.requested)?;
                refuse_change(&campaign, &planned, self, root, facts)?;
                campaign
            }
            None => begin(self, &path, &planned, root, facts)?,
        };
        let config = planned;
        let PlannedLoops { plan, choice } = plan(&config, measuring)?;
        let warnings = judge(&plan, measuring)?;
        signal::catch_stop().context("cannot catch SIGINT")?;
        let cut_off = campaign.boots().listed().last().is_some_and(|boot| !boot.ended);
        for change in config.changes(&campaign.requested) {
            campaign.note(unix_s(), &format!("option changed: {change}"));
        }
        campaign.requested = config.words();
        campaign.begin(&boot(root), &kernel(facts), unix_s());
        session::hold(SessionStart {
            campaign,
            config: &config,
            directory,
            path: &path,
            root,
            plan,
            choice,
            facts,
            notes: machine.foreign.iter().cloned().chain(warnings).collect(),
            trouble,
            cut_off,
            args: self,
            outputs,
        })
    }
}

/// The risks of a campaign's loops on this machine, in words.
///
/// # Errors
/// They could take the machine away.
fn judge(plan: &PeriodicPlan, facts: &MachineFacts) -> Result<Vec<String>> {
    plan.check().map_err(|why| words::risk(&why))?;
    let cautions = punctual_lab::experiment::judge(&plan.demands(), facts);
    let cautions = cautions.map_err(|why| words::risk(&why))?;
    Ok(cautions.iter().map(words::planned).collect())
}

/// The loops of a campaign, within what it can hold.
fn plan(config: &CampaignConfig, facts: &MachineFacts) -> Result<PlannedLoops> {
    let shortest = config.duration.map_or(config.every, |duration| duration.min(config.every));
    let planned = config.loops(shortest).plan(facts)?;
    if planned.plan.runs() > RUNS_MAX {
        bail!(
            "--cpu, --period and --load give more than {RUNS_MAX} runs, the most that a \
             campaign keeps"
        );
    }
    Ok(planned)
}

/// Takes the campaign's directory.
fn take(args: &SoakArgs) -> Result<(Directory, Option<Found>)> {
    match (&args.resume, &args.campaign) {
        (Some(dir), _) => Directory::take(dir, false),
        (None, Some(dir)) => Directory::take(dir, true),
        (None, None) => {
            let results = Path::new(RESULTS);
            let dir = output::results_dir(results, jiff::Timestamp::now())
                .map_err(|why| subcommand::elsewhere(why, results, "--campaign"))?;
            Directory::lock(dir, true)
        }
    }
}

/// A campaign that begins.
fn begin(
    args: &SoakArgs,
    path: &Path,
    config: &CampaignConfig,
    root: &Root,
    facts: &MachineFacts,
) -> Result<Campaign> {
    let own = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = args.name.clone().or(own).unwrap_or_else(|| "soak".to_owned());
    Ok(Campaign::new(&name, config.words(), machine(root, facts), unix_s()))
}

/// Another machine, or other loops, are refused unless that is meant.
fn refuse_change(
    campaign: &Campaign,
    config: &CampaignConfig,
    args: &SoakArgs,
    root: &Root,
    facts: &MachineFacts,
) -> Result<()> {
    if let Some(name) = args.name.as_ref().filter(|name| **name != campaign.name) {
        bail!("--name {name:?}: the name of this campaign is {:?}", campaign.name);
    }
    if args.allow_change {
        return Ok(());
    }
    let machine = different(&campaign.machine, &machine(root, facts));
    if !machine.is_empty() {
        let differences = machine.join("; ");
        bail!(
            "the campaign was measured on another machine ({differences}); --allow-change keeps \
             their results apart"
        );
    }
    let changes = config.changes(&campaign.requested);
    if !changes.is_empty() {
        let changes = changes.join("; ");
        bail!(
            "the options differ from those of the campaign ({changes}); --allow-change keeps their \
             results apart"
        );
    }
    Ok(())
}

/// Shows a campaign as it is on disk.
fn show(dir: &Path, args: &SoakArgs) -> Result<Exit> {
    args.output.all().spare([dir])?;
    let outputs = args.output.all().open()?;
    print(&stored(dir, |kept| CampaignConfig::of(args, kept))?, outputs, args.verbose)
}

/// The report of a campaign as it is on disk, judged by these limits, claims and question; where
/// there are none, by its own.
pub(super) fn judged(dir: &Path, args: &ReportArgs, question: &QuestionArgs) -> Result<Report> {
    stored(dir, |kept| CampaignConfig::kept(kept, args, question))
}

fn stored(
    dir: &Path,
    config: impl Fn(&BTreeMap<String, String>) -> Result<CampaignConfig>,
) -> Result<Report> {
    let found = directory::read(dir)?;
    let Some(found) = found else { bail!("{}: no campaign in this directory", dir.display()) };
    let config = config(&found.campaign.requested).with_context(|| dir.display().to_string())?;
    let mut report = pages::report(&found.campaign, &config, &SessionFacts::default());
    report.envelope.warn_of(found.trouble);
    Ok(report)
}

/// Which machine this is.
fn machine(root: &Root, facts: &MachineFacts) -> BTreeMap<String, String> {
    let mut machine = named(facts, baseline::MACHINE.iter().copied());
    if let Some(id) = identity::machine(root).value() {
        machine.insert("identifier".to_owned(), id.clone());
    }
    machine
}

/// The kernel's name of this boot; empty where it does not tell.
fn boot(root: &Root) -> String {
    identity::boot(root).value().cloned().unwrap_or_default()
}

/// The kernel's release.
fn kernel(facts: &MachineFacts) -> String {
    facts.kernel.kernel.value().cloned().unwrap_or_default()
}
