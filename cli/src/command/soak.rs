//! `punctual soak`: measures for days and over reboots, as one campaign.
//!
//! A campaign is a directory: two state files that take turns, and a result for other subcommands.
//! Begins one, goes on with one, or shows one; what it keeps is bounded, and so is what a kill can
//! cost.

mod session;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use punctual_analysis::campaign::{Campaign, RUNS_MAX, different};
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_host::{baseline, identity};
use punctual_lab::periodic::PeriodicPlan;
use punctual_os::signal;

use crate::args::RootArgs;
use crate::campaign;
use crate::campaign::config::{CampaignArgs, CampaignConfig};
use crate::campaign::directory::{Directory, Found, is_campaign};
use crate::experiment::choices::PlannedLoops;
use crate::experiment::{Machine, words};
use crate::output::{self, JudgedOutputArgs, Opened};
use crate::parse;
use crate::stored::RESULT;
use crate::subcommand::{self, Execute, Exit, RESULTS};
use session::{SessionStart, named, print, unix_s};

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
    #[command(flatten)]
    kept: CampaignArgs,
    /// How often the state is saved: a kill or a power cut loses at most this much
    #[arg(
        long,
        default_value = "30s",
        allow_hyphen_values = true,
        value_name = "TIME",
        value_parser = parse::duration
    )]
    save_every: parse::Duration,
    /// Stop as soon as a limit or claim cannot hold any more
    #[arg(long)]
    stop_on_fail: bool,
    #[command(flatten)]
    output: JudgedOutputArgs,
    #[command(flatten)]
    root: RootArgs,
}

fn name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.chars().count() > 100 || text.contains(char::is_control) {
        return Err("name must be 1 to 100 characters, without control characters".to_owned());
    }
    Ok(text.to_owned())
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
        let mut planned = CampaignConfig::of(&self.kept, &BTreeMap::new())?;
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
                planned = CampaignConfig::of(&self.kept, &campaign.requested)?;
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
    let report = campaign::stored(dir, |kept| CampaignConfig::of(&args.kept, kept))?;
    print(&report, outputs, args.kept.is_verbose())
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
