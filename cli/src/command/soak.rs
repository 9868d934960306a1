//! `punctual soak`: measures for days and over reboots, as one campaign.
//!
//! A campaign is a directory: two state files that take turns, and a result for other subcommands.
//! Begins one, goes on with one, or shows one; what it keeps is bounded, and so is what a kill can
//! cost.

mod args;
mod checkpointer;
mod config;
mod directory;
mod limits;
mod live;
mod pages;
mod place;
mod session;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use punctual_analysis::campaign::{Campaign, RUNS_MAX, different};
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_lab::periodic::PeriodicPlan;
use punctual_os::signal;

use crate::args::ReportArgs;
use crate::command::measure::PlannedLoops;
use crate::exit::Exit;
use crate::experiment::{Machine, words};
use crate::format;
use crate::output::{self, Outputs};
use crate::report::{EndedBy, Report};
use crate::stored::RESULT;
use checkpointer::Checkpointer;
use config::CampaignConfig;
use directory::{Directory, Found};
use live::{Shared, unix_s};
use pages::Here;
use session::{Ended, Session};

pub(crate) use args::SoakArgs;
pub(crate) use directory::is_campaign;

/// Where campaigns go that are given no directory.
const RESULTS: &str = "punctual-results";

/// Runs the subcommand.
pub(crate) fn run(args: &SoakArgs) -> Result<Exit> {
    if let Some(dir) = &args.show {
        return show(dir, args);
    }
    if args.save_every.0.as_ns() < 1_000_000_000 {
        bail!("--save-every must be at least 1 s");
    }
    let machine = Machine::of(args.root.root.as_deref())?;
    let (root, facts, here) = (&machine.root, &machine.facts, &machine.here);
    // Everything that can be refused is, before a directory is made or written to.
    let mut planned = CampaignConfig::of(args, &BTreeMap::new())?;
    let existing = args.resume.as_ref().or(args.campaign.as_ref()).filter(|dir| is_campaign(dir));
    if existing.is_none() {
        plan(&planned, here)?;
    }
    let given = args.resume.iter().chain(&args.campaign).map(PathBuf::as_path);
    args.output.spare(given)?;
    args.output.spare_tree(args.root.root.as_deref())?;
    let outputs = args.output.open()?;
    let (directory, found) = take(args)?;
    let path = directory.dir().path().to_owned();
    directory.dir().opened(RESULT)?;
    let trouble = found.as_ref().and_then(|found| found.trouble.clone());
    let mut campaign = match found {
        Some(Found { campaign, .. }) => {
            planned = CampaignConfig::of(args, &campaign.requested)?;
            refuse_change(&campaign, &planned, args, root, facts)?;
            campaign
        }
        None => begin(args, &path, &planned, root, facts)?,
    };
    let config = planned;
    let PlannedLoops { plan, choice } = plan(&config, here)?;
    let warnings = judge(&plan, here)?;
    signal::catch_stop().context("cannot catch SIGINT")?;
    let cut_off = campaign.boots().listed().last().is_some_and(|boot| !boot.ended);
    for change in config.changes(&campaign.requested) {
        campaign.note(unix_s(), &format!("option changed: {change}"));
    }
    campaign.requested = config.words();
    campaign.begin(&place::boot(root), &place::kernel(facts), unix_s());
    let shared = Shared::new(campaign);
    let aside = outputs.are_on_stdout();
    let checkpointer = Checkpointer::new(&shared, &config, directory, args.stop_on_fail, aside);
    report_start(&checkpointer, machine.foreign.iter().chain(&warnings), trouble, cut_off);
    report_place(&checkpointer, &path, &config);
    checkpointer.checkpoint();
    if checkpointer.unsaved().is_some() {
        bail!("{}: the state cannot be saved there", path.display());
    }
    let here = Here { choice: Some(choice), machine: Some(facts.clone()), ..Here::default() };
    let (batches, over) = mpsc::sync_channel(1);
    let session = Session { root, plan, checkpointer: &checkpointer, here, batches };
    let (ended, here) = measure(session, over, args)?;
    finish(&checkpointer, &config, ended?, &here, outputs)
}

/// Reports what is to be known before the first batch.
fn report_start<'a>(
    checkpointer: &Checkpointer<'_>,
    warnings: impl Iterator<Item = &'a String>,
    trouble: Option<String>,
    cut_off: bool,
) {
    warnings.for_each(|warning| checkpointer.note(warning));
    if let Some(why) = trouble {
        checkpointer.note(&format!("one state file is corrupt, so the other one is used: {why}"));
    }
    if cut_off {
        checkpointer.note("the last session was cut off: data after its last save is lost");
    }
}

/// What the loops of a campaign risk on this machine, in words.
///
/// # Errors
/// When they could take the machine away.
fn judge(plan: &PeriodicPlan, here: &MachineFacts) -> Result<Vec<String>> {
    plan.check().map_err(|why| words::risk(&why))?;
    let cautions = punctual_lab::experiment::judge(&plan.demands(), here);
    let cautions = cautions.map_err(|why| words::risk(&why))?;
    Ok(cautions.iter().map(words::planned).collect())
}

/// The loops of a campaign, within what it can hold.
fn plan(config: &CampaignConfig, here: &MachineFacts) -> Result<PlannedLoops> {
    let shortest = config.duration.map_or(config.every, |duration| duration.min(config.every));
    let planned = config.loops(shortest).plan(here)?;
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
            let dir = output::results_dir(Path::new(RESULTS), jiff::Timestamp::now())?;
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
    Ok(Campaign::new(&name, config.words(), place::machine(root, facts), unix_s()))
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
    let machine = different(&campaign.machine, &place::machine(root, facts));
    if !machine.is_empty() {
        let what = machine.join("; ");
        bail!(
            "the campaign was measured on another machine ({what}); --allow-change keeps their \
             results apart"
        );
    }
    let changes = config.changes(&campaign.requested);
    if !changes.is_empty() {
        let what = changes.join("; ");
        bail!(
            "the options differ from those of the campaign ({what}); --allow-change keeps their \
             results apart"
        );
    }
    Ok(())
}

fn report_place(checkpointer: &Checkpointer<'_>, path: &Path, config: &CampaignConfig) {
    let live = checkpointer.shared().lock();
    let (name, boot) = (live.campaign.name.clone(), live.campaign.boot());
    let measured_ns = live.campaign.measured_ns();
    drop(live);
    let until = match config.duration {
        Some(duration) => format!("{duration} in all"),
        None => "without end".to_owned(),
    };
    let measured = format::long(measured_ns as f64);
    let shown = path.display();
    checkpointer.print(&format!(
        "campaign {name} in {shown}: boot {boot}, {measured} measured so far, {until}; to \
         continue later: punctual soak --resume {shown}"
    ));
}

/// Runs a session with the checkpointer's thread next to it. What is learnt comes back also when it
/// ends in an error.
fn measure(
    mut session: Session<'_>,
    over: mpsc::Receiver<Here>,
    args: &SoakArgs,
) -> Result<(Result<Ended>, Here)> {
    let checkpointer = session.checkpointer;
    let every = Duration::from_nanos(args.save_every.0.as_ns().unsigned_abs());
    let housekeeping = session.plan.housekeeping.clone();
    std::thread::scope(|scope| {
        checkpointer.start(scope, &housekeeping, every, over)?;
        let ended = session.run();
        let Session { here, batches, .. } = session;
        // The checkpointer's thread ends with it.
        drop(batches);
        Ok((ended, here))
    })
}

/// The end of a session: all is written, and the page shown.
fn finish(
    checkpointer: &Checkpointer<'_>,
    config: &CampaignConfig,
    ended: Ended,
    here: &Here,
    outputs: Outputs,
) -> Result<Exit> {
    checkpointer.shared().lock().campaign.end(unix_s());
    checkpointer.checkpoint();
    checkpointer.write_result(here);
    let mut report = pages::report(&checkpointer.shared().snapshot(), config, here);
    match ended {
        Ended::Finished => (report.envelope.incomplete, report.envelope.ended_by) = (false, None),
        Ended::Stopped if signal::stop_flag().load(Ordering::Relaxed) => {
            report.envelope.ended_by = Some(EndedBy::Interrupt);
        }
        Ended::Stopped => report.envelope.ended_by = Some(EndedBy::Limit),
    }
    print(&report, outputs).and_then(|exit| {
        checkpointer.unsaved().map_or(Ok(exit), |what| bail!("{what} could not be saved"))
    })
}

fn print(report: &Report, outputs: Outputs) -> Result<Exit> {
    super::write(report, outputs)?;
    Ok(Exit::of(report))
}

/// Shows a campaign as it is on disk.
fn show(dir: &Path, args: &SoakArgs) -> Result<Exit> {
    args.output.spare([dir])?;
    let outputs = args.output.open()?;
    print(&stored(dir, |kept| CampaignConfig::of(args, kept))?, outputs)
}

/// The report of a campaign as it is on disk, judged by these limits and claims; where there are
/// none, by its own.
pub(crate) fn judged(dir: &Path, args: &ReportArgs) -> Result<Report> {
    stored(dir, |kept| CampaignConfig::kept(kept, args))
}

fn stored(
    dir: &Path,
    config: impl Fn(&BTreeMap<String, String>) -> Result<CampaignConfig>,
) -> Result<Report> {
    let found = directory::read(dir)?;
    let Some(found) = found else { bail!("{}: no campaign in this directory", dir.display()) };
    let config = config(&found.campaign.requested).with_context(|| dir.display().to_string())?;
    let mut report = pages::report(&found.campaign, &config, &Here::default());
    report.envelope.warnings.extend(found.trouble);
    Ok(report)
}
