//! `punctual soak`: measures for days and over reboots, as one campaign.
//!
//! A campaign is a directory: two state files that take turns, and a result for other subcommands.
//! Begins one, goes on with one, or shows one; what it keeps is bounded, and so is what a kill can
//! cost.

mod directory;
mod pages;
mod session;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use punctual_analysis::campaign::{
    Batch, Campaign, Effort, Extent, RUNS_MAX, RunSetup, Setup, different, plain,
};
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::limit::MetricLimit;
use punctual_core::sample::Sample;
use punctual_core::time::Span;
use punctual_engine::drain::Sink;
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_host::{baseline, identity};
use punctual_lab::load::Loads;
use punctual_lab::periodic::{PeriodicPlan, WaitKind};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::signal;
use punctual_report::{Choice, Clock, Load, Report, Session as ReportSession, Warning};

use crate::args::ReportArgs;
use crate::command::measure::{LoopChoices, PlannedLoops, wait_kind};
use crate::command::{Execute, Exit, PolicyName, RootArgs, WaitName};
use crate::experiment::{Machine, words};
use crate::output::{self, OutputArgs, Outputs};
use crate::parse::{self, Phase};
use crate::stored::RESULT;
use directory::Directory;

pub(super) use directory::is_campaign;

/// Where campaigns go that are given no directory.
const RESULTS: &str = "punctual-results";

impl Execute for SoakArgs {
    fn execute(&self) -> Result<Exit> {
        if let Some(dir) = &self.show {
            return show(dir, self);
        }
        if self.save_every.0.as_ns() < 1_000_000_000 {
            bail!("--save-every must be at least 1 s");
        }
        let machine = Machine::of(self.root.path())?;
        let (root, facts, here) = (&machine.root, &machine.facts, &machine.here);
        // Everything that can be refused is, before a directory is made or written to.
        let mut planned = CampaignConfig::of(self, &BTreeMap::new())?;
        let existing =
            self.resume.as_ref().or(self.campaign.as_ref()).filter(|dir| is_campaign(dir));
        if existing.is_none() {
            plan(&planned, here)?;
        }
        let given = self.resume.iter().chain(&self.campaign).map(PathBuf::as_path);
        self.output.spare(given)?;
        self.output.spare_tree(self.root.path())?;
        let outputs = self.output.open()?;
        let (directory, found) = take(self)?;
        let path = directory.dir().path().to_owned();
        directory.dir().opened(RESULT)?;
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
        let PlannedLoops { plan, choice } = plan(&config, here)?;
        let warnings = judge(&plan, here)?;
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

/// The facts of a session, which only the process that measures knows.
#[derive(Clone, Debug, Default)]
struct SessionFacts {
    /// The CPUs, and why these.
    choice: Option<Choice>,
    /// The clock that stamps were taken with.
    clock: Option<Clock>,
    /// The facts of the machine.
    machine: Option<MachineFacts>,
    /// The rights that the kernel granted.
    session: Option<ReportSession>,
    /// Warnings for a reader.
    warnings: Vec<Warning>,
    /// The loads of the latest batch, by run of the setup that is measured now.
    loads: Vec<Vec<Load>>,
    /// The number of that setup.
    pool: Option<usize>,
}

/// A state that was found in a campaign's directory.
#[derive(Debug)]
struct Found {
    /// The newest whole state.
    campaign: Campaign,
    /// The error of the other one.
    trouble: Option<String>,
    number: u64,
}

/// A campaign that is about to go on.
struct SessionStart<'a> {
    campaign: Campaign,
    config: &'a CampaignConfig,
    directory: Directory,
    /// The name of the directory.
    path: &'a Path,
    root: &'a Root,
    plan: PeriodicPlan,
    choice: Choice,
    facts: &'a MachineFacts,
    /// Notes for the campaign, before the first batch.
    notes: Vec<String>,
    /// The error of one of the two states.
    trouble: Option<String>,
    /// Whether the session before this one was cut off.
    cut_off: bool,
    args: &'a SoakArgs,
    outputs: Outputs,
}

/// The risks of a campaign's loops on this machine, in words.
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
pub(super) fn judged(dir: &Path, args: &ReportArgs) -> Result<Report> {
    stored(dir, |kept| CampaignConfig::kept(kept, args))
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

/// `punctual soak`.
#[derive(Debug, Default, Args)]
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
    /// The CPUs to measure, as the kernel lists them: 1, 0-3,5 or all [default: as check chooses]
    #[arg(long, short, value_name = "LIST")]
    cpu: Option<String>,
    /// The period; several, separated by commas, run at once on each CPU, shorter periods with
    /// higher priority [default: 1ms]
    #[arg(
        long,
        short,
        value_delimiter = ',',
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    period: Vec<parse::Duration>,
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
    /// Fail (exit 1) unless the campaign shows this claim: 'p(lateness>50us)<1e-6'; its bounds stay
    /// valid however often it is checked; may be given again
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
    /// Stop as soon as a limit or claim cannot hold any more
    #[arg(long)]
    stop_on_fail: bool,
    #[command(flatten)]
    output: OutputArgs,
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

/// Facts by name, as a campaign keeps text.
fn named<'a>(
    facts: &MachineFacts,
    names: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<String, String> {
    baseline::known(names, facts).into_iter().map(|(name, text)| (name, plain(&text))).collect()
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

/// The setup of these runs on this machine.
fn setup(runs: Vec<RunSetup>, facts: &MachineFacts) -> Setup {
    Setup { runs, facts: named(facts, baseline::lasting()) }
}

/// The campaign, and the batch that runs.
struct Live {
    /// All batches that are over.
    campaign: Campaign,
    /// The one that runs.
    running: Option<Running>,
}

/// A batch that runs.
#[derive(Clone)]
struct Running {
    /// Its collectors.
    batch: Batch,
    /// When it began, in seconds since 1970.
    from_unix_s: i64,
    /// And on CLOCK_MONOTONIC, once it was set up.
    from_ns: u64,
    /// Its length.
    length: Span,
}

impl Running {
    /// The time that it was measured so far, ns. Ending its threads and loads takes time too, in
    /// which nothing is measured.
    fn measured_ns(&self) -> u64 {
        let passed = now_ns(ClockId::Monotonic).saturating_sub(self.from_ns);
        passed.min(self.length.as_ns().unsigned_abs())
    }
}

/// The name of a run in results: with its setup where there are several.
fn run_name(campaign: &Campaign, pool: usize, run: &RunSetup) -> String {
    if campaign.pools().len() == 1 {
        run.name.clone()
    } else {
        format!("{}, setup {}", run.name, pool + 1)
    }
}

/// The campaign and the batch that runs, behind a lock.
struct Shared(Mutex<Live>);

/// The time of day, in seconds since 1970.
fn unix_s() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// CLOCK_REALTIME − CLOCK_MONOTONIC, ns.
fn time_of_day_ns() -> i64 {
    now_ns(ClockId::Realtime).cast_signed() - now_ns(ClockId::Monotonic).cast_signed()
}

impl Shared {
    /// A campaign in which nothing runs yet.
    fn new(campaign: Campaign) -> Self {
        Self(Mutex::new(Live { campaign, running: None }))
    }

    /// A thread that panicked with the lock leaves numbers that are whole all the same.
    fn lock(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The campaign as if the batch that runs ended now.
    fn snapshot(&self) -> Campaign {
        let live = self.lock();
        let mut campaign = live.campaign.clone();
        let running = live.running.clone();
        drop(live);
        if let Some(running) = running {
            let measured_ns = running.measured_ns();
            // Exact counters come at the end: until then, gaps in k are missed releases.
            let effort = |gaps| Effort { missed: gaps, wall_ns: measured_ns, ..Effort::default() };
            let efforts = running.batch.collectors.iter().map(|c| effort(c.gaps())).collect();
            let extent = Extent {
                from_unix_s: running.from_unix_s,
                to_unix_s: unix_s(),
                measured_ns,
                efforts,
            };
            let _rows = campaign.add(running.batch, &extent);
        }
        campaign
    }
}

/// Takes the samples of the drain into the batch that runs.
struct Feed<'a>(&'a Shared);

impl Sink for Feed<'_> {
    fn take(&mut self, run: usize, samples: &[Sample]) {
        let ahead_ns = time_of_day_ns();
        let mut live = self.0.lock();
        let collectors = live.running.as_mut().map(|running| &mut running.batch.collectors);
        if let Some(collector) = collectors.and_then(|collectors| collectors.get_mut(run)) {
            collector.set_time_of_day(ahead_ns);
            collector.extend(samples);
        }
    }
}

/// The longest value that a campaign keeps, in characters.
const VALUE_MAX: usize = 400;

/// Options that decide how loops run: with other ones it is another measurement.
const DECIDING: [&str; 9] =
    ["cpu", "every", "keep-cold", "load", "period", "phase", "policy", "priority", "wait"];

/// The configuration of a campaign.
#[derive(Clone, Debug)]
struct CampaignConfig {
    cpu: Option<String>,
    period: Vec<parse::Duration>,
    policy: PolicyName,
    priority: u8,
    wait: WaitName,
    phase: Phase,
    load: Loads,
    /// The length of a batch.
    every: Span,
    /// The time to measure in all; `None`: without end.
    duration: Option<Span>,
    /// Whether cold cycles count.
    keep_cold: bool,
    /// The limits on all of it.
    limits: Vec<MetricLimit>,
    /// And the claims that it is to show.
    claims: Vec<Ask>,
    /// Whether one that holds only if late cycles come alone fails.
    strict: bool,
}

impl CampaignConfig {
    /// The options given now, on top of those that a campaign keeps.
    ///
    /// # Errors
    /// When what it keeps cannot be read, or a value is too long to keep.
    fn of(args: &SoakArgs, kept: &BTreeMap<String, String>) -> Result<Self> {
        let kept = Kept(kept);
        let period = if args.period.is_empty() {
            kept.list("period", "1ms", parse::period)?
        } else {
            args.period.clone()
        };
        let limits = if args.limits.is_empty() {
            kept.list("limit", "", parse::limit)?
        } else {
            args.limits.clone()
        };
        let claims = if args.claims.is_empty() {
            kept.list("claim", "", |text| Ask::parse(text).map_err(|why| why.to_string()))?
        } else {
            args.claims.clone()
        };
        let config = Self {
            cpu: args.cpu.clone().or_else(|| kept.get("cpu").map(str::to_owned)),
            period,
            policy: kept
                .or(args.policy, "policy", PolicyName::Fifo, |t| PolicyName::from_str(t, false))?,
            priority: kept.or(args.priority, "priority", 90, |text| {
                let number = text.parse().ok().filter(|n| (1..=98).contains(n));
                number.ok_or_else(|| "must be 1 to 98".to_owned())
            })?,
            wait: kept
                .or(args.wait, "wait", WaitName::default(), |t| WaitName::from_str(t, false))?,
            phase: kept.or(args.phase, "phase", Phase::At(0), str::parse)?,
            load: match (&args.load, kept.get("load")) {
                (Some(load), _) => load.clone(),
                (None, text) => parse::loads(text.unwrap_or("none")).map_err(broken("load"))?,
            },
            every: kept.or(args.every, "every", HOUR, parse::duration)?.0,
            duration: match (args.duration, kept.get("duration")) {
                (Some(now), _) => Some(now.0),
                (None, None) => None,
                (None, Some(text)) => Some(parse::duration(text).map_err(broken("duration"))?.0),
            },
            keep_cold: args.keep_cold || kept.get("keep-cold").is_some(),
            limits,
            claims,
            strict: args.strict || kept.get("strict").is_some(),
        };
        config.check()?;
        Ok(config)
    }

    /// The configuration that a campaign keeps, with the limits and claims of `report` in the place
    /// of its own where there are any.
    ///
    /// # Errors
    /// When what it keeps cannot be read.
    fn kept(kept: &BTreeMap<String, String>, report: &ReportArgs) -> Result<Self> {
        let (limits, claims) = (report.limits.clone(), report.claims.clone());
        let args = SoakArgs { limits, claims, strict: report.strict, ..SoakArgs::default() };
        Self::of(&args, kept)
    }

    fn check(&self) -> Result<()> {
        if self.every < EVERY_MIN {
            bail!("--every must be at least {EVERY_MIN}");
        }
        if self.phase == Phase::Quiet {
            bail!("--phase quiet: the quiet phase can differ from boot to boot; give a duration");
        }
        for (name, value) in self.words() {
            if value.chars().count() > VALUE_MAX || value.contains(char::is_control) {
                bail!(
                    "--{name}: must be at most {VALUE_MAX} characters, without control characters"
                );
            }
        }
        Ok(())
    }

    /// The words of each option, as a campaign keeps them.
    fn words(&self) -> BTreeMap<String, String> {
        let ns = |span: Span| format!("{}ns", span.as_ns());
        let joined = |texts: Vec<String>| (!texts.is_empty()).then(|| texts.join(","));
        let limits = joined(self.limits.iter().map(ToString::to_string).collect());
        let claims = joined(self.claims.iter().map(ToString::to_string).collect());
        let periods = joined(self.period.iter().map(|period| ns(period.0)).collect());
        let phase = match self.phase {
            Phase::At(0) => "zero".to_owned(),
            Phase::At(ns) => format!("{ns}ns"),
            Phase::Quiet => "quiet".to_owned(),
        };
        let words = [
            ("cpu", self.cpu.clone()),
            ("period", periods),
            ("policy", word(self.policy)),
            ("priority", Some(self.priority.to_string())),
            ("wait", word(self.wait)),
            ("phase", Some(phase)),
            ("load", Some(self.load.to_string())),
            ("every", Some(ns(self.every))),
            ("duration", self.duration.map(ns)),
            ("keep-cold", self.keep_cold.then(|| "yes".to_owned())),
            ("limit", limits),
            ("claim", claims),
            ("strict", self.strict.then(|| "yes".to_owned())),
        ];
        let given = words.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        given.collect()
    }

    /// The options that decide how loops run and are not as `kept`, in words.
    fn changes(&self, kept: &BTreeMap<String, String>) -> Vec<String> {
        let deciding = |words: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            let owned = |(name, value): (&String, &String)| (name.clone(), value.clone());
            words.iter().filter(|(name, _)| DECIDING.contains(&name.as_str())).map(owned).collect()
        };
        different(&deciding(kept), &deciding(&self.words()))
    }

    /// The loops, for a batch of this length.
    fn loops(&self, length: Span) -> LoopChoices<'_> {
        LoopChoices {
            cpu: self.cpu.as_deref(),
            period: &self.period,
            duration: length,
            policy: self.policy,
            priority: self.priority,
            wait: wait_kind(self.wait, None, WAIT_BUDGET).unwrap_or(WaitKind::Sleep),
            phase: self.phase,
            load: &self.load,
        }
    }
}

const HOUR: parse::Duration = parse::Duration(Span::from_ms(3_600_000));
/// The share of the CPU that an adaptive wait may take.
const WAIT_BUDGET: f64 = 0.1;
/// The shortest batch: each begins and ends a thread, and calibrates the clock.
const EVERY_MIN: Span = Span::from_ms(1_000);

fn word(value: impl ValueEnum) -> Option<String> {
    value.to_possible_value().map(|value| value.get_name().to_owned())
}

fn broken(name: &str) -> impl Fn(String) -> anyhow::Error {
    move |why| anyhow!("--{name} as stored in the campaign: {why}")
}

/// Reads the options that a campaign keeps.
struct Kept<'a>(&'a BTreeMap<String, String>);

impl Kept<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value that is given, else the one that is kept, else the default.
    fn or<T>(
        &self,
        given: Option<T>,
        name: &str,
        otherwise: T,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T> {
        match (given, self.get(name)) {
            (Some(given), _) => Ok(given),
            (None, Some(text)) => parse(text).map_err(broken(name)),
            (None, None) => Ok(otherwise),
        }
    }

    fn list<T>(
        &self,
        name: &str,
        otherwise: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>> {
        let text = self.get(name).unwrap_or(otherwise);
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts.map(parse).collect::<Result<_, _>>().map_err(broken(name)).context("resume")
    }
}
