//! Recorded data as runs: the project's own sample files and results, those of other programs,
//! recognised by their content, and CSV.
//!
//! One pass in memory that does not grow with the file; instants need a second one to turn
//! deviations from the grid into lateness.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use punctual_analysis::claim::ask::{Ask, ClaimEvent};
use punctual_analysis::gridfit::Line;
use punctual_analysis::recording::{Recording, RecordingConfig, ReleaseInstants, RunFigures};
use punctual_analysis::summary::SummaryStats;
use punctual_analysis::verdict::periods_ns;
use punctual_core::file::FILE_MAGIC;
use punctual_core::time::{Instant, Period};
use punctual_import::csv::{ColumnKind, ColumnSpec, CsvFile};
use punctual_import::formats::{self, Format, HEAD_BYTES, ImportRequest, detect};
use punctual_import::samples::{FileEnding, RunInfo, SampleFileReader};
use punctual_report::{
    self as report, BlameRecording, Body, EndedBy, Envelope, Judged, Question, QuestionSpec,
    RecordedBody, Report, Run, Setup, Verdict,
};

use crate::args::ReportArgs;
use crate::experiment::loops::UNDER_LOAD;
use crate::program::PROGRAM;
use crate::question::{self, QuestionArgs};
use crate::stored::{RESULT, SAMPLES, Stored};
use crate::unpacked::unpacked;
use crate::{format, parse, stored};

/// Recorded data, and what is to be read in them.
pub(crate) struct RecordedRequest<'a> {
    /// The file, or a directory with one; `-` for standard input.
    pub(crate) file: &'a Path,
    /// The column of CSV; `None` for every other format.
    pub(crate) column: Option<&'a ColumnSpec>,
    /// The unit of a file that does not state it.
    pub(crate) unit: Option<parse::Unit>,
    /// The nominal period of CSV, and of another program's file that does not state it or states
    /// another.
    pub(crate) period: Option<parse::Duration>,
    /// The question whose deadline is counted one by one.
    pub(crate) question: Option<QuestionSpec>,
    /// True where `--for` asks for an answer, and none is no error.
    pub(crate) wants_answer: bool,
    /// The limits and claims that are counted one by one.
    pub(crate) report: &'a ReportArgs,
}

impl RecordedRequest<'_> {
    /// Reads all of it.
    ///
    /// # Errors
    /// It cannot be read, or is none of what can be.
    pub(crate) fn read(&self) -> Result<RecordedData> {
        let mut read = match self.column {
            Some(column) => of_csv(self, column),
            None => of_file(self),
        }?;
        if self.wants_answer {
            read.note_unanswered(self.question.as_ref());
        }
        Ok(read)
    }

    /// Refuses what a recording of this program, which is `shown`, states itself.
    ///
    /// # Errors
    /// It was given.
    pub(crate) fn refuse_foreign_options(&self, shown: &str) -> Result<()> {
        if self.period.is_some() {
            bail!(
                "{shown}: --period is for CSV and for files of other programs: a recording of \
                 punctual states its own period"
            );
        }
        if self.unit.is_some() {
            bail!(
                "{shown}: --unit is for files of other programs that do not state the unit of \
                 their values: a recording of punctual does; leave it out"
            );
        }
        Ok(())
    }
}

fn of_file(args: &RecordedRequest<'_>) -> Result<RecordedData> {
    // A directory that `check` wrote stands for the result in it, without one for its samples.
    let [samples, result] = [SAMPLES, RESULT].map(|name| args.file.join(name));
    if samples.is_file() && result.is_file() && args.period.is_none() && args.unit.is_none() {
        return match stored::read(&result).and_then(with_runs) {
            Ok(stored) => of_result(args, &stored),
            Err(why) => {
                let mut read = of_samples_file(args, &samples)?;
                read.envelope.warn(format!(
                    "what else the result beside these samples says is not shown: {why:#}"
                ));
                Ok(read)
            }
        };
    }
    let inside = [&samples, &result].into_iter().find(|path| path.is_file());
    if inside.is_none() && args.file.is_dir() {
        stored::refuse_several(args.file)?;
    }
    let path = inside.map_or(args.file, PathBuf::as_path);
    let shown = path.display();
    // A name that cannot be read is refused for that, whatever the other options.
    let mut reader = open(path)?;
    let head = head(&mut reader, HEAD_BYTES);
    let head = head.with_context(|| format!("cannot read {shown}"))?;
    if head.trim_ascii().is_empty() {
        bail!("{shown}: the file is empty");
    }
    if head.starts_with(&FILE_MAGIC) || is_own(&head) {
        args.refuse_foreign_options(&shown.to_string())?;
    }
    if head.starts_with(&FILE_MAGIC) {
        let reader = Cursor::new(head).chain(reader);
        return of_samples(args.report, args.question.clone(), reader)
            .with_context(|| shown.to_string());
    }
    if is_own(&head) {
        let stored = match path == Path::new("-") {
            true => stored::read_from(Cursor::new(head).chain(reader)),
            false => stored::read(path),
        };
        return of_result(args, &with_runs(stored?)?);
    }
    let Some(format) = detect(&head) else {
        if let Some((format, text)) = unpasted(&head) {
            let reader = Cursor::new(text.into_bytes());
            return of_foreign(args, format, reader).with_context(|| shown.to_string());
        }
        if is_summary(&head) {
            bail!(
                "{shown}: the line of 'cyclictest -q' has only min, average and max; run \
                 cyclictest with -h 500 --json=FILE and analyse that file"
            );
        }
        bail!(
            "{shown}: unrecognised file format; accepted are sample files of punctual and files \
             of {}; for CSV, name a column, e.g. --column lateness:us",
            formats::programs()
        );
    };
    let reader = Cursor::new(head).chain(reader);
    of_foreign(args, format, reader).with_context(|| shown.to_string())
}

/// The format of another program's file; `None` for any other.
pub(crate) fn format_of(path: &Path) -> Result<Option<&'static Format>> {
    if path.is_dir() {
        return Ok(None);
    }
    let mut reader = open(path)?;
    let head = head(&mut reader, HEAD_BYTES);
    let head = head.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(detect(&head).filter(|_| !is_own(&head)))
}

/// Returns true where a file is a result of this program: JSON with versions and threads too.
fn is_own(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(b"{") && head.windows(10).any(|at| at == b"\"punctual\"")
}

/// Recorded data, not judged yet.
pub(crate) struct RecordedData {
    /// The part that every result has.
    envelope: Envelope,
    /// The runs that were read.
    runs: Vec<Run>,
    /// The recording of the kernel's events beside them, where one was to be made.
    blame_recording: Option<BlameRecording>,
    /// The question that they were recorded for, where that is known.
    question: Option<QuestionSpec>,
    /// The warnings without which the figures mislead, which are among those of `envelope`.
    caveats: Vec<String>,
}

impl RecordedData {
    /// Nothing is read yet.
    fn new() -> Self {
        Self {
            envelope: Envelope::of(PROGRAM, "analyse"),
            runs: Vec::new(),
            blame_recording: None,
            question: None,
            caveats: Vec::new(),
        }
    }

    /// Adds a warning without which the figures mislead.
    fn add_caveat(&mut self, caveat: String) {
        self.envelope.warn(caveat.clone());
        self.caveats.push(caveat);
    }

    /// The warnings without which the figures mislead, for where a page has no room for any.
    pub(crate) fn caveats(&self) -> &[String] {
        &self.caveats
    }

    /// Adds a warning where the data have no answer to this question.
    fn note_unanswered(&mut self, question: Option<&QuestionSpec>) {
        let is_any = |is_so: fn(&Run) -> bool| self.runs.iter().any(is_so);
        let has_deadline = question.is_some_and(|spec| spec.deadline_ns.is_some());
        let why = if !is_any(|run| run.outcome.lateness.count() > 0) {
            NO_LATENESS
        } else if !has_deadline && !is_any(|run| run.setup.period_ns.is_some()) {
            NO_PERIOD
        } else {
            return;
        };
        self.add_caveat(format!("--for has no answer here: {why}"));
    }

    /// Takes from the result of the same measurement what samples do not have: who else ran, what
    /// the loads did, what made wakes late.
    fn take_reasons(&mut self, stored: &Stored) {
        for run in &mut self.runs {
            if let Some(known) = stored.run(&run.name) {
                let Run { name, condition, setup, mut outcome, .. } =
                    std::mem::replace(run, known.clone());
                for worst in &mut outcome.worst {
                    let cause = known.cause_of(worst.cycle, worst.lateness_ns as i64);
                    worst.cause = cause.map(str::to_owned);
                }
                (run.name, run.condition, run.setup, run.outcome) =
                    (name, condition, setup, outcome);
            }
        }
        let Envelope { disturbances, incomplete, ended_by, .. } = &stored.report.envelope;
        self.envelope.disturbances.clone_from(disturbances);
        // The samples know that they ended early, and not why.
        if *incomplete {
            self.envelope.incomplete = true;
            self.envelope.ended_by = ended_by.or(self.envelope.ended_by);
        }
        self.blame_recording = stored.report.body.blame_recording().cloned();
        self.question = self.question.take().or_else(|| question_of(&stored.report));
    }

    /// The report, judged by the question of the options, else by the one that was kept.
    ///
    /// # Errors
    /// The question is about other data, or is to decide and has no answer.
    pub(crate) fn judged(self, args: &ReportArgs, wanted: &QuestionArgs) -> Result<Report> {
        let Self { mut envelope, runs, blame_recording, question, .. } = self;
        wanted.suits(&runs).map_err(|why| anyhow!(why))?;
        let spec = wanted.spec().or(question);
        let judged = report::of_first_wait(&runs);
        let undecided = args.undecided.counts_as();
        envelope.verdict = report::judge(judged, &args.limits, envelope.incomplete, undecided);
        let claims = (&args.claims[..], args.strict);
        envelope.verdict.judge_claims(judged, claims, envelope.incomplete);
        envelope.verdict.judge_measured(judged);
        let question =
            Question { incomplete: envelope.incomplete, ..question::question(spec.as_ref()) };
        let judged = report::judged(runs, &[], &envelope, &question);
        if wanted.is_gate() {
            let has_periods = judged.runs.iter().any(|run| run.setup.period_ns.is_some());
            // Intervals alone have no lateness, which a deadline could be about.
            let has_lateness = judged.runs.iter().any(|run| run.outcome.lateness.count() > 0);
            let is_answer = |verdict: &Verdict| {
                verdict.is_measured() && (verdict.stands.is_some() || !has_lateness)
            };
            let is_answered = judged.verdicts.iter().any(is_answer);
            if !is_answered && !has_lateness {
                bail!("--gate: {NO_LATENESS}: --limit and --claim hold what they have to figures");
            }
            if !is_answered && !has_periods {
                bail!(
                    "--gate: these data do not state their period, without which no deadline is \
                     known: --deadline TIME gives one, and --period TIME the period of one loop"
                );
            }
            envelope.verdict.judge_answers(&judged.verdicts);
        }
        let body = RecordedBody { judged, blame: blame_recording, compare: None };
        Ok(Report { envelope, body: Body::Recorded(body) })
    }

    /// The report without verdicts.
    pub(crate) fn into_report(self) -> Report {
        let judged = Judged { runs: self.runs, ..Judged::default() };
        Report { envelope: self.envelope, body: judged.into() }
    }
}

/// The result of a sample file, judged by the question that was kept with it.
///
/// # Errors
/// It cannot be read.
pub(crate) fn of_sample_file(path: &Path) -> Result<Report> {
    let args = ReportArgs::default();
    let read = of_samples(&args, None, BufReader::new(stored::regular(path)?))
        .with_context(|| path.display().to_string())?;
    read.judged(&args, &QuestionArgs::default())
}

/// A file, or standard input for `-`, unpacked.
fn open(path: &Path) -> Result<Box<dyn Read>> {
    let reader = BufReader::with_capacity(1 << 16, raw(path)?);
    unpacked(reader).with_context(|| format!("cannot read {}", path.display()))
}

/// The file behind a name. A directory opens, and does not read; a pipe might never end.
fn raw(path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let shown = path.display();
    let kind = path.metadata().with_context(|| format!("cannot read {shown}"))?.file_type();
    if kind.is_dir() {
        bail!("cannot read {shown}: it is a directory");
    }
    if kind.is_fifo() || kind.is_socket() {
        bail!("cannot read {shown}: it is a pipe; use '-' to read from a pipe");
    }
    Ok(Box::new(File::open(path).with_context(|| format!("cannot read {shown}"))?))
}

/// Fills `head` as far as there are bytes.
fn head(reader: &mut impl Read, bytes: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.by_ref().take(bytes as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// The file that a whole text was copied from, and its format; `None` for text that is no such
/// thing, or too long to have been copied.
fn unpasted(head: &[u8]) -> Option<(&'static Format, String)> {
    if head.len() >= HEAD_BYTES {
        return None;
    }
    let text = plain(&String::from_utf8_lossy(head));
    detect(text.as_bytes()).map(|format| (format, text))
}

/// Returns true where it is the output of `cyclictest -q` without a histogram.
fn is_summary(head: &[u8]) -> bool {
    let text = plain(&String::from_utf8_lossy(head));
    text.lines().any(|line| {
        line.starts_with("T:") && ["Min:", "Avg:", "Max:"].iter().all(|word| line.contains(word))
    })
}

/// Each line without the marks of a quotation before it, and without what all lines are indented
/// by; without lines of a prompt.
fn plain(text: &str) -> String {
    let unquoted: Vec<&str> = text.lines().map(unquoted).filter(|line| !is_prompt(line)).collect();
    let indent = |line: &&str| line.len() - line.trim_start_matches(' ').len();
    let filled = unquoted.iter().filter(|line| !line.trim().is_empty());
    let least = filled.map(indent).min().unwrap_or(0);
    unquoted.iter().map(|line| line.get(least..).unwrap_or_default().to_owned() + "\n").collect()
}

fn unquoted(line: &str) -> &str {
    let mut line = line;
    while let Some(rest) = line.trim_start_matches(' ').strip_prefix('>') {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    line
}

/// A command behind the prompt of a shell: `$ cyclictest …`, `user@host:~# cyclictest …`.
fn is_prompt(line: &str) -> bool {
    let line = line.trim_start();
    let behind = line.split_once("$ ").or_else(|| line.split_once("# "));
    behind.is_some_and(|(before, _)| {
        (before.is_empty() && line.starts_with('$')) || before.contains('@')
    })
}

/// A result with runs of loops.
///
/// # Errors
/// It has none.
fn with_runs(stored: Stored) -> Result<Stored> {
    if stored.report.body.runs().is_empty() {
        bail!(
            "{}: a result of '{}', which has no runs of loops to be judged; 'punctual report' \
             shows it",
            stored.path.display(),
            stored.report.envelope.experiment
        );
    }
    Ok(stored)
}

/// A result: by the samples beside it where they have all of its releases, else by its counts.
fn of_result(args: &RecordedRequest<'_>, stored: &Stored) -> Result<RecordedData> {
    let (report, shown) = (&stored.report, stored.path.display());
    let mut unused_samples = None;
    if let Some(samples) = &stored.samples {
        match of_samples_beside(args, stored, samples) {
            Ok(read) => return Ok(read),
            Err(why) => unused_samples = Some(stored.by_counts(&format!("{why:#}"))),
        }
    }
    let spec = question_of(report);
    let mut read = RecordedData::new();
    read.blame_recording = report.body.blame_recording().cloned();
    let Envelope { started_at, machine, incomplete, ended_by, .. } = report.envelope.clone();
    read.envelope = Envelope { started_at, machine, incomplete, ended_by, ..read.envelope };
    unused_samples.into_iter().for_each(|why| read.add_caveat(why));
    read.envelope.warn(
        "read back from the histograms of a result, without the order of cycles: limits are held \
         against its figures, and are open where a quantile lies within a bucket; answers and \
         claims count between what its buckets allow, and clusters of late releases would not show"
            .to_owned(),
    );
    let question = args.question.clone().or(spec.clone());
    for run in report.body.runs() {
        let periods = periods_ns().map(i64::unsigned_abs).chain(run.setup.period_ns);
        let thresholds = thresholds(args.report, question.as_ref(), periods);
        let outcome = run.outcome.clone().read_back(&thresholds);
        let outcome = outcome.map_err(|why| anyhow!("{shown}: run {:?}: {why}", run.name))?;
        read.runs.push(Run { outcome, ..run.clone() });
    }
    read.question = spec;
    Ok(read)
}

/// The samples beside a result.
///
/// # Errors
/// They cannot be read, are of another measurement, or lack releases that the result counts.
fn of_samples_beside(
    args: &RecordedRequest<'_>,
    stored: &Stored,
    samples: &Path,
) -> Result<RecordedData> {
    let mut read = of_samples_file(args, samples)?;
    let started_at = read.envelope.started_at.as_deref().unwrap_or_default();
    if !stored::is_of(&stored.report, started_at) {
        bail!("{} has the samples of another measurement", samples.display());
    }
    let held = read.runs.iter().map(|run| (run.name.as_str(), stored::releases_in_samples(run)));
    if let Some(why) = stored.lacking(read.envelope.incomplete, held) {
        bail!(why);
    }
    read.take_reasons(stored);
    Ok(read)
}

fn of_samples_file(args: &RecordedRequest<'_>, path: &Path) -> Result<RecordedData> {
    of_samples(args.report, args.question.clone(), BufReader::new(stored::regular(path)?))
        .with_context(|| path.display().to_string())
}

/// The question that a result was measured for, where it keeps one.
fn question_of(report: &Report) -> Option<QuestionSpec> {
    report.body.headline().and_then(|headline| headline.question_spec.clone())
}

/// The latenesses beyond which cycles are counted one by one: those of limits and claims, and the
/// deadline in question of loops of these periods.
fn thresholds(
    args: &ReportArgs,
    question: Option<&QuestionSpec>,
    periods_ns: impl IntoIterator<Item = u64>,
) -> Vec<i64> {
    let requirement = question::question(question).requirement;
    let deadlines = periods_ns.into_iter().map(|ns| requirement.deadline_ns(ns));
    let given = question.and_then(|question| question.deadline_ns);
    let thresholds = report::thresholds(&args.limits, &args.claims).into_iter();
    thresholds.chain(deadlines).chain(given).collect()
}

/// What data without a period are warned of.
const NO_PERIOD: &str = "these data do not state their period: --period TIME judges a loop of that \
                         period, --deadline TIME the wakes as such";

/// Why data of stalls and intervals answer no question.
const NO_LATENESS: &str = "these data hold no lateness, which a deadline could be about";

/// A drift beyond this (1000 ppm) is a wrong period or a wrong fit rather than a clock: quartz is
/// within 100 ppm, and what disciplines a clock moves it by 500 ppm at most (adjtimex).
const DRIFT_MAX_PPB: f64 = 1e6;

/// A line that is wrong by more than this share of the period changes answers: the usual deadline
/// is ten times that.
const BEND_MAX_SHARE: f64 = 0.01;

/// Half of all wakes later than this share of the period after the earliest one, the usual
/// deadline, are not what a loop does.
const MEDIAN_MAX_SHARE: f64 = 0.1;

/// Why lateness about a fitted line is doubtful, and what may be wrong.
fn caveats_of_line(line: &Line, period: Period, lateness: &SummaryStats) -> Vec<String> {
    let period_ns = period.as_ns() as f64;
    let mut caveats = Vec::new();
    let drift_ppb = line.drift_ppb(period);
    if drift_ppb.abs() > DRIFT_MAX_PPB {
        caveats.push(format!(
            "the fitted period is {}, but --period is {}: unless the clock was off by that much, \
             the counts of cycles and of missed releases are wrong",
            format::ns(Some(period_ns * (1.0 + drift_ppb / 1e9))),
            format::period(period.as_ns())
        ));
    }
    let bend_ns = line.bend_ns() as f64;
    if bend_ns > BEND_MAX_SHARE * period_ns && lateness.p50.is_some() {
        caveats.push(format!(
            "the earliest wakes lie on no straight line: those of one third of the recording are \
             {} above those of another; the clocks drifted apart unevenly, or wakes were late all \
             that time, or releases were counted wrong, and lateness is doubtful by that much",
            format::ns(Some(bend_ns))
        ));
    }
    if let Some(median_ns) = lateness.p50.filter(|&ns| ns > MEDIAN_MAX_SHARE * period_ns) {
        caveats.push(format!(
            "half of all wakes are later than {} after the earliest one, from which lateness is \
             measured: if that one was early, as a first instant before the loop began is, all \
             others are less late than shown",
            format::ns(Some(median_ns))
        ));
    }
    caveats
}

/// Reads a whole file.
fn of_csv(args: &RecordedRequest<'_>, column: &ColumnSpec) -> Result<RecordedData> {
    let mut read = RecordedData::new();
    let period = args.period.map(|period| period.period()).transpose()?;
    let kind = column.kind(period.is_some());
    let first = match kind {
        ColumnKind::Lateness => ReleaseInstants::Known,
        ColumnKind::Instant => ReleaseInstants::Unknown,
    };
    let mut outcome = pass(args, column, period, first)?;
    if outcome.cycles == 0 {
        bail!("{}: no data: the file is empty, or has a header alone", args.file.display());
    }
    if let (Some(line), Some(period)) = (outcome.line, period)
        && kind == ColumnKind::Instant
        && line.is_still(period)
    {
        bail!(
            "{}: the instants do not advance: the period fitted to {} of them is 0 ns, and \
             --period is {}; expected is the instant of each wake, about a period after the one \
             before: name the column that has them, and its unit, e.g. --column NAME:us",
            args.file.display(),
            format::count(outcome.cycles),
            format::period(period.as_ns())
        );
    }
    if let (ColumnKind::Instant, Some(line)) = (kind, outcome.line) {
        if args.file == Path::new("-") {
            read.envelope.warn(
                "standard input can be read only once: the report has grid and interval, but no \
                 lateness"
                    .to_owned(),
            );
        } else {
            outcome = pass(args, column, period, ReleaseInstants::Fitted(line))?;
            read.envelope.warn(
                "instants alone do not contain the releases: lateness is measured from the \
                 earliest wake relative to a grid that late wakes do not tilt; how late that wake \
                 was is unknown, and all others were later than shown by as much"
                    .to_owned(),
            );
        }
    }
    if let (ColumnKind::Instant, Some(line), Some(period)) = (kind, outcome.line, period) {
        let caveats = caveats_of_line(&line, period, &outcome.lateness_ns);
        caveats.into_iter().for_each(|caveat| read.add_caveat(caveat));
    }
    let has_deadline = args.question.as_ref().is_some_and(|spec| spec.deadline_ns.is_some());
    // That `--for` has no answer without one is another warning.
    if period.is_none() && !has_deadline && !args.wants_answer {
        read.envelope.warn(NO_PERIOD.to_owned());
    }
    let setup = Setup { period_ns: period.map(Period::as_ns), ..Setup::default() };
    read.runs.push(Run::recorded(args.file.display().to_string(), setup, outcome));
    Ok(read)
}

fn pass(
    args: &RecordedRequest<'_>,
    column: &ColumnSpec,
    period: Option<Period>,
    releases: ReleaseInstants,
) -> Result<RunFigures> {
    let shown = || args.file.display().to_string();
    let reader = open(args.file)?;
    let mut file = CsvFile::open(reader, column.clone(), period).with_context(shown)?;
    let mut recording = Recording::new(RecordingConfig {
        period,
        epoch: Instant::from_ns(0),
        leave_out_cold: !args.report.keep_cold,
        thresholds_ns: thresholds(args.report, args.question.as_ref(), period.map(Period::as_ns)),
        releases,
    })
    .watching(&watched(args, releases));
    loop {
        let block = file.next_block().with_context(shown)?;
        if block.is_empty() {
            break;
        }
        recording.extend(block);
    }
    recording.set_epoch(file.epoch().unwrap_or_default());
    let mut outcome = recording.finish(0);
    if file.kind() == ColumnKind::Lateness {
        // A column of lateness does not say which releases it leaves out.
        (outcome.missed, outcome.wakes.left_out) = (None, None);
    }
    Ok(outcome)
}

/// The claims that such data can show: latenesses alone do not show what was missed between
/// two of them.
fn watched(args: &RecordedRequest<'_>, releases: ReleaseInstants) -> Vec<Ask> {
    let shown =
        |ask: &&Ask| releases != ReleaseInstants::Known || ask.event() != ClaimEvent::Missed;
    args.report.claims.iter().filter(shown).copied().collect()
}

/// Reads a whole file of `format`.
fn of_foreign(
    args: &RecordedRequest<'_>,
    format: &Format,
    reader: impl Read,
) -> Result<RecordedData> {
    let of_intervals = args.report.claims.iter().filter_map(|ask| ask.interval_ns());
    let given_ns = args.period.map(|period| period.period()).transpose()?.map(Period::as_ns);
    let request = ImportRequest {
        thresholds_ns: thresholds(
            args.report,
            args.question.as_ref(),
            periods_ns().map(i64::unsigned_abs).chain(given_ns),
        )
        .into_iter()
        .chain(of_intervals)
        .collect(),
        unit_ns: args.unit.map(|unit| unit.ns()),
    };
    let import = formats::read(format, reader, &request)?;
    if args.unit.is_some() && !import.takes_unit {
        let first = import.runs.first().and_then(|run| run.outcome.imported.as_ref());
        let program = first.map_or(format.name, |imported| &imported.program);
        bail!(
            "--unit is for files that do not state the unit of their values: this one, of \
             {program}, does; leave it out"
        );
    }
    let mut read = RecordedData::new();
    read.envelope.started_at = import.started_at;
    read.envelope.warn_of(import.warnings);
    if import.ended_early {
        read.envelope.end_early(EndedBy::Recording);
    }
    for run in import.runs {
        if let (Some(given_ns), Some(stated_ns)) = (given_ns, run.period_ns)
            && given_ns != stated_ns
        {
            read.add_caveat(format!(
                "{}: judged by the {} of --period, though the file states {}",
                run.name,
                format::period(given_ns),
                format::period(stated_ns)
            ));
        }
        let setup = Setup {
            cpu: run.cpu,
            period_ns: given_ns.or(run.period_ns),
            policy: run.policy,
            priority: run.priority,
            ..Setup::default()
        };
        read.runs.push(Run::recorded(run.name, setup, run.outcome));
    }
    Ok(read)
}

/// A run of the report: the runs of the file that count as one.
struct Part {
    name: String,
    infos: Vec<usize>,
    recording: Recording,
}

/// Reads a whole file.
pub(crate) fn of_samples(
    args: &ReportArgs,
    question: Option<QuestionSpec>,
    reader: impl Read,
) -> Result<RecordedData> {
    let mut file = SampleFileReader::open(reader)?;
    let info = file.info().clone();
    let kept: Option<QuestionSpec> =
        info.question.and_then(|question| serde_json::from_value(question).ok());
    let (mut parts, of_run) = parts(&info.runs, args, question.or(kept.clone()).as_ref());
    while let Some(block) = file.next_block() {
        parts[of_run[block.run]].recording.extend(block.samples);
    }
    let mut read = RecordedData::new();
    read.envelope.started_at = Some(info.started_at.clone()).filter(|at| !at.is_empty());
    read.envelope.machine = info.machine.and_then(|facts| serde_json::from_value(facts).ok());
    read.question = kept;
    let ended = stored::ended(file.ending(), "its data up to there was read");
    read.envelope.incomplete = ended.is_some();
    read.envelope.ended_by = ended.as_ref().map(|_| match file.ending() {
        Some(FileEnding::Early) => EndedBy::Recording,
        _ => EndedBy::File,
    });
    read.envelope.warn_of(ended);
    for part in parts {
        let infos: Vec<&RunInfo> = part.infos.iter().map(|&run| &info.runs[run]).collect();
        let (mut missed, mut unrecorded) = (0, 0);
        for &run in &part.infos {
            let counts = file.counts(run).unwrap_or_default();
            missed += counts.missed;
            unrecorded += counts.unrecorded;
        }
        let outcome = part.recording.finish_with(missed, unrecorded);
        if outcome.cycles == 0 {
            read.envelope.warn(format!("run \"{}\" has no samples", part.name));
        }
        read.runs.push(recorded_run(part.name, &infos, outcome));
    }
    Ok(read)
}

/// The runs of the report, and to which of them each run of the file belongs.
fn parts(
    runs: &[RunInfo],
    args: &ReportArgs,
    question: Option<&QuestionSpec>,
) -> (Vec<Part>, Vec<usize>) {
    let mut parts: Vec<Part> = Vec::new();
    let mut of_run = Vec::new();
    for (number, info) in runs.iter().enumerate() {
        let name = info.part_of.as_ref().unwrap_or(&info.name);
        let joins = |part: &Part| {
            let first = &runs[part.infos[0]];
            info.part_of.is_some()
                && (&first.part_of, first.epoch_ns, first.period_ns, first.cpu)
                    == (&info.part_of, info.epoch_ns, info.period_ns, info.cpu)
        };
        let at = parts.iter().position(joins).unwrap_or_else(|| {
            let recording = Recording::new(RecordingConfig {
                period: Period::from_ns(info.period_ns),
                epoch: Instant::from_ns(info.epoch_ns),
                leave_out_cold: !args.keep_cold,
                thresholds_ns: thresholds(args, question, [info.period_ns]),
                releases: ReleaseInstants::Known,
            })
            .watching(&args.claims);
            parts.push(Part { name: name.clone(), infos: Vec::new(), recording });
            parts.len() - 1
        });
        parts[at].infos.push(number);
        of_run.push(at);
    }
    (parts, of_run)
}

fn recorded_run(name: String, infos: &[&RunInfo], outcome: RunFigures) -> Run {
    let first = infos[0];
    let setup = Setup {
        cpu: Some(first.cpu),
        period_ns: Some(first.period_ns),
        phase_ns: Some(first.phase_ns),
        follows: first.follows.clone(),
        policy: Some(first.policy.clone()),
        priority: first.priority,
        wait: Some(first.wait.clone()),
        load: infos.iter().flat_map(|info| info.load.iter().cloned()).collect(),
        duration_ns: Some(infos.iter().map(|info| info.duration_ns).sum()),
    };
    let condition = if first.part_of.is_some() { UNDER_LOAD } else { first.condition() };
    Run { floor_ns: first.floor_ns, ..Run::recorded(name, setup, outcome).under(condition) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTOGRAM: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000001 000005\n\
                             000002 000007\n# Total: 000000012\n";

    #[test]
    fn what_was_pasted_is_the_file_that_it_came_from() {
        let before = |mark: &str| {
            let lines = HISTOGRAM.lines().map(|line| format!("{mark}{line}\n"));
            lines.collect::<String>()
        };
        for mark in ["", "    ", "> ", ">> ", "> > ", "  > "] {
            let text = format!("{mark}user@host:~$ cyclictest -h 500 -q\n{}", before(mark));
            let (format, text) = unpasted(text.as_bytes()).expect("recognised");
            assert_eq!(
                (format.name, text.as_str()),
                ("cyclictest_histogram", HISTOGRAM),
                "{mark:?}"
            );
        }
        assert!(unpasted(b"hello\n").is_none());
    }

    #[test]
    fn a_summary_is_known_for_one() {
        let line =
            "T: 0 ( 1234) P:80 I:1000 C:  10000 Min:      3 Act:    5 Avg:    6 Max:      40";
        assert!(is_summary(line.as_bytes()) && is_summary(format!("> {line}\n").as_bytes()));
        assert!(!is_summary(HISTOGRAM.as_bytes()));
    }
}
