//! Baselines as files: one each, in a directory of the user's, whole or not at all; and what
//! `--baseline` and `--against` of a measuring subcommand do with them, before the run and after.
//!
//! A file is about 5 kB for a thousand cycles and some 100 kB a run for any number more: the series
//! are bounded (128 chunks a load). Names are checked before a path is made of them.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Error, Result, anyhow, bail};
use clap::Args;
use punctual_document::{Block, Frame, Item, Items, ItemsKind, Table, numbers, words};
use punctual_host::baseline::{MACHINE, Name, SETUP, digest};
use punctual_host::facts::MachineFacts;
use punctual_host::identity::machine;
use punctual_host::root::Root;
use punctual_report::{About, Difference, EndedBy, ONE_AGAINST_ONE, Report, Run, against_words};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ComparisonArgs, ComparisonTerms, RUNS_MAX, Recorded, RecordedRun, Side, Surroundings,
    arrangements, changed_facts, compare_sides, question_differences,
};
use crate::format;
use crate::output::{self, Dir, MarkdownArgs, Opened, OutputArgs, state_dir};

/// Where baselines are.
#[derive(Clone, Debug, Args)]
pub(crate) struct BaselinesDir {
    /// Directory of baselines [default: $XDG_STATE_HOME/punctual/baselines, else
    /// ~/.local/state/punctual/baselines]
    #[arg(long, value_name = "DIR")]
    baselines: Option<PathBuf>,
}

/// Baselines of a measuring subcommand.
#[derive(Debug, Args)]
pub(crate) struct BaselineArgs {
    /// Save this run as baseline NAME of this machine, for --against
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Replace an existing baseline of that name
    #[arg(long, requires = "baseline")]
    force: bool,
    #[command(flatten)]
    against: AgainstArgs,
}

/// The baseline that runs are held against.
#[derive(Debug, Args)]
pub(crate) struct AgainstArgs {
    /// Compare with baseline NAME, and fail (exit 1) where it is worse: at fixed shares, at
    /// --threshold, and at the deadline where --for, --deadline or --miss put the question
    #[arg(long, value_name = "NAME")]
    against: Option<String>,
    #[command(flatten)]
    compared: ComparisonArgs,
    #[command(flatten)]
    dir: BaselinesDir,
}

/// The version of the files.
const LAYOUT: u32 = 2;
/// The most bytes of one: what the bounds of the series allow is far less.
const BYTES_MAX: u64 = 256 << 20;

/// A baseline.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Baseline {
    /// "punctual".
    tool: String,
    /// The layout of the file.
    baseline: u32,
    /// Its name.
    name: Name,
    /// The time at which it was kept, in UTC (RFC 3339).
    kept_at: String,
    /// Hash of the machine's identifier, where it has one: two of a kind are two machines.
    #[serde(default)]
    machine_id: Option<String>,
    /// Digest of the facts that say which machine it is of.
    machine_digest: String,
    /// Digest of the facts that say how the machine was set up, the kernel among them.
    setup_digest: String,
    /// The result.
    recorded: Recorded,
}

/// The part that every layout has.
#[derive(Deserialize)]
struct Head {
    tool: String,
    baseline: u64,
}

/// The directory of baselines.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    dir: PathBuf,
}

impl Store {
    /// The directory that was requested, else the user's.
    pub(crate) fn new(named: &BaselinesDir) -> Result<Self> {
        if let Some(dir) = &named.baselines {
            return Ok(Self { dir: dir.clone() });
        }
        let Some(state) = state_dir(None) else {
            bail!(
                "neither XDG_STATE_HOME nor HOME is set: name the directory of baselines with \
                 --baselines DIR"
            );
        };
        Ok(Self { dir: state.join("punctual/baselines") })
    }

    /// The file of a name.
    fn path(&self, name: &Name) -> PathBuf {
        self.dir.join(file(name))
    }

    /// Reads a baseline.
    fn read(&self, name: &Name) -> Result<Baseline> {
        let path = self.path(name);
        let shown = path.display();
        if !path.exists() {
            bail!(
                "there is no baseline {} in {}: 'punctual baseline list' has those that are there; \
                 create one with 'punctual check --baseline {}'",
                name.as_str(),
                self.dir.display(),
                name.as_str()
            );
        }
        let mut text = String::new();
        let kind = fs::metadata(&path).with_context(|| format!("cannot read {shown}"))?;
        if !kind.is_file() {
            bail!("{shown}: not a regular file");
        }
        let file = File::open(&path).with_context(|| format!("cannot read {shown}"))?;
        file.take(BYTES_MAX + 1)
            .read_to_string(&mut text)
            .with_context(|| format!("{shown}: not a baseline of punctual"))?;
        if text.len() as u64 > BYTES_MAX {
            bail!("{shown}: not a baseline of punctual: more than {} MiB", BYTES_MAX >> 20);
        }
        parse(&text).with_context(|| format!("{shown}"))
    }

    /// Names of all baselines, sorted.
    fn names(&self) -> Result<Vec<Name>> {
        let shown = self.dir.display();
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(why) => return Err(why).with_context(|| format!("cannot read {shown}")),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {shown}"))?;
            let file = entry.file_name();
            let name = file.to_str().and_then(|file| file.strip_suffix(".json"));
            names.extend(name.and_then(|name| Name::parse(name).ok()));
        }
        names.sort();
        Ok(names)
    }

    /// Refuses a name that is taken, unless it is to be replaced.
    fn refuse_taken(&self, name: &Name, force: bool) -> Result<()> {
        let path = self.path(name);
        if !force && path.symlink_metadata().is_ok() {
            bail!("{}: the baseline exists already; --force replaces it", path.display());
        }
        Ok(())
    }

    /// The file of a name that may be kept, found writable; the directory is made if need be.
    fn open(&self, name: &Name, force: bool) -> Result<Opened> {
        self.refuse_taken(name, force)?;
        Opened::chosen(&Dir::make(&self.dir)?, &file(name))
    }

    /// Keeps a result as a baseline, in the file that `open` found.
    fn keep(name: &Name, recorded: Recorded, to: &Opened) -> Result<()> {
        let Some(facts) = &recorded.machine else {
            bail!("a baseline needs the facts of its machine");
        };
        let baseline = Baseline {
            tool: "punctual".to_owned(),
            baseline: LAYOUT,
            name: name.clone(),
            kept_at: jiff::Timestamp::now().to_string(),
            machine_id: machine_id(),
            machine_digest: digest(MACHINE, facts),
            setup_digest: digest(SETUP, facts),
            recorded,
        };
        let text = serde_json::to_string(&baseline)? + "\n";
        to.write(|file| Ok(file.write_all(text.as_bytes())?))
    }

    /// Refuses Markdown in the place of a baseline.
    pub(crate) fn spared_by(&self, output: &MarkdownArgs) -> Result<()> {
        self.names()?.iter().try_for_each(|name| output.spare(&self.path(name)))
    }

    /// A row for each baseline, then those that cannot be read.
    pub(crate) fn list(&self) -> Result<Vec<Block>> {
        let names = self.names()?;
        if names.is_empty() {
            return Ok(vec![Block::words(format!("no baselines in {}", self.dir.display()))]);
        }
        let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
        for name in names {
            match self.read(&name) {
                Ok(Baseline { kept_at, setup_digest, recorded, .. }) => rows.push(vec![
                    name.as_str().to_owned(),
                    kept_at.get(..19).unwrap_or(&kept_at).to_owned(),
                    recorded.kernel().unwrap_or_else(|| "unknown".to_owned()),
                    setup_digest.get(..12).unwrap_or_default().to_owned(),
                ]),
                Err(why) => unreadable.push(Item::new(name.as_str(), format!("{why:#}"))),
            }
        }
        let columns = [("name", 20), ("kept at", 20), ("kernel", 24), ("setup", 12)];
        let columns = columns.map(|(head, width)| words(head).at_least(width));
        let unreadable = Items::new(ItemsKind::Notes, unreadable).at(0);
        Ok(vec![Table::new("", columns, rows).lined().into(), unreadable.into()])
    }

    /// A baseline: its machine, the facts that matter, its runs.
    pub(crate) fn shown(&self, name: &Name) -> Result<Vec<Block>> {
        let baseline = self.read(name)?;
        let recorded = &baseline.recorded;
        let row = |name: &str, value: &str| vec![name.to_owned(), value.to_owned()];
        let mut rows = vec![
            row("file", &self.path(&baseline.name).display().to_string()),
            row("machine", &baseline.machine_digest),
            row("setup", &baseline.setup_digest),
        ];
        rows.extend(recorded.disturbances().iter().map(|used| row("not idle", used)));
        // Facts are plain data: they always have a JSON form.
        let facts = serde_json::to_value(&recorded.machine).unwrap_or(Value::Null);
        for name in MACHINE.iter().chain(SETUP) {
            match &facts[name]["value"] {
                Value::Null => {}
                Value::String(text) => rows.push(row(name, text)),
                value => rows.push(row(name, &value.to_string())),
            }
        }
        let facts = Table::new("", ["fact", "value"].map(words), rows.clone());
        let columns = [words("").at_least(24), words("")];
        let runs = recorded.runs.iter().map(|run| {
            let releases: u64 = run.parts.iter().map(|series| series.releases()).sum();
            let missed: u64 = run.parts.iter().map(|series| series.missed).sum();
            vec![run.name.clone(), format::count(releases), format::count(missed)]
        });
        let columns_of_runs = [words("run"), numbers("releases"), numbers("missed")];
        Ok(vec![
            Block::words(format!("baseline {} · kept at {}", name.as_str(), baseline.kept_at)),
            facts.brief(Frame::Headless, columns, rows).into(),
            Block::Break,
            Table::new("", columns_of_runs, runs.collect()).bare().into(),
        ])
    }

    /// Removes a baseline.
    pub(crate) fn remove(&self, name: &Name) -> Result<()> {
        let path = self.path(name);
        if path.symlink_metadata().is_err() {
            bail!("there is no baseline {} in {}", name.as_str(), self.dir.display());
        }
        let removed = Dir::open(&self.dir)?.remove(&file(name));
        removed.with_context(|| format!("cannot remove {}", path.display()))
    }
}

impl Baseline {
    /// Refuses another machine here than the one that it is of, by its identifier.
    fn refuse_another_identifier(&self) -> Result<()> {
        if let (Some(kept), Some(own)) = (&self.machine_id, machine_id())
            && *kept != own
        {
            bail!(
                "baseline {} was recorded on another machine: its identifier \
                 (/etc/machine-id) differs; 'punctual compare' compares results of different \
                 machines",
                self.name.as_str()
            );
        }
        Ok(())
    }

    /// Refuses another machine than the one that it is of, by its facts.
    fn refuse_another_machine(&self, facts: &MachineFacts) -> Result<()> {
        let Some(mine) = &self.recorded.machine else {
            bail!("baseline {} does not record its machine", self.name.as_str());
        };
        let differing = changed_facts(MACHINE, mine, facts);
        let Some(first) = differing.first() else { return Ok(()) };
        bail!(
            "baseline {} was recorded on another machine: {} was {}, here it is {}; 'punctual \
             compare' compares results of different machines",
            self.name.as_str(),
            first.name,
            first.from,
            first.to
        )
    }
}

/// The file of a name.
fn file(name: &Name) -> String {
    format!("{}.json", name.as_str())
}

/// The machine that this runs on.
fn machine_id() -> Option<String> {
    machine(&Root::live()).value().cloned()
}

fn parse(text: &str) -> Result<Baseline> {
    let head: Head = serde_json::from_str(text).context("not a baseline of punctual")?;
    if head.tool != "punctual" {
        bail!("not a baseline of punctual");
    }
    if head.baseline != u64::from(LAYOUT) {
        bail!("layout {}: this version reads layout {LAYOUT}", head.baseline);
    }
    let baseline: Baseline = serde_json::from_str(text).context("baseline is corrupt")?;
    let runs = &baseline.recorded.runs;
    let series = || runs.iter().flat_map(|run| &run.parts);
    if runs.len() > RUNS_MAX || !series().all(|series| series.is_sound()) {
        bail!("baseline is corrupt: invalid counts");
    }
    Ok(baseline)
}

/// The baseline that a run is compared with, and the one that it is kept as.
pub(crate) struct BaselineUse {
    against: Option<Baseline>,
    /// What the comparison takes beside its sides.
    compared: ComparisonArgs,
    keep: Option<Keep>,
    /// The files of both.
    files: Vec<PathBuf>,
}

/// The baseline that a run is kept as.
struct Keep {
    store: Store,
    name: Name,
    force: bool,
    file: Opened,
}

impl BaselineUse {
    /// Refuses what could not be done after the run: no such baseline, one of another machine, a
    /// name that is taken, a directory that cannot be written. `foreign`: the facts are not those
    /// of the machine that measures.
    pub(crate) fn open(args: &BaselineArgs, facts: &MachineFacts, foreign: bool) -> Result<Self> {
        if foreign && (args.baseline.is_some() || args.against.against.is_some()) {
            bail!(
                "--root cannot be combined with --baseline or --against: a baseline belongs to \
                 the machine that measures"
            );
        }
        let mut used = Self::of_recorded(&args.against)?;
        if let Some(baseline) = &used.against {
            baseline.refuse_another_identifier()?;
            baseline.refuse_another_machine(facts)?;
        }
        let keep = match &args.baseline {
            None => None,
            Some(name) => {
                let name = Name::parse(name).context("--baseline")?;
                let store = Store::new(&args.against.dir)?;
                let file = store.open(&name, args.force)?;
                used.files.push(file.path().to_owned());
                Some(Keep { store, name, force: args.force, file })
            }
        };
        Ok(Self { keep, ..used })
    }

    /// The baseline that recorded data are held against; nothing is kept.
    ///
    /// # Errors
    /// There is no such baseline.
    pub(crate) fn of_recorded(args: &AgainstArgs) -> Result<Self> {
        let AgainstArgs { against, compared, dir } = args;
        let compared = compared.clone();
        let Some(name) = against else {
            if let Some(option) = compared.first() {
                bail!(
                    "{option} is about the comparison with a baseline: name that with \
                     --against NAME"
                );
            }
            return Ok(Self { against: None, compared, keep: None, files: Vec::new() });
        };
        let name = Name::parse(name).context("--against")?;
        let store = Store::new(dir)?;
        let baseline = store.read(&name)?;
        Ok(Self { against: Some(baseline), compared, keep: None, files: vec![store.path(&name)] })
    }

    /// Refuses data that were recorded on another machine than the baseline, as far as they tell,
    /// or of other loops.
    pub(crate) fn refuse_recorded(&self, recorded: &Recorded) -> Result<()> {
        if let (Some(baseline), Some(facts)) = (&self.against, &recorded.machine) {
            baseline.refuse_another_machine(facts)?;
        }
        self.refuse_others(&recorded.runs)
    }

    /// Returns true where the run is kept as a baseline, or held against one.
    pub(crate) fn is_used(&self) -> bool {
        self.against.is_some() || self.keep.is_some()
    }

    /// Refuses a baseline that these runs, which are about to be measured, cannot be held against:
    /// none of the same name, or one of another period, wait or load. Where loads are to run in
    /// another arrangement, a message says before the run that they will not be judged.
    pub(crate) fn refuse_others(&self, planned: &[RecordedRun]) -> Result<()> {
        let Some(baseline) = &self.against else { return Ok(()) };
        let kept = &baseline.recorded.runs;
        let (mut names, mut unjudged) = (Vec::new(), Vec::new());
        for run in planned {
            let Some(before) = kept.iter().find(|kept| kept.is_named(&run.name)) else { continue };
            names.push(&run.name);
            if let Some(Difference { what, a, b }) = question_differences(before, run).next() {
                return Err(baseline.otherwise(&format!("'{}' had {what} {a}, not {b}", run.name)));
            }
            let arranged = arrangements(before, run).filter(|_| !self.compared.allows_loads());
            unjudged.extend(arranged.map(|difference| (&run.name, difference)));
        }
        if names.is_empty() {
            let quoted = |runs: &[RecordedRun]| {
                let names: Vec<String> = runs.iter().map(|run| format!("'{}'", run.name)).collect();
                names.join(", ")
            };
            let (had, wanted) = (quoted(kept), quoted(planned));
            return Err(baseline.otherwise(&format!("its runs are {had}, not {wanted}")));
        }
        for (name, Difference { a, b, .. }) in unjudged {
            output::message(&format!(
                "'{name}' will be undecided: the loads of baseline {} ran {a}, those of this run \
                 {b}; measure with the same --duration or --load, or {}",
                baseline.name.as_str(),
                Surroundings::Loads.way_out()
            ));
        }
        Ok(())
    }

    /// Refuses an output of the result in the place of a baseline.
    pub(crate) fn spare(&self, outputs: &OutputArgs) -> Result<()> {
        self.files.iter().try_for_each(|file| outputs.distinct(Some(file)))
    }

    /// Holds a report against the baseline: its verdict fails where the run is worse, and where
    /// they cannot be compared. The error is for after the report was written.
    pub(crate) fn judge(&self, report: &mut Report, runs: &[RecordedRun]) -> Option<Error> {
        let recorded = Recorded::measured(report, runs, THIS_RUN);
        self.judge_recorded(report, recorded)
    }

    /// The same with what was recorded before.
    pub(crate) fn judge_recorded(&self, report: &mut Report, recorded: Recorded) -> Option<Error> {
        let baseline = self.against.as_ref()?;
        // Kept with the report where it was put.
        // That of this judgement; what recorded data keep may be another one.
        let headline = report.body.headline();
        let question = headline.map(|headline| headline.question_spec.clone().unwrap_or_default());
        let terms = self.compared.with_question(question);
        let why = compared(baseline, report, recorded, &terms).err()?;
        let why_not = against_words(baseline.name.as_str(), &format!("{why:#}"));
        report.envelope.verdict.fail_about(About::Uncompared, why_not);
        Some(why)
    }

    /// Keeps the report as the baseline, where that is requested and it ran to its end. One that a
    /// late release ended, as `--stop-over` asks, or a signal, is not kept, and that is no error.
    pub(crate) fn keep(&self, report: &Report, runs: &[RecordedRun]) -> Result<()> {
        let Some(Keep { store, name, force, file }) = &self.keep else { return Ok(()) };
        if report.envelope.incomplete {
            let why = EndedBy::brief(report.envelope.ended_by);
            let unsaved = format!("not saved as baseline {}: {why}", name.as_str());
            if report.envelope.ended_by == Some(EndedBy::Late) || report.envelope.is_interrupted() {
                // The exit status is that of the verdict, or of the signal.
                output::message(&unsaved);
                return Ok(());
            }
            bail!("{unsaved}");
        }
        let from = format!("baseline {}", name.as_str());
        if let Some(why) = report.body.runs().iter().find_map(Run::load_died) {
            bail!("not saved as baseline {}: {why}", name.as_str());
        }
        store.refuse_taken(name, *force)?;
        let recorded = Recorded::measured(report, runs, &from);
        let disturbances = recorded.disturbances();
        Store::keep(name, recorded, file)?;
        output::message(&format!("baseline saved as {}", file.path().display()));
        if let Some(warning) = restless(name, &disturbances) {
            output::message(&warning);
        }
        Ok(())
    }
}

impl Baseline {
    /// The error that it is of no use for a run.
    fn otherwise(&self, how: &str) -> Error {
        let name = self.name.as_str();
        anyhow!(
            "baseline {name} was measured otherwise: {how}; use its options again, or keep another \
             baseline with --baseline NAME; 'punctual compare' takes two results"
        )
    }
}

/// The warning that a baseline was kept of CPUs that others used, in these words; `None` where they
/// were idle.
fn restless(name: &Name, disturbances: &[String]) -> Option<String> {
    let name = name.as_str();
    (!disturbances.is_empty()).then(|| {
        format!(
            "warning: baseline {name} was not measured on an idle CPU: {}; what is held against \
             it looks better than it is: measure it again with nothing else there, with \
             --baseline {name} --force",
            disturbances.join("; ")
        )
    })
}

/// The label of the side that is held against a baseline.
const THIS_RUN: &str = "this run";

/// Compares a report with a baseline; its verdict fails where the run is worse, and stays open
/// where it may be.
fn compared(
    baseline: &Baseline,
    report: &mut Report,
    recorded: Recorded,
    terms: &ComparisonTerms,
) -> Result<()> {
    let name = baseline.name.as_str();
    let sides = [
        Side { label: format!("baseline {name}"), results: vec![baseline.recorded.clone()] },
        Side { label: THIS_RUN.to_owned(), results: vec![recorded] },
    ];
    let mut comparison = compare_sides(&sides, terms, false)?;
    if let Some(reference) = comparison.sides.first_mut() {
        reference.baseline = Some(name.to_owned());
    }
    let verdict = &mut report.envelope.verdict;
    for (about, why) in comparison.worse() {
        verdict.fail_about(about, against_words(name, &why));
    }
    for (about, why) in comparison.open() {
        verdict.leave_open(about, against_words(name, &why));
    }
    if let Some(why) = report.body.runs().iter().find_map(Run::load_died) {
        verdict.fail(against_words(name, &why));
    }
    if comparison.is_worse() {
        report.envelope.warn(against_words(name, ONE_AGAINST_ONE));
    }
    report.body.set_compare(comparison);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_of_a_cpu_that_others_used_is_kept_with_a_warning() {
        let name = Name::parse("night").expect("a name");
        assert_eq!(restless(&name, &[]), None);
        let used = "others used at least 94 % of CPU 1: rustc (pid 7) 94 %".to_owned();
        let warning = restless(&name, std::slice::from_ref(&used)).expect("a warning");
        assert!(warning.contains(&used), "{warning}");
        assert!(warning.ends_with("--baseline night --force"), "{warning}");
    }
}
