//! `--baseline` and `--against` of a measuring subcommand: read before the run, done after it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};
use punctual_host::baseline::Name;
use punctual_host::facts::MachineFacts;

use super::compared::{Side, compare_sides};
use super::differences;
use super::recorded::{Recorded, RecordedRun};
use super::store::{Baseline, Store};
use crate::args::{BaselineArgs, Undecided};
use crate::output::{self, Opened};
use crate::report::{Difference, EndedBy, Report, Run};

/// What a run is to be compared with, and kept as.
pub(crate) struct Gate {
    against: Option<Baseline>,
    keep: Option<Keep>,
    /// Whether what cannot be told fails.
    fails_undecided: bool,
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

impl Gate {
    /// Refuses what could not be done after the run: no such baseline, one of another machine, a
    /// name that is taken, a directory that cannot be written. `foreign`: the facts are not those
    /// of the machine that measures.
    pub(crate) fn open(args: &BaselineArgs, facts: &MachineFacts, foreign: bool) -> Result<Self> {
        if foreign && (args.baseline.is_some() || args.against.is_some()) {
            bail!(
                "--root cannot be combined with --baseline or --against: a baseline belongs to \
                 the machine that measures"
            );
        }
        let mut files = Vec::new();
        let against = match &args.against {
            None => None,
            Some(name) => {
                let name = Name::parse(name).context("--against")?;
                let store = Store::new(&args.dir)?;
                let baseline = store.read(&name)?;
                files.push(store.path(&name));
                baseline.refuse_another_machine(facts)?;
                Some(baseline)
            }
        };
        let keep = match &args.baseline {
            None => None,
            Some(name) => {
                let name = Name::parse(name).context("--baseline")?;
                let store = Store::new(&args.dir)?;
                let file = store.open(&name, args.force)?;
                files.push(file.path().to_owned());
                Some(Keep { store, name, force: args.force, file })
            }
        };
        let fails_undecided = args.undecided == Undecided::Fail;
        Ok(Self { against, keep, fails_undecided, files })
    }

    /// Refuses a baseline that these runs, which are about to be measured, cannot be held against:
    /// none of the same name, or one of another period, wait or load.
    pub(crate) fn refuse_others(&self, planned: &[RecordedRun]) -> Result<()> {
        let Some(baseline) = &self.against else { return Ok(()) };
        let kept = &baseline.recorded.runs;
        let mut names = Vec::new();
        for of in planned {
            let Some(before) = kept.iter().find(|run| run.is_named(&of.name)) else { continue };
            names.push(&of.name);
            if let Some(Difference { what, a, b }) = differences::of_questions(before, of).next() {
                return Err(baseline.otherwise(&format!("'{}' had {what} {a}, not {b}", of.name)));
            }
        }
        if names.is_empty() {
            let quoted = |runs: &[RecordedRun]| {
                let names: Vec<String> = runs.iter().map(|run| format!("'{}'", run.name)).collect();
                names.join(", ")
            };
            let (its, these) = (quoted(kept), quoted(planned));
            return Err(baseline.otherwise(&format!("its runs are {its}, not {these}")));
        }
        Ok(())
    }

    /// Refuses JSON in the place of a baseline.
    pub(crate) fn spare(&self, json: Option<&Path>) -> Result<()> {
        self.files.iter().try_for_each(|file| output::distinct(json, Some(file)))
    }

    /// Holds a report against the baseline: its verdict fails where the run is worse, and where
    /// they cannot be compared. The error is for after the report was written.
    pub(crate) fn judge(&self, report: &mut Report, runs: &[RecordedRun]) -> Option<Error> {
        let baseline = self.against.as_ref()?;
        let why = compared(baseline, self.fails_undecided, report, runs).err()?;
        let verdict = &mut report.envelope.verdict;
        verdict.reasons.push(format!("against {}: {why:#}", baseline.name.as_str()));
        verdict.ok = false;
        Some(why)
    }

    /// Keeps the report as the baseline, where that is requested and it ran to its end.
    pub(crate) fn keep(&self, report: &Report, runs: &[RecordedRun]) -> Result<()> {
        let Some(Keep { store, name, force, file }) = &self.keep else { return Ok(()) };
        if report.envelope.incomplete {
            let why = EndedBy::brief(report.envelope.ended_by);
            bail!("not saved as baseline {}: {why}", name.as_str());
        }
        let from = format!("baseline {}", name.as_str());
        if let Some(why) = report.body.runs().iter().find_map(Run::load_died) {
            bail!("not saved as baseline {}: {why}", name.as_str());
        }
        store.refuse_taken(name, *force)?;
        Store::keep(name, Recorded::measured(report, runs, &from), file)?;
        output::message(&format!("baseline saved as {}", file.path().display()));
        Ok(())
    }
}

impl Baseline {
    /// Why it is of no use for a run.
    fn otherwise(&self, how: &str) -> Error {
        let name = self.name.as_str();
        anyhow!(
            "baseline {name} was measured otherwise: {how}; use its options again, or keep another \
             baseline with --baseline NAME; 'punctual compare' takes two results"
        )
    }
}

/// Compares a report with a baseline; its verdict fails where the run is worse, and with
/// `fails_undecided` where it may be.
fn compared(
    baseline: &Baseline,
    fails_undecided: bool,
    report: &mut Report,
    runs: &[RecordedRun],
) -> Result<()> {
    let name = baseline.name.as_str();
    let sides = [
        Side { label: format!("baseline {name}"), results: vec![baseline.recorded.clone()] },
        Side {
            label: "this run".to_owned(),
            results: vec![Recorded::measured(report, runs, "this run")],
        },
    ];
    let comparison = compare_sides(&sides, &[], false)?;
    if comparison.is_worse() {
        let worse = comparison.pairs.iter().flat_map(|pair| &pair.runs);
        let worse = worse.filter(|run| {
            use punctual_analysis::compare::Verdict::{Mixed, Worse};
            matches!(run.verdict, Worse | Mixed)
        });
        let reasons = worse.map(|run| format!("{}: {}", run.name, run.statement));
        report.envelope.verdict.reasons.extend(reasons.map(|why| format!("against {name}: {why}")));
        let alone = "one run compared with one: a drift of the machine or a reboot can look \
                     the same; 'punctual compare --a A1,A2,A3 --b B1,B2,B3' with runs \
                     measured in turn separates them";
        report.envelope.verdict.reasons.push(format!("against {name}: {alone}"));
        report.envelope.verdict.ok = false;
    }
    let open = comparison.pairs.iter().flat_map(|pair| &pair.runs).filter(|run| run.is_open());
    for run in open.filter(|_| fails_undecided) {
        let why = format!("against {name}: {}: {}", run.name, run.statement);
        report.envelope.verdict.reasons.push(why);
        report.envelope.verdict.ok = false;
    }
    let died: Vec<String> = report.body.runs().iter().filter_map(Run::load_died).collect();
    if let Some(why) = died.first() {
        report.envelope.verdict.reasons.push(format!("against {name}: {why}"));
        report.envelope.verdict.ok = false;
    }
    report.body.set_compare(comparison);
    Ok(())
}
