//! Results as comparisons see them, and how two of them compare.
//!
//! For `compare`, `--against` and `--baseline`. The statistics are in `punctual_analysis::compare`;
//! here is what is read, matched by name, and noted about setups that differ.

pub(crate) mod baseline;
pub(crate) mod grid;

use std::fs::{self, File};
use std::io::Seek;
use std::path::Path;

use anyhow::{Context, Result, bail};
use punctual_analysis::claim::count::WatchedThreshold;
use punctual_analysis::compare::series::{Builder, LatenessSeries};
use punctual_analysis::compare::{
    DisturbedSide, ExactCounts, Part, RESULTS_MIN, RunComparison, Runs, SideDisturbance, compare,
    named_as_change, of_runs,
};
use punctual_analysis::plain::plain_spaces;
use punctual_analysis::recording::{Recording, RecordingConfig, ReleaseInstants};
use punctual_analysis::summary::SummaryStats;
use punctual_analysis::verdict::Deadline;
use punctual_core::time::{Instant, Period};
use punctual_host::baseline::{Changed, MACHINE, SETUP, changed};
use punctual_host::facts::{MachineFacts, Virtualization};
use punctual_host::settings::{ChangedSetting, WatchedSettings};
use punctual_import::samples::{
    FileEnding, FileInfo, RUNS_MAX, RunCounts, RunInfo, SampleFileReader,
};
use punctual_report::{
    BlameRecording, ComparedResult, ComparedSide, Comparison, Difference, OtherThreads, Pair,
    QuestionSpec, Report, Run, Session, Setup,
};
use serde::{Deserialize, Serialize};

use crate::format;
use crate::parse::{self, Duration};
use crate::question;
use crate::stored::{self, RESULT, SAMPLES};

/// What a comparison takes beside its sides.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ComparisonArgs {
    /// Compare also how often this lateness is exceeded; may be given again. Where a side did not
    /// count at it, it is rounded up to the end of its histogram bucket, by less than 1 %
    #[arg(
        long = "threshold",
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    thresholds: Vec<Duration>,
    /// Name what of the surroundings is the very change that is compared, such as a program that no
    /// longer runs: a verdict is given all the same; several separated by commas
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    changed: Vec<Surroundings>,
}

/// What of the surroundings of a run keeps a verdict from being given where two sides differ in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Surroundings {
    /// The arrangement of the loads, one after the other or all at once ('differs: loads')
    Loads,
    /// What else ran on the CPU ('not idle')
    Others,
    /// The period of the loop ('differs: period')
    Period,
}

impl Surroundings {
    /// The word of `--changed`, which is that of a difference too.
    fn name(self) -> &'static str {
        match self {
            Self::Loads => LOADS,
            Self::Others => "others",
            Self::Period => PERIOD,
        }
    }

    /// The way out where it keeps a verdict from being given.
    fn way_out(self) -> String {
        named_as_change(self.name())
    }
}

impl ComparisonArgs {
    /// The first of its options, as it is given; `None` without any.
    pub(crate) fn first(&self) -> Option<String> {
        let time = |time: &Duration| format::period_argument(time.0.as_ns().unsigned_abs());
        let threshold = self.thresholds.first().map(|given| format!("--threshold {}", time(given)));
        let changed = || self.changed.first().map(|what| format!("--changed {}", what.name()));
        threshold.or_else(changed)
    }

    /// Returns true where the arrangement of the loads is the change that is compared.
    fn allows_loads(&self) -> bool {
        self.changed.contains(&Surroundings::Loads)
    }

    /// The terms of a comparison: these, and the deadline of the question that is known.
    fn with_question(&self, question: Option<QuestionSpec>) -> ComparisonTerms {
        let fixed_ns = self.thresholds.iter().map(|time| time.0.as_ns()).collect();
        ComparisonTerms { fixed_ns, question, note: None, changed: self.changed.clone() }
    }

    /// The terms of a comparison of these sides: these, and the deadline of the question that all
    /// their results were measured for.
    pub(crate) fn with_questions_of(&self, sides: &[Side]) -> ComparisonTerms {
        let results: Vec<&Recorded> = sides.iter().flat_map(|side| &side.results).collect();
        let first = results.first().and_then(|result| result.question.clone());
        let differs = results.iter().find(|result| result.question != first);
        let Some(other) = differs else {
            let note = first.as_ref().map(|spec| {
                format!("the deadline is that of the question kept with each: {}", words(spec))
            });
            return ComparisonTerms { note, ..self.with_question(first) };
        };
        let kept = |question: &Option<QuestionSpec>| {
            question.as_ref().map_or_else(|| "none".to_owned(), words)
        };
        let note = format!(
            "no deadline is compared, as the results keep different questions: {} has {}, {} has \
             {}; --threshold TIME compares one",
            results[0].from,
            kept(&first),
            other.from,
            kept(&other.question)
        );
        ComparisonTerms { note: Some(note), ..self.with_question(None) }
    }
}

/// A question in words: the options that ask it.
fn words(spec: &QuestionSpec) -> String {
    match question::options_of(spec) {
        options if options.is_empty() => "a tenth of the period".to_owned(),
        options => options,
    }
}

/// The terms of a comparison: thresholds beside those at fixed ranks, and what was changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ComparisonTerms {
    /// Those of every run, ns.
    fixed_ns: Vec<i64>,
    /// The question: of each run the deadline of its period.
    question: Option<QuestionSpec>,
    /// The note about the question, for a reader.
    note: Option<String>,
    /// What of the surroundings is the change that is compared.
    changed: Vec<Surroundings>,
}

impl ComparisonTerms {
    /// Returns true where this is the change that is compared.
    fn is_changed(&self, surroundings: Surroundings) -> bool {
        self.changed.contains(&surroundings)
    }

    /// Those of the thresholds, a deadline among them, that all runs of both sides counted exactly.
    fn exact_counts(
        &self,
        deadline_ns: Option<i64>,
        sides: [&[&RecordedRun]; 2],
    ) -> Vec<ExactCounts> {
        let later = |side: &[&RecordedRun], ns| -> Option<u64> {
            side.iter().try_fold(0u64, |sum, run| Some(sum.saturating_add(run.exactly_later(ns)?)))
        };
        let counts = |threshold_ns: i64| {
            let [a, b] = sides.map(|side| later(side, threshold_ns));
            Some(ExactCounts { threshold_ns, later: [a?, b?] })
        };
        let requested = self.fixed_ns.iter().copied().chain(deadline_ns);
        requested.filter_map(counts).collect()
    }

    /// The deadline of runs of these periods, ns; `None` where it is not the same for all.
    fn common_deadline_ns(&self, period_ns: Option<u64>, others_ns: &[u64]) -> Option<i64> {
        let deadline_ns = self.deadline_ns(period_ns)?;
        let is_same = |other_ns: &u64| self.deadline_ns(Some(*other_ns)) == Some(deadline_ns);
        others_ns.iter().all(is_same).then_some(deadline_ns)
    }

    /// The deadline of a run of this period, ns; `None` where it is a share of a period that is not
    /// known.
    fn deadline_ns(&self, period_ns: Option<u64>) -> Option<i64> {
        let requirement = question::question(Some(self.question.as_ref()?)).requirement;
        match (requirement.deadline, period_ns) {
            (Deadline::Ns(ns), None) => Some(ns),
            (_, period_ns) => Some(requirement.deadline_ns(period_ns?)),
        }
    }
}

/// One side: one result, or several of the same kind.
#[derive(Clone)]
pub(crate) struct Side {
    /// "A", "B", "baseline NAME".
    pub(crate) label: String,
    /// Its results, at least one.
    pub(crate) results: Vec<Recorded>,
}

impl Side {
    /// Its runs of this name.
    fn runs_named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a RecordedRun> {
        let runs = self.results.iter().flat_map(|result| &result.runs);
        runs.filter(move |run| run.name == name)
    }
}

/// The name of the side of this number, counted from 0, where it has none of its own: "A", "B", …
pub(crate) fn label(at: usize) -> String {
    match u8::try_from(at).ok().and_then(|at| b'A'.checked_add(at)) {
        Some(letter) if letter.is_ascii_uppercase() => char::from(letter).to_string(),
        _ => format!("#{}", at + 1),
    }
}

/// A run that two sides have.
struct Matched<'a> {
    name: &'a str,
    /// The period of the first of A.
    period_ns: Option<u64>,
    /// The deadline that all of them have.
    deadline_ns: Option<i64>,
    parts: [Vec<Part<'a>>; 2],
    /// The quantiles of a side that is one run.
    shown: [Option<&'a SummaryStats>; 2],
    disturbance: Option<SideDisturbance>,
    /// What to do for a test, and why there is none; `None` where there may be one.
    untested: Option<String>,
    /// Those of the thresholds that both sides counted exactly.
    exact: Vec<ExactCounts>,
    /// Missed releases that each side leaves out, compared by wakes alone.
    left_out: [Option<u64>; 2],
}

/// Compares every side after the first with the first. `anyway` takes counts without an order as if
/// cycles were independent.
pub(crate) fn compare_sides(
    sides: &[Side],
    terms: &ComparisonTerms,
    anyway: bool,
) -> Result<Comparison> {
    let mut sides = on_one_footing(sides)?;
    let files = join_imports(&mut sides);
    let sides = &sides[..];
    let [reference, others @ ..] = sides else { bail!("there is nothing to compare") };
    if let Some(empty) = sides.iter().find(|side| names(side).is_empty()) {
        bail!(
            "{}: it has no loop whose lateness could be compared; what has: results of check, \
             measure periodic, run, soak and analyse",
            empty.results[0].from
        );
    }
    let matched: Vec<Vec<Matched<'_>>> =
        others.iter().map(|b| matched([reference, b], terms, anyway)).collect();
    if let Some(at) = matched.iter().position(Vec::is_empty) {
        let compared = &others[at];
        let one_each = names(reference).len() == 1 && names(compared).len() == 1;
        bail!(
            "{} and {} have no run with the same name: the first has {}; the second has {}{}",
            reference.results[0].from,
            compared.results[0].from,
            named(reference),
            named(compared),
            if one_each { "; 'punctual compare A B --anyway' compares them" } else { "" }
        );
    }
    let mut runs: Vec<Runs<'_>> = Vec::new();
    for (other, matched) in others.iter().zip(&matched) {
        runs.extend(matched.iter().map(|run| Runs {
            name: run.name,
            sides: [&run.parts[0], &run.parts[1]],
            shown: run.shown,
            thresholds_ns: &terms.fixed_ns,
            deadline_ns: run.deadline_ns,
            exact: &run.exact,
            period_ns: run.period_ns,
            labels: [&reference.label, &other.label],
            disturbance: run.disturbance.as_ref(),
            as_if_independent: anyway,
            untested: run.untested.as_deref(),
            left_out: run.left_out,
        }));
    }
    let (compared, family) = compare(&runs);
    let mut compared = compared.into_iter();
    let mut pairs = Vec::new();
    for (at, (side, matched)) in others.iter().zip(&matched).enumerate() {
        let runs: Vec<_> = compared.by_ref().take(matched.len()).collect();
        let of_files = files.as_ref().map(|files| {
            format!(
                "each result is one imported file, and these are compared: {} has {}; {} has {}",
                reference.label,
                files[0],
                side.label,
                files[at + 1]
            )
        });
        let other_deadlines = matched
            .iter()
            .find(|run| run.deadline_ns.is_none() && terms.deadline_ns(run.period_ns).is_some());
        let other_deadlines = other_deadlines.map(|run| {
            format!(
                "no deadline of '{}' is compared, as the periods of its loops differ, and so do \
                 their deadlines; --threshold TIME compares one",
                run.name
            )
        });
        let about_all = terms.note.iter().cloned().chain(other_deadlines).chain(of_files);
        pairs.push(Pair {
            a: reference.label.clone(),
            b: side.label.clone(),
            verdict: of_runs(&runs),
            differences: listed(reference, side, anyway),
            notes: about_all
                .chain(unknown_others([reference, side], terms, &runs))
                .chain(notes(reference, side, anyway))
                .chain(unchanged(terms, reference, side, &runs))
                .collect(),
            only_in_a: unmatched(reference, side, anyway),
            only_in_b: unmatched(side, reference, anyway),
            runs,
        });
    }
    let changed = terms.changed.iter().map(|what| what.name().to_owned()).collect();
    Ok(Comparison { family, sides: sides.iter().map(side).collect(), pairs, changed, grid: None })
}

/// The sides, all of them by wakes alone where one knows nothing else.
fn on_one_footing(sides: &[Side]) -> Result<Vec<Side>> {
    let parts = |side: &Side| -> Vec<bool> {
        let runs = side.results.iter().flat_map(|result| &result.runs);
        runs.flat_map(|run| &run.parts).map(|series| series.of_wakes).collect()
    };
    let mut sides = sides.to_vec();
    for run in
        sides.iter_mut().flat_map(|side| &mut side.results).flat_map(|result| &mut result.runs)
    {
        // Results of before may have hard spaces in names.
        run.name = plain_spaces(&run.name);
    }
    let of_wakes: Vec<bool> = sides.iter().flat_map(parts).collect();
    if of_wakes.contains(&true) && of_wakes.contains(&false) {
        for result in sides.iter_mut().flat_map(|side| &mut side.results) {
            let from = &result.from;
            for run in &mut result.runs {
                for series in &mut run.parts {
                    let Some(wakes) = series.wakes() else {
                        bail!(
                            "{from}: the other side contains wakes only, and without samples the \
                             wakes of this side cannot be separated from its {} missed releases",
                            series.missed
                        );
                    };
                    if !series.of_wakes {
                        let left_out = run.left_out.unwrap_or_default();
                        run.left_out = Some(left_out.saturating_add(series.missed));
                    }
                    *series = wakes;
                }
                run.lateness_ns = run.wakes_ns.clone();
                // They count missed releases too.
                run.watched.clear();
            }
        }
    }
    Ok(sides)
}

/// Gives the runs of imports one name, where every result is an import of one run: each is called
/// after its file, and they are compared all the same. Returns the files of each side, quoted,
/// where that name does not have all of them.
fn join_imports(sides: &mut [Side]) -> Option<Vec<String>> {
    let results = sides.iter().flat_map(|side| &side.results);
    let files: Option<Vec<&str>> = results.map(Recorded::imported_file).collect();
    let files = files?;
    let first = *files.first()?;
    if files.iter().all(|file| *file == first) {
        return None;
    }
    let name = match &files[..] {
        [a, b] => format!("{a} and {b}"),
        _ => first.to_owned(),
    };
    let of_sides: Option<Vec<String>> =
        (files.len() > 2).then(|| sides.iter().map(named).collect());
    let results = sides.iter_mut().flat_map(|side| &mut side.results);
    for run in results.flat_map(|result| &mut result.runs) {
        run.name.clone_from(&name);
    }
    of_sides
}

fn side(side: &Side) -> ComparedSide {
    let result = |result: &Recorded| ComparedResult {
        from: result.from.clone(),
        experiment: result.experiment.clone(),
        started_at: result.started_at.clone(),
        kernel: result.kernel(),
        incomplete: result.incomplete,
    };
    ComparedSide {
        label: side.label.clone(),
        baseline: None,
        results: side.results.iter().map(result).collect(),
    }
}

/// The names of a side's runs, quoted: a name may have commas.
fn named(side: &Side) -> String {
    let quoted: Vec<String> = names(side).iter().map(|name| format!("'{name}'")).collect();
    quoted.join(", ")
}

/// The names of a side's runs, in their order, each once.
fn names(side: &Side) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for run in side.results.iter().flat_map(|result| &result.runs) {
        if !names.contains(&run.name.as_str()) {
            names.push(&run.name);
        }
    }
    names
}

/// Runs of a side that the other one does not have.
fn unmatched(side: &Side, reference: &Side, anyway: bool) -> Vec<String> {
    let (names, others) = (names(side), names(reference));
    if anyway && names.len() == 1 && others.len() == 1 {
        return Vec::new();
    }
    let left = names.iter().filter(|name| !others.contains(name));
    left.map(|name| (*name).to_owned()).collect()
}

/// The runs that both have; with `anyway` the one run of each, whatever it is called.
fn matched<'a>(sides: [&'a Side; 2], terms: &ComparisonTerms, anyway: bool) -> Vec<Matched<'a>> {
    let [a, b] = sides;
    let others = names(b);
    let matched = |name: &'a str, name_b: &str| {
        let named = [(a, name), (b, name_b)];
        let period_ns = period_ns(a, name);
        let runs = named.map(|(side, name)| side.runs_named(name).collect::<Vec<_>>());
        let is_judged = |surroundings| anyway || terms.is_changed(surroundings);
        let arrangement = || other_arrangement(sides, name);
        let period = || other_period(named);
        let loads = if is_judged(Surroundings::Loads) { None } else { arrangement() };
        let periods = if is_judged(Surroundings::Period) { None } else { period() };
        let others_ns: Vec<u64> =
            runs.iter().flatten().filter_map(|run| run.setup.period_ns).collect();
        let deadline_ns = terms.common_deadline_ns(period_ns, &others_ns);
        Matched {
            name,
            period_ns,
            deadline_ns,
            parts: named.map(|(side, name)| parts(side, name)),
            shown: named.map(|(side, name)| shown(side, name)),
            disturbance: disturbance(named, terms.is_changed(Surroundings::Others)),
            untested: periods.or(loads),
            exact: terms.exact_counts(deadline_ns, [&runs[0], &runs[1]]),
            left_out: runs.each_ref().map(|runs| runs.iter().map(|run| run.left_out).sum()),
        }
    };
    if let ([name], [name_b], true) = (&names(a)[..], &others[..], anyway) {
        return vec![matched(name, name_b)];
    }
    let shared = names(a).into_iter().filter(|name| others.contains(name));
    shared.map(|name| matched(name, name)).collect()
}

/// The series of the runs of a side with this name.
fn parts<'a>(side: &'a Side, name: &str) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    for (result, recorded) in side.results.iter().enumerate() {
        let of_name = recorded.runs.iter().filter(|run| run.name == name);
        parts.extend(of_name.flat_map(|run| &run.parts).map(|series| Part { result, series }));
    }
    parts
}

/// What it takes to compare runs of these names of which the period differs; `None` where that is
/// one, as far as is known.
fn other_period(named: [(&Side, &str); 2]) -> Option<String> {
    let mut known = named.into_iter().flat_map(|(side, name)| {
        let results = side.results.iter();
        results.filter_map(move |result| {
            let run = result.runs.iter().find(|run| run.name == name)?;
            Some((&result.from, run.setup.period_ns?))
        })
    });
    let (from, first_ns) = known.next()?;
    let (other_from, other_ns) = known.find(|(_, other_ns)| *other_ns != first_ns)?;
    Some(format!(
        "measure both with the same --period, or {}: the loop of {from} has a period of {}, that \
         of {other_from} one of {}",
        Surroundings::Period.way_out(),
        format::period(first_ns),
        format::period(other_ns)
    ))
}

/// What it takes to compare runs of this name whose loads ran in another arrangement; `None` where
/// that is one, as far as is known.
fn other_arrangement(sides: [&Side; 2], name: &str) -> Option<String> {
    let results = sides.into_iter().flat_map(|side| &side.results);
    let mut known = results.filter_map(|result| {
        let run = result.runs.iter().find(|run| run.name == name)?;
        Some((&result.from, run.arrangement()?))
    });
    let (from, first) = known.next()?;
    let (other_from, other) = known.find(|(_, other)| *other != first)?;
    Some(format!(
        "measure both with the same --duration or --load, or {}: the loads of {from} ran {first}, \
         those of {other_from} {other}",
        Surroundings::Loads.way_out()
    ))
}

/// What else ran on the CPUs of two runs, and whether that is the change that is compared; `None`
/// where both were idle, as far as their data record it.
fn disturbance(runs: [(&Side, &str); 2], is_the_change: bool) -> Option<SideDisturbance> {
    let most = runs.map(|(side, name)| {
        let seen = side.results.iter();
        let seen = seen.filter_map(|result| Some((&result.from, result.others(name)?)));
        seen.max_by(|(_, (_, a)), (_, (_, b))| a.share.total_cmp(&b.share))
    });
    let used = |side: usize| {
        let (from, (cpu, others)) = most[side]?;
        let used = others.used(cpu)?;
        let results = runs[side].0.results.len();
        Some(match results {
            1 => used,
            _ => format!("{used} ({from}, the most of its {results} results)"),
        })
    };
    let (a, b) = (used(0), used(1));
    let sides = [DisturbedSide::A, DisturbedSide::B].into_iter().zip(runs);
    let unknown = sides
        .filter(|(_, (side, name))| side.results.iter().any(|result| result.lacks_others(name)));
    let unknown: Vec<DisturbedSide> = unknown.map(|(side, _)| side).collect();
    if a.is_none() && b.is_none() && unknown.is_empty() {
        return None;
    }
    let [others_a, others_b] = most.map(|seen| seen.map(|(_, (_, others))| others));
    let more = match (others_a, others_b) {
        (Some(others), other) if others.outweigh(other) => Some(DisturbedSide::A),
        (other, Some(others)) if others.outweigh(other) => Some(DisturbedSide::B),
        _ => None,
    };
    Some(SideDisturbance { a, b, more, is_the_change, unknown })
}

/// The period of the first run of a side with this name.
fn period_ns(side: &Side, name: &str) -> Option<u64> {
    side.runs_named(name).next()?.setup.period_ns
}

/// The quantiles of the one run of a side with this name.
fn shown<'a>(side: &'a Side, name: &str) -> Option<&'a SummaryStats> {
    let mut runs = side.runs_named(name);
    let only = runs.next().filter(|_| runs.next().is_none());
    only.and_then(|run| run.lateness_ns.as_ref())
}

/// The differences of every result from the first one of A.
fn listed(a: &Side, b: &Side, anyway: bool) -> Vec<Difference> {
    let mut listed = Vec::new();
    let first = &a.results[0];
    for result in a.results[1..].iter().chain(&b.results) {
        let same = |(at, run): (usize, &RecordedRun)| {
            let named = result.runs.iter().position(|theirs| theirs.name == run.name);
            let alone = anyway && first.runs.len() == 1 && result.runs.len() == 1;
            Some((at, named.or(alone.then_some(0))?))
        };
        let matched: Vec<_> = first.runs.iter().enumerate().filter_map(same).collect();
        for difference in differences(first, result, &matched) {
            if !listed.contains(&difference) {
                listed.push(difference);
            }
        }
    }
    listed
}

/// The notes about a comparison, for a reader.
fn notes(a: &Side, b: &Side, anyway: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let results = || a.results.iter().chain(&b.results);
    notes.extend(in_turn(a, b));
    if a.results.len() < 3 || b.results.len() < 3 {
        notes.push(
            "fewer than three results on a side: how much results differ from boot to boot or \
             hour to hour is unknown"
                .to_owned(),
        );
    }
    for result in results().filter(|result| result.incomplete) {
        notes.push(format!("{} ended early", result.from));
    }
    notes.extend(results().filter_map(|result| result.unused_samples.clone()));
    for result in results() {
        let lost: u64 = result.runs.iter().map(|run| run.unrecorded).sum();
        if lost > 0 {
            notes.push(format!(
                "{}: {lost} cycles were not recorded and are not counted",
                result.from
            ));
        }
    }
    let parts = || results().flat_map(|result| &result.runs).flat_map(|run| &run.parts);
    if parts().any(|series| series.of_wakes) {
        let runs = results().flat_map(|result| &result.runs);
        let left_out: u64 = runs.filter_map(|run| run.left_out).sum();
        notes.push(format!(
            "compared by wakes alone, because one side does not contain its releases: {left_out} \
             missed releases are left out"
        ));
    }
    for result in results().filter(|result| result.machine.is_none()) {
        notes.push(format!("{}: the machine is not recorded", result.from));
    }
    let of_counts = |result: &&Recorded| {
        result.runs.iter().flat_map(|run| &run.parts).any(|series| !series.ordered)
    };
    let fewest = a.results.len().min(b.results.len());
    for result in results().filter(of_counts).filter(|_| !anyway && fewest < RESULTS_MIN) {
        notes.push(format!(
            "{} has counts alone, whose order is not known: keep samples ('check' without \
             --samples none), give {RESULTS_MIN} results a side with 'punctual compare --a \
             A1,A2,A3 --b B1,B2,B3', or take cycles as independent with its --anyway",
            result.from
        ));
    }
    if anyway && parts().any(|series| !series.ordered) {
        notes.push(
            "histograms do not contain the order of cycles: the tests assume independent cycles, \
             which is wrong where late cycles come in bursts"
                .to_owned(),
        );
    }
    if parts().any(|series| series.releases() == 0) {
        notes.push("a run has no cycles".to_owned());
    }
    notes
}

/// The note that nobody knows what else ran, and the way out; `None` where it is known, and where
/// it is the change that is compared.
fn unknown_others(
    [a, b]: [&Side; 2],
    terms: &ComparisonTerms,
    runs: &[RunComparison],
) -> Option<String> {
    if terms.is_changed(Surroundings::Others) {
        return None;
    }
    let seen = runs.iter().filter_map(|run| run.disturbance.as_ref());
    let words = seen.max_by_key(|seen| seen.unknown.len())?.unknown_words([&a.label, &b.label])?;
    let is_samples = |result: &Recorded| result.experiment == SAMPLES_ALONE;
    let way_out = match a.results.iter().chain(&b.results).any(is_samples) {
        true => "; samples do not hold it: give the result in JSON that was written with them",
        false => "; the data do not hold it",
    };
    Some(format!("{words}, and a difference may be of that{way_out}"))
}

/// The notes that what is named as the change is none.
fn unchanged(terms: &ComparisonTerms, a: &Side, b: &Side, runs: &[RunComparison]) -> Vec<String> {
    let differs = |surroundings: Surroundings| match surroundings {
        Surroundings::Loads => {
            names(a).into_iter().any(|name| other_arrangement([a, b], name).is_some())
        }
        Surroundings::Period => {
            names(a).into_iter().any(|name| other_period([(a, name), (b, name)]).is_some())
        }
        Surroundings::Others => {
            runs.iter().filter_map(|run| run.disturbance.as_ref()).any(|seen| seen.more.is_some())
        }
    };
    let is_unknown = |side: &Side| {
        let results = side.results.iter();
        results.flat_map(|result| result.runs.iter().map(move |run| (result, run))).any(
            |(result, run)| {
                runs.iter().any(|compared| compared.name == run.name)
                    && result.others(&run.name).is_none()
            },
        )
    };
    let are_others_unknown = is_unknown(a) || is_unknown(b);
    let same = terms.changed.iter().filter(|surroundings| !differs(**surroundings));
    let words = |surroundings: &Surroundings| match surroundings {
        Surroundings::Others if are_others_unknown => {
            "--changed others: what else ran is not recorded of all results, so that it is unknown \
             whether it differs"
        }
        Surroundings::Loads => "--changed loads: the loads of both sides ran alike",
        Surroundings::Period => "--changed period: the loops of both sides have the same period",
        Surroundings::Others => {
            "--changed others: others had as much of the CPU on both sides, to within 5 % of it"
        }
    };
    same.map(|surroundings| words(surroundings).to_owned()).collect()
}

/// The note that the sides did not take turns in time: a drift then looks like a difference.
fn in_turn(a: &Side, b: &Side) -> Option<String> {
    let started = |side: &Side, is_b: bool| -> Option<Vec<(jiff::Timestamp, bool)>> {
        let at = |result: &Recorded| result.started_at.as_ref()?.parse().ok();
        side.results.iter().map(|result| Some((at(result)?, is_b))).collect()
    };
    let (Some(mut starts), Some(others)) = (started(a, false), started(b, true)) else {
        return Some("it is unknown when they were measured, and whether in turn".to_owned());
    };
    starts.extend(others);
    starts.sort_unstable();
    let turns = starts.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    (turns < 2).then(|| {
        "one side was measured after the other: a drift in between looks like a difference; \
         measure in turn (A B A B) to avoid that"
            .to_owned()
    })
}

/// The named facts that are known to differ, whoever read them: a hypervisor that root alone can
/// name to the end is the same one.
fn changed_facts(names: &[&'static str], from: &MachineFacts, to: &MachineFacts) -> Vec<Changed> {
    let mut facts = changed(names, from, to);
    facts.retain(|fact| {
        fact.name != "virtualization" || !Virtualization::is_one_reading(&fact.from, &fact.to)
    });
    facts
}

/// The known differences between A and B, each once.
fn differences(a: &Recorded, b: &Recorded, matched: &[(usize, usize)]) -> Vec<Difference> {
    let mut found = Vec::new();
    if let (Some(a), Some(b)) = (&a.machine, &b.machine) {
        let names: Vec<&'static str> = MACHINE.iter().chain(SETUP).copied().collect();
        found.extend(changed_facts(&names, a, b).into_iter().map(|fact| Difference {
            what: fact.name.to_owned(),
            a: fact.from,
            b: fact.to,
        }));
    }
    if let (Some(a), Some(b)) = (&a.settings, &b.settings) {
        let is_another = found.iter().any(|fact| MACHINE.contains(&fact.what.as_str()));
        let known = |settings: &WatchedSettings| match is_another {
            true => settings.beside_facts().of_any_machine(),
            false => settings.beside_facts(),
        };
        let changed = known(a).changed(&known(b));
        let difference = |setting: ChangedSetting| Difference {
            what: setting.name,
            a: setting.from,
            b: setting.to,
        };
        found.extend(changed.into_iter().map(difference));
    }
    for &(run_a, run_b) in matched {
        found.extend(setups(&a.runs[run_a], &b.runs[run_b]));
    }
    if let (Some(a), Some(b)) = (&a.session, &b.session) {
        let yes = |value: bool| Some(if value { "yes" } else { "no" }.to_owned());
        found.extend(difference("memory locked", yes(a.memory_locked), yes(b.memory_locked)));
        let (a, b) = (a.idle_states_held, b.idle_states_held);
        found.extend(difference("idle states held off", yes(a), yes(b)));
    }
    if a.events_recorded == Some(true) || b.events_recorded == Some(true) {
        let words = |is: bool| if is { "recorded" } else { "not recorded" }.to_owned();
        let events = |result: &Recorded| result.events_recorded.map(words);
        found.extend(difference("events of the kernel", events(a), events(b)));
    }
    found.extend(difference("stamps", a.stamps.clone(), b.stamps.clone()));
    let version = |result: &Recorded| Some(result.version.clone()).filter(|text| !text.is_empty());
    found.extend(difference("version of punctual", version(a), version(b)));
    let mut once: Vec<Difference> = Vec::new();
    for difference in found {
        if !once.contains(&difference) {
            once.push(difference);
        }
    }
    once
}

/// The difference of the arrangement of loads.
const LOADS: &str = "loads";

/// The difference of the period.
const PERIOD: &str = "period";

/// The differences that make two runs of one name answers to different questions.
const OF_THE_QUESTION: [&str; 5] = [PERIOD, "clock of the grid", "wait", "load", "cold cycles"];

/// The differences of two runs' setups that leave nothing to compare.
fn question_differences(a: &RecordedRun, b: &RecordedRun) -> impl Iterator<Item = Difference> {
    let matters = |difference: &Difference| OF_THE_QUESTION.contains(&difference.what.as_str());
    setups(a, b).into_iter().filter(matters)
}

fn setups(a: &RecordedRun, b: &RecordedRun) -> Vec<Difference> {
    let time = |ns: Option<u64>| ns.map(format::period);
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let load = |run: &RecordedRun| {
        let mut loads = run.setup.load.clone();
        loads.sort();
        Some(if loads.is_empty() { "none".to_owned() } else { loads.join(", ") })
    };
    let cold = |run: &RecordedRun| {
        Some(if run.cold_left_out { "left out" } else { "taken in" }.to_owned())
    };
    let clock = |follows: Option<&String>| {
        Some(follows.map_or_else(|| "CLOCK_MONOTONIC".to_owned(), Clone::clone))
    };
    let (x, y) = (&a.setup, &b.setup);
    let priority = |priority: Option<u8>| priority.map(|priority| priority.to_string());
    [
        difference("run", Some(a.name.clone()), Some(b.name.clone())),
        difference("CPU", number(x.cpu), number(y.cpu)),
        difference(PERIOD, time(x.period_ns), time(y.period_ns)),
        difference("phase", time(x.phase_ns), time(y.phase_ns)),
        difference("clock of the grid", clock(x.follows.as_ref()), clock(y.follows.as_ref())),
        difference("policy", x.policy.clone(), y.policy.clone()),
        difference("priority", priority(x.priority), priority(y.priority)),
        difference("wait", x.wait.clone(), y.wait.clone()),
        difference("load", load(a), load(b)),
        arrangements(a, b),
        difference("cold cycles", cold(a), cold(b)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The difference of how the loads of two runs ran; `None` where both ran alike, as far as is
/// known.
fn arrangements(a: &RecordedRun, b: &RecordedRun) -> Option<Difference> {
    let (a, b) = a.arrangement().zip(b.arrangement())?;
    difference(LOADS, Some(a.to_owned()), Some(b.to_owned()))
}

/// A difference between two things of which at least one is known.
fn difference(name: &str, a: Option<String>, b: Option<String>) -> Option<Difference> {
    let text = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    (a != b).then(|| Difference { what: name.to_owned(), a: text(a), b: text(b) })
}

/// What measured, of samples without a result.
const SAMPLES_ALONE: &str = "samples";

/// A result, as far as a comparison needs it: bounded in size, however long it ran.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// Where it was read, or which baseline it is.
    from: String,
    /// The version that measured.
    version: String,
    /// The subcommand that measured.
    experiment: String,
    /// The start, in UTC (RFC 3339).
    started_at: Option<String>,
    /// True where it ended before its time.
    incomplete: bool,
    /// The machine, where the data say.
    machine: Option<MachineFacts>,
    /// The settings of the machine that measured, where the data say.
    #[serde(default)]
    settings: Option<WatchedSettings>,
    /// The rights that the kernel granted, where the data say.
    session: Option<Session>,
    /// The clock that stamps were taken with, where the data say.
    stamps: Option<String>,
    /// True where the kernel's events were recorded meanwhile, which makes releases later; `None`
    /// where the data do not say.
    #[serde(default)]
    events_recorded: Option<bool>,
    /// The question that it was measured for, the usual one included; `None` where the data do not
    /// say.
    #[serde(default)]
    question: Option<QuestionSpec>,
    /// The note that its counts are compared in place of the samples beside it; `None` where they
    /// are not, and where there are none.
    #[serde(skip)]
    unused_samples: Option<String>,
    /// Its runs, in their order.
    runs: Vec<RecordedRun>,
}

/// One run of a result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordedRun {
    /// Its name.
    name: String,
    /// Its setup.
    setup: Setup,
    /// True where cold cycles were left out.
    cold_left_out: bool,
    /// Cycles that ran and did not fit in the recorder: they are in no count.
    #[serde(default)]
    unrecorded: u64,
    /// Missed releases that `parts` leave out, where they were made of wakes alone; `None` where
    /// they are not recorded, and where nothing is left out.
    #[serde(skip)]
    left_out: Option<u64>,
    /// Lateness of all its releases, as results show it, where it is known.
    #[serde(default)]
    lateness_ns: Option<SummaryStats>,
    /// Lateness of its wakes alone, where it is known.
    #[serde(default)]
    wakes_ns: Option<SummaryStats>,
    /// Other threads on its CPU while that was to be idle, where they are known.
    #[serde(default)]
    others: Option<OtherThreads>,
    /// True where its loads took turns, false where they ran at once; `None` where its series show
    /// that, or it is not known.
    #[serde(default)]
    loads_took_turns: Option<bool>,
    /// The thresholds that were counted one by one, as its result has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    watched: Vec<WatchedThreshold>,
    /// The latenesses: one series for each load that counts in it.
    parts: Vec<LatenessSeries>,
}

impl RecordedRun {
    /// A run that is about to be measured: its name and setup, and no cycles.
    pub(crate) fn planned(name: String, setup: Setup, cold_left_out: bool) -> Self {
        Self {
            name,
            setup,
            cold_left_out,
            unrecorded: 0,
            left_out: None,
            lateness_ns: None,
            wakes_ns: None,
            others: None,
            loads_took_turns: None,
            watched: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// A run that was measured: `run`, as the report has it, and its first series.
    pub(crate) fn measured(run: &Run, cold_left_out: bool) -> Self {
        Self {
            lateness_ns: Some(run.outcome.lateness_ns.clone()),
            wakes_ns: Some(run.outcome.wakes.stats.clone()),
            others: run.others.clone(),
            watched: run.outcome.watched.clone(),
            ..Self::planned(run.name.clone(), run.setup.clone(), cold_left_out)
        }
    }

    /// Adds the series of a condition that counts in this run, and how many of its cycles did not
    /// fit in the recorder.
    pub(crate) fn add(&mut self, series: LatenessSeries, unrecorded: u64) {
        self.unrecorded = self.unrecorded.saturating_add(unrecorded);
        self.parts.push(series);
    }

    /// Adds loads that are to have a turn of their own in it.
    pub(crate) fn add_loads(&mut self, loads: Vec<String>) {
        self.setup.load.extend(loads);
        self.loads_took_turns = Some(true);
    }

    /// Its releases that were later than this, where they were counted one by one.
    fn exactly_later(&self, ns: i64) -> Option<u64> {
        // What was not recorded is in neither count, or late in one of them alone.
        let is_whole = self.unrecorded == 0;
        let releases = self.parts.iter().map(LatenessSeries::releases);
        let releases = releases.fold(0, u64::saturating_add);
        is_whole.then(|| WatchedThreshold::exactly_later(&self.watched, ns, releases))?
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its latenesses: one series for each load that counts in it.
    pub(crate) fn series(&self) -> &[LatenessSeries] {
        &self.parts
    }

    /// Returns true where this is its name. Results of before have hard spaces in names.
    fn is_named(&self, name: &str) -> bool {
        plain_spaces(&self.name) == plain_spaces(name)
    }

    /// How its loads ran, in words; `None` where that is not known, and where it has one or none.
    fn arrangement(&self) -> Option<&'static str> {
        if self.setup.load.len() < 2 {
            return None;
        }
        // Each turn that counts in it has a series.
        let by_series = match &self.parts[..] {
            // About to be measured: a load with a turn of its own was added.
            [] => Some(false),
            [series] => series.ordered.then_some(false),
            _ => Some(true),
        };
        let took_turns = self.loads_took_turns.or(by_series)?;
        Some(if took_turns { "one after the other" } else { "all at once" })
    }

    /// Returns true where another run holds the very same counts.
    fn is_copy_of(&self, other: &Self) -> bool {
        self.name == other.name && self.parts == other.parts
    }
}

impl Recorded {
    /// A result that was just measured, with the series of its runs that were recorded on the way.
    fn measured(report: &Report, runs: &[RecordedRun], from: &str) -> Self {
        Self { runs: runs.to_vec(), ..Self::head(report, from.to_owned()) }
    }

    /// Everything but the runs.
    fn head(report: &Report, from: String) -> Self {
        Self {
            from,
            version: report.envelope.version.clone(),
            experiment: report.envelope.experiment.clone(),
            started_at: report.envelope.started_at.clone(),
            incomplete: report.envelope.incomplete,
            machine: report.envelope.machine.clone(),
            settings: report.envelope.machine_settings.clone(),
            session: report.envelope.session.clone(),
            events_recorded: report
                .body
                .blame_recording()
                .map(BlameRecording::is_in_figures)
                .or_else(|| report.body.loops().map(|_| false)),
            stamps: report.envelope.clock.as_ref().map(|clock| clock.source.clone()),
            question: report
                .body
                .headline()
                .map(|headline| headline.question_spec.clone().unwrap_or_default()),
            unused_samples: None,
            runs: Vec::new(),
        }
    }

    /// Where it was read, or which baseline it is.
    pub(crate) fn from(&self) -> &str {
        &self.from
    }

    /// The file that its one run was imported from and is called after; `None` of what this program
    /// measured, and of several runs.
    fn imported_file(&self) -> Option<&str> {
        let [run] = &self.runs[..] else { return None };
        // A loop of this program has its policy; what was imported does not say it.
        let is_import = self.experiment == "analyse" && run.setup.policy.is_none();
        is_import.then_some(run.name.as_str())
    }

    /// Returns true where another result holds the very same recording, and that is not an empty
    /// one.
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        let has_releases = |run: &RecordedRun| run.parts.iter().any(|part| part.releases() > 0);
        self.started_at == other.started_at
            && self.runs.len() == other.runs.len()
            && self.runs.iter().any(has_releases)
            && self.runs.iter().zip(&other.runs).all(|(a, b)| a.is_copy_of(b))
    }

    /// The CPU of the runs of this name, and most of what others used of it while it was to be
    /// idle: also in other runs of this result, for under a load they cannot be told apart from it.
    fn others(&self, name: &str) -> Option<(u32, &OtherThreads)> {
        let cpu = self.runs.iter().find(|run| run.name == name)?.setup.cpu?;
        let same_cpu = self.runs.iter().filter(|run| run.setup.cpu == Some(cpu));
        let seen = same_cpu.filter_map(|run| run.others.as_ref());
        let most = seen.max_by(|a, b| a.share.total_cmp(&b.share));
        most.map(|others| (cpu, others))
    }

    /// Returns true where it has a run of this name and is of data that never hold what else ran.
    fn lacks_others(&self, name: &str) -> bool {
        let is_bare = matches!(&self.experiment[..], SAMPLES_ALONE | "analyse");
        is_bare && self.others(name).is_none() && self.runs.iter().any(|run| run.name == name)
    }

    /// What else ran on each of its CPUs that was to be idle, in words.
    fn disturbances(&self) -> Vec<String> {
        let seen = self.runs.iter().filter_map(|run| {
            let (cpu, others) = self.others(&run.name)?;
            others.used(cpu)
        });
        let mut words: Vec<String> = Vec::new();
        for used in seen {
            if !words.contains(&used) {
                words.push(used);
            }
        }
        words
    }

    /// The kernel's release, where the data say.
    fn kernel(&self) -> Option<String> {
        self.machine.as_ref().and_then(|facts| facts.kernel.kernel.value().cloned())
    }
}

/// Reads the result at `path`.
pub(crate) fn read(path: &Path) -> Result<Recorded> {
    let shown = path.display().to_string();
    let kind = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if kind.is_dir() {
        let samples = path.join(SAMPLES);
        if samples.is_file() && !path.join(RESULT).exists() {
            return of_samples(&samples, shown);
        }
    } else if !kind.is_file() {
        bail!("{shown}: expected a result, a sample file, or a directory that contains one");
    } else if stored::is_samples(path)? {
        return of_samples(path, shown);
    }
    let stored = stored::read(path)?;
    let mut unused_samples = None;
    if let Some(samples) = &stored.samples {
        let recorded = of_samples(samples, shown.clone())?;
        // Samples of another run may lie next to it.
        let is_of_it = recorded.started_at == stored.report.envelope.started_at;
        if is_of_it {
            let held = recorded.runs.iter().map(|run| {
                (run.name.as_str(), run.parts.iter().map(LatenessSeries::releases).sum())
            });
            let lacking = stored.lacking(recorded.incomplete, held);
            unused_samples = lacking.map(|why| stored.by_counts(&why));
        }
        if is_of_it && unused_samples.is_none() {
            let mut runs = recorded.runs;
            for run in &mut runs {
                run.others = stored.run(&run.name).and_then(|same| same.others.clone());
            }
            return Ok(Recorded { runs, ..Recorded::head(&stored.report, shown) });
        }
    }
    let runs = stored.report.body.runs();
    if runs.len() > RUNS_MAX {
        bail!("{shown}: {} runs: at most {RUNS_MAX} can be compared", runs.len());
    }
    Ok(Recorded { unused_samples, ..of_report(&stored.report, shown)? })
}

fn of_samples(path: &Path, from: String) -> Result<Recorded> {
    let shown = path.display().to_string();
    let mut file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    file.rewind().with_context(|| format!("cannot read {shown}"))?;
    let mut file = SampleFileReader::open(file).with_context(|| shown.clone())?;
    let info = file.info().clone();
    let question = match &info.question {
        None => Some(QuestionSpec::default()),
        Some(kept) => serde_json::from_value(kept.clone()).ok(),
    };
    let mut builders: Vec<Option<Builder>> = info.runs.iter().map(|_| None).collect();
    let joins: Vec<Option<&String>> = info.runs.iter().map(|run| run.part_of.as_ref()).collect();
    // Those that count as one are in the place of the first of them.
    let first = |run: usize| {
        let joined = joins[run].and_then(|_| joins.iter().position(|name| *name == joins[run]));
        joined.unwrap_or(run)
    };
    let mut recordings: Vec<Option<Recording>> = info.runs.iter().map(|_| None).collect();
    while let Some(block) = file.next_block() {
        let run = &info.runs[block.run];
        let new = || Builder::new(run.period_ns, true);
        let builder = builders[block.run].get_or_insert_with(new);
        block.samples.iter().for_each(|sample| builder.push(sample));
        let whole = &mut recordings[first(block.run)];
        whole.get_or_insert_with(|| recording(run, question.as_ref())).extend(block.samples);
    }
    if let Some(FileEnding::Damaged { at_byte, why }) = file.ending() {
        bail!("{shown}: damaged at byte {at_byte}: {why}");
    }
    let series: Vec<LatenessSeries> = builders
        .into_iter()
        .enumerate()
        .map(|(run, builder)| {
            let RunCounts { missed, unrecorded, .. } = file.counts(run).unwrap_or_default();
            builder.unwrap_or_else(|| Builder::new(0, true)).finish_with(missed, unrecorded)
        })
        .collect();
    let counts: Vec<RunCounts> =
        (0..info.runs.len()).map(|run| file.counts(run).unwrap_or_default()).collect();
    let machine = info.machine.clone().and_then(|facts| serde_json::from_value(facts).ok());
    Ok(Recorded {
        from,
        version: info.version.clone(),
        experiment: SAMPLES_ALONE.to_owned(),
        started_at: Some(info.started_at.clone()).filter(|at| !at.is_empty()),
        incomplete: file.ending() != Some(&FileEnding::Complete),
        machine,
        settings: None,
        session: None,
        events_recorded: None,
        question,
        unused_samples: None,
        stamps: info.runs.first().map(|run| run.clock.clone()).filter(|clock| !clock.is_empty()),
        runs: of_first_wait(grouped(&info, series, recordings, &counts)),
    })
}

/// The runs, those that count as one together.
fn grouped(
    info: &FileInfo,
    series: Vec<LatenessSeries>,
    recordings: Vec<Option<Recording>>,
    counts: &[RunCounts],
) -> Vec<RecordedRun> {
    let mut runs: Vec<RecordedRun> = Vec::new();
    let of_run = info.runs.iter().zip(series).zip(recordings).zip(counts);
    for (((run, series), recording), &RunCounts { unrecorded, .. }) in of_run {
        let name = name(run);
        let joins = |before: &&mut RecordedRun| run.part_of.is_some() && before.name == *name;
        if let Some(together) = runs.iter_mut().find(joins) {
            together.setup.load.extend(run.load.iter().cloned());
            together.setup.duration_ns =
                together.setup.duration_ns.map(|ns| ns.saturating_add(run.duration_ns));
            together.unrecorded = together.unrecorded.saturating_add(unrecorded);
            together.parts.push(series);
        } else {
            let is_one = |info: &RunInfo| match &run.part_of {
                Some(_) => info.part_of == run.part_of,
                None => std::ptr::eq(info, run),
            };
            let same = || info.runs.iter().zip(counts).filter(|(run, _)| is_one(run));
            let missed = same().map(|(_, counts)| counts.missed).fold(0, u64::saturating_add);
            let lost = same().map(|(_, counts)| counts.unrecorded).fold(0, u64::saturating_add);
            let figures = recording.map(|recording| recording.finish_with(missed, lost));
            let (stats, watched) = figures
                .map(|figures| ((figures.lateness_ns, figures.wakes.stats), figures.watched))
                .unzip();
            let stats = stats.unzip();
            runs.push(RecordedRun {
                name: name.clone(),
                setup: setup(run),
                cold_left_out: true,
                unrecorded,
                left_out: None,
                lateness_ns: stats.0,
                wakes_ns: stats.1,
                others: None,
                loads_took_turns: None,
                watched: watched.unwrap_or_default(),
                parts: vec![series],
            });
        }
    }
    runs
}

/// The runs that wait like the first one: what `check` shows beside them is not compared.
fn of_first_wait(mut runs: Vec<RecordedRun>) -> Vec<RecordedRun> {
    let first = runs.first().and_then(|run| run.setup.wait.clone());
    runs.retain(|run| run.setup.wait == first);
    runs
}

/// The name that a run counts under: its own, or that of the runs that it is one with.
fn name(run: &RunInfo) -> &String {
    run.part_of.as_ref().unwrap_or(&run.name)
}

/// The figures of a run as results show them, with the deadline of its question counted.
fn recording(run: &RunInfo, question: Option<&QuestionSpec>) -> Recording {
    let deadline = |spec| question::question(Some(spec)).requirement.deadline_ns(run.period_ns);
    Recording::new(RecordingConfig {
        period: Period::from_ns(run.period_ns),
        epoch: Instant::from_ns(run.epoch_ns),
        leave_out_cold: true,
        thresholds_ns: question.map(deadline).into_iter().collect(),
        releases: ReleaseInstants::Known,
    })
}

fn setup(run: &RunInfo) -> Setup {
    Setup {
        cpu: Some(run.cpu),
        period_ns: Some(run.period_ns),
        phase_ns: Some(run.phase_ns),
        follows: run.follows.clone(),
        policy: Some(run.policy.clone()).filter(|policy| !policy.is_empty()),
        priority: run.priority,
        wait: Some(run.wait.clone()).filter(|wait| !wait.is_empty()),
        load: run.load.clone(),
        duration_ns: Some(run.duration_ns),
    }
}

/// Counts without their order.
fn of_report(report: &Report, from: String) -> Result<Recorded> {
    let is_check = report.envelope.experiment == "check";
    // A row of loads that ran at once is called something else.
    let took_turns =
        |run: &Run| report.body.load_rows().iter().any(|row| run.setup.load.contains(&row.load));
    let run = |run: &Run| {
        let outcome = &run.outcome;
        let (shown, name) = (&from, &run.name);
        let mut series = LatenessSeries::of_figures(outcome);
        // Other programs and columns of lateness have their wakes alone, unless they say that
        // nothing was missed.
        series.of_wakes = match outcome.imported {
            Some(_) => outcome.missed != Some(0),
            None => outcome.wakes.left_out.is_none(),
        };
        series.missed = if series.of_wakes { 0 } else { outcome.missed.unwrap_or_default() };
        if !series.is_sound() {
            bail!("{shown}: result is corrupt: run \"{name}\" has a histogram that no run has");
        }
        Ok(RecordedRun {
            name: run.name.clone(),
            setup: run.setup.clone(),
            cold_left_out: true,
            unrecorded: run.outcome.unrecorded,
            left_out: None,
            lateness_ns: Some(outcome.lateness_ns.clone()),
            wakes_ns: Some(outcome.wakes.stats.clone()),
            others: run.others.clone(),
            loads_took_turns: is_check.then(|| took_turns(run)),
            watched: outcome.watched.clone(),
            parts: vec![series],
        })
    };
    let shows = |run: &&Run| run.outcome.lateness_ns.max.is_some();
    let all_runs = report.body.runs();
    if !all_runs.is_empty() && all_runs.iter().all(Run::is_empty) {
        bail!("{from}: nothing was measured in it, so that it cannot be compared");
    }
    if !all_runs.is_empty() && !all_runs.iter().any(|run| shows(&run)) {
        bail!(
            "{from}: it contains intervals but no lateness, and cannot be compared with lateness"
        );
    }
    let runs: Vec<RecordedRun> = all_runs.iter().filter(shows).map(run).collect::<Result<_>>()?;
    // The ways of `measure wait` are compared by name.
    let runs = if is_check { of_first_wait(runs) } else { runs };
    Ok(Recorded { runs, ..Recorded::head(report, from) })
}

#[cfg(test)]
mod tests {
    use punctual_analysis::compare::Verdict;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Span;
    use punctual_lab::periodic::RecordedWhere;
    use punctual_report::{Body, CheckBody, Envelope, LoopsBody, RecordedBody};

    use super::*;
    use crate::program::PROGRAM;

    fn recording(is_recorded: bool, place: RecordedWhere) -> BlameRecording {
        let (price, evidence) = (None, None);
        BlameRecording { is_recorded, why_not: None, is_asked: true, place, price, evidence }
    }

    /// A result of `check`, while which events were recorded or not.
    fn result(recorded: Option<(bool, RecordedWhere)>) -> Recorded {
        let blame = recorded.map(|(is_recorded, place)| recording(is_recorded, place));
        let loops = LoopsBody { blame, ..LoopsBody::default() };
        let body = CheckBody { loops, ..CheckBody::default() };
        Recorded::head(&Report::new(PROGRAM, "check", body), String::new())
    }

    #[test]
    fn settings_that_differ_are_named_once_and_beside_the_facts() {
        let with = |interval: &str, runtime_us: &str, governor: &str, cpus: &str| {
            let interrupt = serde_json::json!({"name": "eth0", "cpus": cpus});
            let settings = serde_json::json!({
                "values": {"vm.stat_interval": interval, "kernel.sched_rt_runtime_us": runtime_us},
                "per_cpu": {"scaling_governor": {"0": governor, "1": governor}},
                "interrupts": {"24": interrupt, "25": interrupt},
            });
            let settings = serde_json::from_value(settings).expect("settings");
            Recorded { settings: Some(settings), ..result(None) }
        };
        let a = with("1", "950000", "powersave", "0-1");
        let b = with("10", "-1", "performance", "0");
        let found = differences(&a, &b, &[]);
        let words: Vec<String> =
            found.iter().map(|found| format!("{}: {}, {}", found.what, found.a, found.b)).collect();
        assert_eq!(words, ["vm.stat_interval: 1, 10", "CPUs of interrupts 24-25: 0-1, 0"]);
        assert_eq!(differences(&a, &result(None), &[]), []);
    }

    /// A result of one run on CPU 1, of which others used so much.
    fn disturbed(share: Option<f64>) -> Recorded {
        let setup = Setup { cpu: Some(1), ..Setup::default() };
        let planned = RecordedRun::planned("idle".to_owned(), setup, true);
        let others = share.map(|share| OtherThreads { share, threads: Vec::new() });
        Recorded { runs: vec![RecordedRun { others, ..planned }], ..result(None) }
    }

    #[test]
    fn the_side_of_which_others_used_more_is_the_one_that_was_disturbed() {
        let more_used = |a: Option<f64>, b: Option<f64>| {
            let [a, b] =
                [a, b].map(|share| Side { label: String::new(), results: vec![disturbed(share)] });
            disturbance([(&a, "idle"), (&b, "idle")], false).map(|seen| seen.more)
        };
        // Of several results the one that is named was disturbed most.
        let results = [Some(0.01), Some(0.94), None].map(disturbed).to_vec();
        let several = Side { label: String::new(), results };
        let seen = disturbance([(&several, "idle"), (&several, "idle")], false);
        let words = seen.and_then(|seen| seen.a).unwrap_or_default().replace('\u{a0}', " ");
        let wanted = "others used at least 94 % of CPU 1 (, the most of its 3 results)";
        assert_eq!(words, wanted, "named after its file");
        assert_eq!(more_used(None, None), None);
        assert_eq!(more_used(Some(0.01), Some(0.04)), None, "idle");
        assert_eq!(more_used(None, Some(0.94)), Some(Some(DisturbedSide::B)));
        assert_eq!(more_used(Some(0.94), Some(0.02)), Some(Some(DisturbedSide::A)));
        assert_eq!(more_used(Some(0.94), Some(0.92)), Some(None), "alike");
        // What is kept of it is warned of.
        assert!(disturbed(Some(0.01)).disturbances().is_empty());
        let used = disturbed(Some(0.94)).disturbances().concat().replace('\u{a0}', " ");
        assert_eq!(used, "others used at least 94 % of CPU 1");
    }

    #[test]
    fn loads_one_after_the_other_are_not_judged_against_all_at_once() {
        let release = |builder: &mut Builder, cycle: u64, late: u64| {
            let ns = if cycle % 1_000 < late { 150_000 } else { 5_000 };
            let flags = if cycle == 0 { Flags::FIRST } else { Flags::NONE };
            builder.push(&Sample { cycle, lateness: Span::from_ns(ns), flags });
        };
        let result = |from: &str, turns: usize, late: u64| {
            let setup = Setup {
                period_ns: Some(1_000_000),
                load: ["cpu", "disk"].map(str::to_owned).to_vec(),
                ..Setup::default()
            };
            let mut run = RecordedRun::planned("under load".to_owned(), setup, true);
            for _ in 0..turns {
                let mut builder = Builder::new(1_000_000, true);
                (0..20_000).for_each(|cycle| release(&mut builder, cycle, late));
                run.add(builder.finish_with(0, 0), 0);
            }
            Recorded { from: from.to_owned(), runs: vec![run], ..result(None) }
        };
        let on_terms = |turns: [usize; 2], terms: &ComparisonTerms| {
            let sides = [("A", turns[0], 1), ("B", turns[1], 30)].map(|(label, turns, late)| {
                Side { label: label.to_owned(), results: vec![result(label, turns, late)] }
            });
            compare_sides(&sides, terms, false).expect("a comparison")
        };
        let compared = |turns| on_terms(turns, &ComparisonTerms::default());
        for alike in [[1, 1], [2, 2]] {
            let pair = &compared(alike).pairs[0];
            assert_eq!((pair.verdict, &pair.differences[..]), (Verdict::Worse, &[][..]));
        }
        let compared = compared([2, 1]);
        let (pair, (a, b)) = (&compared.pairs[0], ("one after the other", "all at once"));
        let loads = Difference { what: "loads".to_owned(), a: a.to_owned(), b: b.to_owned() };
        assert_eq!(pair.differences, [loads]);
        assert_eq!((pair.verdict, pair.runs[0].is_open()), (Verdict::Undecided, true));
        assert!(compared.worse_words().is_empty() && compared.open().count() == 1);
        let words = "undecided: measure both with the same --duration or --load, or name it as the \
                     change that you compare with --changed loads: the loads of A ran one after \
                     the other, those of B all at once";
        assert!(pair.runs[0].statement.starts_with(words), "{}", pair.runs[0].statement);
        // It is the change that is compared.
        let changed =
            ComparisonTerms { changed: vec![Surroundings::Loads], ..ComparisonTerms::default() };
        let compared = on_terms([2, 1], &changed);
        assert_eq!(compared.pairs[0].verdict, Verdict::Worse, "{:?}", compared.pairs[0]);
        assert_eq!(compared.changed, ["loads"]);
        let unchanged = "--changed loads: the loads of both sides ran alike".to_owned();
        assert!(!compared.pairs[0].notes.contains(&unchanged));
        assert!(on_terms([2, 2], &changed).pairs[0].notes.contains(&unchanged));
        // A plan tells the same before it runs.
        let mut planned = RecordedRun::planned(String::new(), Setup::default(), true);
        planned.add_loads(vec!["cpu".to_owned()]);
        planned.add_loads(vec!["disk".to_owned()]);
        assert_eq!(planned.arrangement(), Some("one after the other"));
        let setup = Setup { load: vec!["cpu".to_owned(), "disk".to_owned()], ..Setup::default() };
        let at_once = RecordedRun::planned(String::new(), setup, true);
        assert_eq!(at_once.arrangement(), Some("all at once"));
    }

    #[test]
    fn results_are_compared_at_the_deadline_of_the_question_that_all_keep() {
        let side = |question: Option<QuestionSpec>| Side {
            label: String::new(),
            results: vec![Recorded { question, ..result(None) }],
        };
        let ros = QuestionSpec { purpose: Some("ros".to_owned()), ..QuestionSpec::default() };
        let deadline_ns = |sides: [Option<QuestionSpec>; 2]| {
            let tested = ComparisonArgs::default().with_questions_of(&sides.map(side));
            (tested.deadline_ns(Some(2_000_000)), tested.note.unwrap_or_default())
        };
        let (ns, note) = deadline_ns([Some(ros.clone()), Some(ros.clone())]);
        assert!(ns == Some(100_000) && note.ends_with("with each: --for ros"), "{note}");
        let usual = Some(QuestionSpec::default());
        assert_eq!(deadline_ns([usual.clone(), usual.clone()]).0, Some(200_000));
        let (ns, note) = deadline_ns([Some(ros), usual]);
        assert!(ns.is_none() && note.contains("has --for ros, "), "{note}");
        assert!(note.contains("has a tenth of the period; --threshold"), "{note}");
        assert_eq!(deadline_ns([None, None]), (None, String::new()));
    }

    #[test]
    fn imports_of_one_run_have_one_name_and_measurements_keep_theirs() {
        let analysed = |name: &str, policy: Option<&str>| {
            let setup = Setup { policy: policy.map(str::to_owned), ..Setup::default() };
            let run = RecordedRun::planned(name.to_owned(), setup, true);
            Recorded { experiment: "analyse".to_owned(), runs: vec![run], ..result(None) }
        };
        let import = |name: &str| analysed(name, None);
        let joined = |results: Vec<Recorded>| {
            let side =
                |(at, result): (usize, Recorded)| Side { label: label(at), results: vec![result] };
            let mut sides: Vec<Side> = results.into_iter().enumerate().map(side).collect();
            let files = join_imports(&mut sides);
            (sides.iter().map(named).collect::<Vec<String>>(), files)
        };
        let (names, files) = joined(vec![import("a.csv"), import("b.csv")]);
        assert_eq!(names, ["'a.csv and b.csv'"; 2]);
        assert_eq!(files, None, "the name has both");
        let (names, files) = joined(vec![import("a.csv"), import("b.csv"), import("c.csv")]);
        assert_eq!(names, ["'a.csv'"; 3]);
        assert_eq!(files.expect("the others"), ["'a.csv'", "'b.csv'", "'c.csv'"]);
        assert_eq!(joined(vec![import("a.csv"), import("a.csv")]).0, ["'a.csv'"; 2]);
        // Samples of this program, analysed, and a result of two columns.
        let own = analysed("idle", Some("SCHED_FIFO"));
        assert_eq!(joined(vec![import("a.csv"), own]).0, ["'a.csv'", "'idle'"]);
        let runs = [import("b.csv").runs, import("c.csv").runs].concat();
        let two = Recorded { runs, ..import("b.csv") };
        assert_eq!(joined(vec![import("a.csv"), two]).0, ["'a.csv'", "'b.csv', 'c.csv'"]);
    }

    #[test]
    fn recording_events_is_a_difference() {
        let differ = |a: &Recorded, b: &Recorded| differences(a, b, &[]);
        let (none, refused) = (result(None), result(Some((false, RecordedWhere::Within))));
        let done = result(Some((true, RecordedWhere::Within)));
        let behind = result(Some((true, RecordedWhere::Behind)));
        let unknown = Recorded { events_recorded: None, ..none.clone() };
        let alike = [(&none, &refused), (&done, &done), (&none, &unknown), (&none, &behind)];
        for alike in alike {
            assert_eq!(differ(alike.0, alike.1), []);
        }
        let difference = |b: &str| Difference {
            what: "events of the kernel".to_owned(),
            a: "recorded".to_owned(),
            b: b.to_owned(),
        };
        assert_eq!(differ(&done, &none), [difference("not recorded")]);
        assert_eq!(differ(&done, &behind), [difference("not recorded")]);
        assert_eq!(differ(&done, &unknown), [difference("unknown")]);
        let analysed = |blame| {
            let body = Body::Recorded(RecordedBody { blame, ..RecordedBody::default() });
            let envelope = Envelope::of(PROGRAM, "analyse");
            Recorded::head(&Report { envelope, body }, String::new())
        };
        let kept = analysed(Some(recording(true, RecordedWhere::Within)));
        assert_eq!(differ(&kept, &none), [difference("not recorded")]);
        assert_eq!(differ(&done, &analysed(None)), [difference("unknown")]);
    }
}
