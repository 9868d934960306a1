//! `punctual export RESULT`: samples and histograms in the formats of others.
//!
//! One pass over the samples, in memory that does not grow with them. What is cut off or damaged is
//! said on standard error; the file has its name once it is whole.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Error, Result, anyhow, bail};
use punctual_analysis::plain::shell_word;
use punctual_analysis::summary::SummaryStats;
use punctual_export::distribution::LatenessHistogram;
use punctual_export::hdr::{self, IntervalHistogram};
use punctual_export::name::{Distinct, plain};
use punctual_export::openmetrics::{Labels, MetricFamily, Points};
use punctual_export::row::{ExportedRun, ReleaseRows};
use punctual_export::{csv, openmetrics, parquet};
use punctual_import::samples::{FileEnding, FileInfo, RunInfo, SampleFileReader};
use punctual_report::{Answer, CaseFinding, CaseKind, Report, Run, SCHEMA, Warning, cases};

use crate::args::ReportArgs;
use crate::output::{self, Opened};
use crate::stored::{self, RESULT, SAMPLES, Stored, regular};
use crate::subcommand::{Execute, Exit};
use crate::{format, recorded};

/// `punctual export`.
#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// A result: a directory of 'punctual check', a result.json, or a sample file
    result: PathBuf,
    #[command(flatten)]
    format: FormatArgs,
    /// With --csv or --parquet: write the histogram of each run instead of every sample
    #[arg(long, conflicts_with_all = ["hdr", "openmetrics"])]
    histogram: bool,
    /// Write to FILE, which is replaced once everything is written; '-' is standard output
    #[arg(short, long, value_name = "FILE|-", default_value = "-")]
    output: PathBuf,
    /// Include the cold cycles in histograms made from samples, as 'punctual analyse --keep-cold'
    /// does; for --hdr and --histogram, and for --openmetrics of a sample file
    #[arg(long)]
    keep_cold: bool,
}

/// The format of `punctual export`.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct FormatArgs {
    /// A table with a header line, for pandas and spreadsheets: one row per cycle
    #[arg(long)]
    csv: bool,
    /// The same table as Parquet, for DuckDB and pandas
    #[arg(long)]
    parquet: bool,
    /// An HdrHistogram log (V2, compressed): one tagged histogram of lateness per run
    #[arg(long)]
    hdr: bool,
    /// OpenMetrics text for Prometheus, for instance for node_exporter's textfile collector:
    /// lateness in seconds
    #[arg(long)]
    openmetrics: bool,
}

impl Execute for ExportArgs {
    fn execute(&self) -> Result<Exit> {
        let to_terminal = self.output == Path::new("-") && io::stdout().is_terminal();
        if self.format.parquet && to_terminal {
            bail!("cannot write Parquet to a terminal: name a file with -o FILE");
        }
        let source = Source::open(&self.result)?;
        output::spare("--output", Some(&self.output), [self.result.as_path()])?;
        if self.keep_cold {
            self.takes_cold(&source)?;
        }
        let warnings = if self.format.openmetrics {
            metrics(self, &source)?
        } else if self.format.hdr {
            log(self, &source)?
        } else {
            let table = if self.format.csv { Table::Csv } else { Table::Parquet };
            if self.histogram {
                export_histograms(self, &source, table)?
            } else {
                export_samples(&source, table, &self.output)?
            }
        };
        warnings.iter().for_each(|warning| output::message(warning));
        Ok(Exit::Fine)
    }
}

impl ExportArgs {
    /// Refuses `--keep-cold` where no histogram is made of samples.
    fn takes_cold(&self, source: &Source) -> Result<()> {
        let FormatArgs { hdr, openmetrics, .. } = self.format;
        if !(hdr || openmetrics || self.histogram) {
            bail!(
                "--keep-cold is about histograms: --csv and --parquet have a row of every cycle, \
                 cold ones too, which their column cold marks; leave it out"
            );
        }
        let shown = &source.shown;
        let Some(stored) = &source.stored else { return Ok(()) };
        if source.samples.is_none() {
            source.refuse_samples_of_another()?;
            bail!(
                "{shown}: --keep-cold needs the samples of this result, and there are none: a \
                 histogram does not record which of its cycles were cold; leave it out"
            );
        }
        if openmetrics {
            let result = shell_word(&stored.path.display().to_string());
            bail!(
                "{shown}: --openmetrics gives the figures and judgements of the result, which are \
                 made already: '{}' judges its samples with --keep-cold, and FILE can be exported",
                format::command(&format!("punctual analyse {result} --keep-cold --json FILE"))
            );
        }
        Ok(())
    }
}

fn metrics(args: &ExportArgs, source: &Source) -> Result<Vec<String>> {
    let report = source.report(args.keep_cold)?;
    let families = families(&report, &source.shown)?;
    write(&args.output, |out| Ok(openmetrics::write(out, &families)?))?;
    Ok(source.cut(&report))
}

fn log(args: &ExportArgs, source: &Source) -> Result<Vec<String>> {
    let report = source.histograms(args.keep_cold)?;
    let runs = intervals(&report, &source.shown)?;
    let notes = notes(&report);
    write(&args.output, |out| Ok(hdr::write(out, &runs, started(&report), &notes)?))?;
    Ok(source.cut(&report))
}

fn export_histograms(args: &ExportArgs, source: &Source, table: Table) -> Result<Vec<String>> {
    let report = source.histograms(args.keep_cold)?;
    let runs = distributions(&report, &source.shown)?;
    write(&args.output, |out| write_histograms(out, table, &runs, &report))?;
    Ok(source.cut(&report))
}

/// The runs with how long each was to run.
fn intervals(report: &Report, shown: &str) -> Result<Vec<IntervalHistogram>> {
    let runs = distributions(report, shown)?;
    let durations = report.body.runs().iter().map(|run| run.setup.duration_ns.unwrap_or_default());
    let interval =
        |(lateness, ns)| IntervalHistogram { lateness, duration: Duration::from_nanos(ns) };
    Ok(runs.into_iter().zip(durations).map(interval).collect())
}

/// The lines at the head of a log.
fn notes(report: &Report) -> Vec<String> {
    let from = format!("written by punctual {}", env!("CARGO_PKG_VERSION"));
    let end = "the recording ended early, or its file is incomplete".to_owned();
    std::iter::once(from).chain(report.envelope.incomplete.then_some(end)).collect()
}

/// Start of the recording, where that is known.
fn started(report: &Report) -> Option<SystemTime> {
    let at: jiff::Timestamp = report.envelope.started_at.as_deref()?.parse().ok()?;
    Some(at.into())
}

/// A result or recording to export.
struct Source {
    /// Its name, for messages.
    shown: String,
    stored: Option<Stored>,
    samples: Option<PathBuf>,
    /// Samples beside the result that are another run's.
    foreign: Option<PathBuf>,
}

impl Source {
    /// Finds out what `path` is and reads the result, if it is one.
    fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        if path.is_dir() && !path.join(RESULT).is_file() {
            let samples = path.join(SAMPLES);
            if !samples.is_file() {
                bail!("{shown}: neither {RESULT} nor {SAMPLES} in this directory");
            }
            return Ok(Self { shown, stored: None, samples: Some(samples), foreign: None });
        }
        if !path.is_dir() && stored::is_samples(path)? {
            let samples = Some(path.to_owned());
            return Ok(Self { shown, stored: None, samples, foreign: None });
        }
        let stored = stored::read(path).map_err(|why| foreign(path, why))?;
        // Another file of any name has samples of its own, if any.
        let named = stored.path.file_name().is_some_and(|name| name == RESULT);
        let beside = stored.samples.clone().filter(|_| named);
        let (samples, foreign) = match beside {
            Some(path) if !are_of(&path, &stored.report)? => (None, Some(path)),
            own => (own, None),
        };
        Ok(Self { shown, stored: Some(stored), samples, foreign })
    }

    /// The result; where there is none, what the samples say.
    fn report(&self, keep_cold: bool) -> Result<Report> {
        match &self.stored {
            Some(stored) => Ok(stored.report.clone()),
            None => self.histograms(keep_cold),
        }
    }

    /// The report with histograms as fine as they are: from the samples where there are any.
    fn histograms(&self, keep_cold: bool) -> Result<Report> {
        match (&self.samples, &self.stored) {
            (Some(path), _) => {
                let args = ReportArgs::unjudged(keep_cold);
                let file = BufReader::new(regular(path)?);
                let read = recorded::of_samples(&args, None, file);
                Ok(read.with_context(|| path.display().to_string())?.into_report())
            }
            (None, Some(stored)) => Ok(stored.report.clone()),
            (None, None) => bail!("{}: nothing to export", self.shown),
        }
    }

    /// Refuses samples beside the result that are another run's.
    fn refuse_samples_of_another(&self) -> Result<()> {
        let Some(path) = &self.foreign else { return Ok(()) };
        bail!(
            "{}: the samples next to it, {}, belong to another run: name that file to export it",
            self.shown,
            path.display()
        );
    }

    /// The samples.
    fn samples(&self) -> Result<(SampleFileReader<BufReader<File>>, String)> {
        self.refuse_samples_of_another()?;
        let Some(path) = &self.samples else {
            bail!(
                "{}: no samples: they are in {SAMPLES} next to the {RESULT} of 'punctual check', \
                 or where 'punctual measure --samples' wrote them; this file can be exported with \
                 --csv --histogram, --parquet --histogram, --hdr and --openmetrics",
                self.shown
            );
        };
        let shown = path.display().to_string();
        let file = SampleFileReader::open(BufReader::new(regular(path)?))
            .with_context(|| shown.clone())?;
        Ok((file, shown))
    }

    /// The note about samples that were cut off or damaged, when `report` is of them.
    fn cut(&self, report: &Report) -> Vec<String> {
        let path = self.samples.as_ref().filter(|_| report.envelope.incomplete);
        let sentences: Vec<&str> = report.envelope.warnings.iter().map(Warning::text).collect();
        let note = |path: &PathBuf| format!("{}: {}", path.display(), sentences.join("; "));
        path.filter(|_| {
            !report.envelope.warnings.is_empty() && report.envelope.experiment == "analyse"
        })
        .map(note)
        .into_iter()
        .collect()
    }

    /// The report of a result, for what it says beside its runs.
    fn stored(&self) -> Option<&Report> {
        self.stored.as_ref().map(|stored| &stored.report)
    }
}

/// Returns true where a sample file is of this result, and where it cannot be read: that fails
/// later, with the reason.
fn are_of(path: &Path, report: &Report) -> Result<bool> {
    let file = SampleFileReader::open(BufReader::new(regular(path)?));
    Ok(file.map_or(true, |file| stored::is_of(report, &file.info().started_at)))
}

/// The error about a file that is no result: for another program's recording, with its name and the
/// way out; else `why`.
fn foreign(path: &Path, why: Error) -> Error {
    let shown = path.display();
    match recorded::format_of(path) {
        Ok(Some(format)) if !path.is_dir() => {
            // Some programs share a format, and only its whole reading tells them apart.
            let mut programs: Vec<&str> = format.writers.iter().map(|row| row.program).collect();
            programs.dedup();
            let programs = programs.join(" or ");
            anyhow!(
                "{shown}: a recording of {programs}; export takes results of punctual: write one \
                 with 'punctual analyse {shown} --json FILE'"
            )
        }
        _ => why,
    }
}

/// Nanoseconds in a second.
const NS: f64 = 1e9;

/// A value of a run, where it has one.
type Value = fn(&Run) -> Option<f64>;

/// Times of a run that are one number: name, what it is, the number in ns.
const TIMES: [(&str, &str, Value); 6] = [
    ("punctual_period_seconds", "Nominal period of the loop.", |run| {
        run.setup.period_ns.map(|ns| ns as f64)
    }),
    (
        "punctual_lateness_max_seconds",
        "Largest lateness of all releases; a lower bound where some are not known.",
        |run| run.outcome.lateness_ns.max,
    ),
    ("punctual_lateness_min_seconds", "Smallest lateness; negative after an early wake.", |run| {
        run.outcome.lateness_ns.min
    }),
    (
        "punctual_interval_max_abs_seconds",
        "Largest deviation of the time between two wakes from the period.",
        |run| run.outcome.jitters.interval_max_abs_ns,
    ),
    (
        "punctual_grid_pp_seconds",
        "Peak-to-peak deviation of the wakes from the fitted grid.",
        |run| run.outcome.grid.as_ref().map(|grid| grid.jitter_pp_ns),
    ),
    (
        "punctual_grid_rms_seconds",
        "Root mean square deviation of the wakes from the fitted grid.",
        |run| run.outcome.grid.as_ref().map(|grid| grid.rms_ns),
    ),
];

/// Pure numbers of a run: name, what it is, the number.
const NUMBERS: [(&str, &str, Value); 3] = [
    ("punctual_cycles", "Recorded cycles, cold ones included.", |run| {
        run.known_cycles().map(|cycles| cycles as f64)
    }),
    ("punctual_missed_releases", "Releases that never ran.", |run| {
        run.outcome.missed.map(|missed| missed as f64)
    }),
    ("punctual_unrecorded_cycles", "Cycles that ran but did not fit in the recorder.", |run| {
        Some(run.outcome.unrecorded as f64)
    }),
];

/// The metrics of a report, for Prometheus.
fn families(report: &Report, shown: &str) -> Result<Vec<MetricFamily>> {
    let latenesses: Vec<(Labels, LatenessHistogram)> = distributions(report, shown)?
        .into_iter()
        .map(|lateness| (labels(&lateness), lateness))
        .collect();
    let runs = || latenesses.iter().map(|(labels, _)| labels).zip(report.body.runs());
    let every = |value: &dyn Fn(&Run) -> Option<f64>| {
        let points = runs().filter_map(|(labels, run)| Some((labels.clone(), value(run)?)));
        Points::Gauges(points.collect())
    };
    let mut families = vec![result(report), judgements(report), answers(report)];
    families.extend(timestamp(report));
    families.push(MetricFamily {
        name: "punctual_run_info",
        unit: "",
        help: "How the run was set up; always 1.",
        points: Points::Gauges(runs().map(|(labels, run)| (setup(labels, run), 1.0)).collect()),
    });
    for (name, help, value) in NUMBERS {
        families.push(MetricFamily { name, unit: "", help, points: every(&value) });
    }
    for (name, help, value) in TIMES {
        let seconds = |run: &Run| value(run).map(|ns| ns / NS);
        families.push(MetricFamily { name, unit: "seconds", help, points: every(&seconds) });
    }
    families.push(MetricFamily {
        name: "punctual_lateness_quantile_seconds",
        unit: "seconds",
        help: "Quantiles of lateness that the number of cycles supports.",
        points: Points::Gauges(
            runs().flat_map(|(labels, run)| quantiles(labels, &run.outcome.lateness_ns)).collect(),
        ),
    });
    families.push(MetricFamily {
        name: "punctual_lateness_seconds",
        unit: "seconds",
        help: "Lateness, wake - release. Early wakes are in the first bucket.",
        points: Points::Histograms(
            // Data without a number of values have nothing in their buckets.
            latenesses
                .into_iter()
                .zip(report.body.runs())
                .filter_map(|(lateness, run)| run.known_cycles().map(|_| lateness))
                .collect(),
        ),
    });
    Ok(families)
}

fn labels(lateness: &LatenessHistogram) -> Labels {
    let cpu = lateness.cpu.map(|cpu| ("cpu", cpu.to_string()));
    std::iter::once(("run", lateness.run.clone())).chain(cpu).collect()
}

/// The metric that names the experiment, the machine and the version.
fn result(report: &Report) -> MetricFamily {
    let machine = report.envelope.machine.as_ref();
    let kernel = machine.and_then(|facts| facts.kernel.kernel.value().cloned());
    let model = machine.and_then(|facts| facts.cpu.cpu_model.value().cloned());
    let words = [
        ("version", Some(report.envelope.version.clone())),
        ("experiment", Some(report.envelope.experiment.clone())),
        ("kernel", kernel),
        ("cpu_model", model),
        ("incomplete", Some(report.envelope.incomplete.to_string())),
    ];
    let labels = words.into_iter().filter_map(|(name, word)| Some((name, plain(&word?))));
    MetricFamily {
        name: "punctual_result_info",
        unit: "",
        help: "The result that these metrics come from; always 1.",
        points: Points::Gauges(vec![(labels.collect(), 1.0)]),
    }
}

/// How each limit, claim, answer and comparison came out, and the measurement itself, as sets of
/// states are written: 1 for the one that it is in, 0 for the others.
fn judgements(report: &Report) -> MetricFamily {
    let mut names = Distinct::default();
    let points = cases(report).into_iter().flat_map(|case| {
        let (kind, name) = (case.kind.word(), names.name(plain(&case.name)));
        CaseFinding::WORDS.map(|state| {
            let labels = [("kind", kind), ("case", name.as_str()), ("state", state)];
            let labels = labels.map(|(label, word)| (label, word.to_owned()));
            (labels.to_vec(), f64::from(u8::from(case.finding.word() == state)))
        })
    });
    MetricFamily {
        name: "punctual_judgement",
        unit: "",
        help: "Limits, claims, answers and comparisons: 1 for the state that each is in.",
        points: Points::Gauges(points.collect()),
    }
}

/// The answers themselves, whether they count for the exit status or not.
fn answers(report: &Report) -> MetricFamily {
    let mut names = Distinct::default();
    let points = cases(report).into_iter().flat_map(|case| {
        // As the judgement of the same case is called.
        let name = names.name(plain(&case.name));
        let CaseKind::Answer(answer) = case.kind else { return Vec::new() };
        let states = [("holds", Answer::Yes), ("fails", Answer::No), ("open", Answer::Unknown)];
        let point = |(state, value): (&str, Answer)| {
            let labels = vec![("case", name.clone()), ("state", state.to_owned())];
            (labels, f64::from(u8::from(answer == value)))
        };
        states.map(point).to_vec()
    });
    MetricFamily {
        name: "punctual_answer",
        unit: "",
        help: "Answers about loops, also where they do not count: 1 for the state that each is in.",
        points: Points::Gauges(points.collect()),
    }
}

fn timestamp(report: &Report) -> Option<MetricFamily> {
    let at: jiff::Timestamp = report.envelope.started_at.as_deref()?.parse().ok()?;
    Some(MetricFamily {
        name: "punctual_started_timestamp_seconds",
        unit: "seconds",
        help: "Start of the measurement, as Unix time.",
        points: Points::Gauges(vec![(Labels::new(), at.as_millisecond() as f64 / 1e3)]),
    })
}

fn setup(labels: &Labels, run: &Run) -> Labels {
    let setup = &run.setup;
    let load = if setup.load.is_empty() { "none".to_owned() } else { setup.load.join(",") };
    let words = [
        ("policy", setup.policy.clone()),
        ("priority", setup.priority.map(|priority| priority.to_string())),
        ("wait", setup.wait.clone()),
        ("load", Some(load)),
    ];
    let words = words.into_iter().filter_map(|(name, word)| Some((name, plain(&word?))));
    labels.iter().cloned().chain(words).collect()
}

fn quantiles(labels: &Labels, stats: &SummaryStats) -> Vec<(Labels, f64)> {
    let known = [
        ("0.5", stats.p50),
        ("0.9", stats.p90),
        ("0.99", stats.p99),
        ("0.999", stats.p99_9),
        ("0.9999", stats.p99_99),
    ];
    let point = |(p, ns): (&str, Option<f64>)| {
        let mut labels = labels.clone();
        labels.push(("p", p.to_owned()));
        Some((labels, ns? / NS))
    };
    known.into_iter().filter_map(point).collect()
}

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 1 << 18;

/// The file or stream that formats write to.
type Out = BufWriter<Pipe>;

/// A writer that remembers whether its reader went away: the library behind a format may hide
/// which error it was.
struct Pipe {
    inner: Box<dyn Write + Send>,
    gone: Arc<AtomicBool>,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.noted(|inner| inner.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.noted(Write::flush)
    }
}

impl Pipe {
    fn noted<T>(
        &mut self,
        act: impl FnOnce(&mut Box<dyn Write + Send>) -> io::Result<T>,
    ) -> io::Result<T> {
        let done = act(&mut self.inner);
        if done.as_ref().is_err_and(|why| why.kind() == ErrorKind::BrokenPipe) {
            self.gone.store(true, Ordering::Relaxed);
        }
        done
    }
}

/// Writes what `body` writes to `path`, or to standard output for `-`.
fn write(path: &Path, body: impl FnOnce(&mut Out) -> Result<()>) -> Result<()> {
    if path == Path::new("-") {
        return through(Box::new(io::stdout()), body).context("cannot write to standard output");
    }
    Opened::at(path)?.write(|file| through(Box::new(file.try_clone()?), body))
}

/// Passes the writer on, in large pieces.
fn through(writer: Box<dyn Write + Send>, body: impl FnOnce(&mut Out) -> Result<()>) -> Result<()> {
    let gone = Arc::new(AtomicBool::new(false));
    let pipe = Pipe { inner: writer, gone: Arc::clone(&gone) };
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, pipe);
    let done = body(&mut out).and_then(|()| Ok(out.flush()?));
    // What is still in the buffer is not tried again.
    drop(out.into_parts());
    // Whoever reads has seen enough.
    if gone.load(Ordering::Relaxed) { Ok(()) } else { done }
}

/// The words for a sample file that ends too early.
const EXPORTED: &str = "its data up to there was exported";

/// A format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Csv,
    Parquet,
}

/// Writes every sample; what is wrong with the file comes back as a warning.
fn export_samples(source: &Source, table: Table, output: &Path) -> Result<Vec<String>> {
    let (mut file, shown) = source.samples()?;
    let info = file.info().clone();
    let rows = ReleaseRows::new(info.runs.iter().map(row_run).collect());
    let mut warnings = Vec::new();
    write(output, |out| {
        match table {
            Table::Csv => {
                let mut table = csv::CsvSamples::begin(out, rows)?;
                while let Some(block) = file.next_block() {
                    table.extend(block.run, block.samples, block.unrecorded)?;
                }
                for run in 0..info.runs.len() {
                    let counts = file.counts(run).unwrap_or_default();
                    table.ended(run, counts.missed, counts.unrecorded)?;
                }
                table.finish()?;
            }
            Table::Parquet => {
                let mut table = parquet::ParquetSamples::begin(out, rows)?;
                while let Some(block) = file.next_block() {
                    table.extend(block.run, block.samples, block.unrecorded)?;
                }
                for run in 0..info.runs.len() {
                    let counts = file.counts(run).unwrap_or_default();
                    table.ended(run, counts.missed, counts.unrecorded)?;
                }
                table.finish(facts_of(&info, file.ending(), source.stored())?)?;
            }
        }
        warnings
            .extend(stored::ended(file.ending(), EXPORTED).map(|how| format!("{shown}: {how}")));
        Ok(())
    })
    .with_context(|| shown.clone())?;
    Ok(warnings)
}

fn row_run(info: &RunInfo) -> ExportedRun {
    ExportedRun {
        run: plain(info.part_of.as_ref().unwrap_or(&info.name)),
        condition: plain(&info.name),
        cpu: info.cpu,
        period_ns: info.period_ns,
        epoch_ns: info.epoch_ns,
    }
}

/// The metadata of a table of samples.
fn facts_of(
    info: &FileInfo,
    ending: Option<&FileEnding>,
    stored: Option<&Report>,
) -> Result<parquet::FileMetadata> {
    let mut facts = general(ending != Some(&FileEnding::Complete));
    facts.push(("punctual.started_at", plain(&info.started_at)));
    facts.push(("punctual.recorder_version", plain(&info.version)));
    facts.push(("punctual.runs", serde_json::to_string(&info.runs)?));
    let machine = match (&info.machine, stored.and_then(|report| report.envelope.machine.as_ref()))
    {
        (Some(machine), _) => Some(serde_json::to_string(machine)?),
        (None, Some(machine)) => Some(serde_json::to_string(machine)?),
        (None, None) => None,
    };
    facts.extend(machine.map(|machine| ("punctual.machine", machine)));
    Ok(facts)
}

/// The metadata of every table.
fn general(incomplete: bool) -> parquet::FileMetadata {
    vec![
        ("punctual.schema", SCHEMA.to_string()),
        ("punctual.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("punctual.incomplete", incomplete.to_string()),
    ]
}

/// Writes the histogram of each run.
fn write_histograms(
    out: &mut Out,
    table: Table,
    runs: &[LatenessHistogram],
    report: &Report,
) -> Result<()> {
    match table {
        Table::Csv => csv::histograms(out, runs)?,
        Table::Parquet => {
            let mut facts = general(report.envelope.incomplete);
            let started_at = report.envelope.started_at.as_deref().unwrap_or_default();
            facts.push(("punctual.started_at", plain(started_at)));
            let setups: Vec<_> =
                report.body.runs().iter().map(|run| (&run.name, &run.setup)).collect();
            facts.push(("punctual.runs", serde_json::to_string(&setups)?));
            if let Some(machine) = &report.envelope.machine {
                facts.push(("punctual.machine", serde_json::to_string(machine)?));
            }
            parquet::histograms(out, runs, facts)?;
        }
    }
    Ok(())
}

/// The lateness of every run, counted, each run with a name of its own.
fn distributions(report: &Report, shown: &str) -> Result<Vec<LatenessHistogram>> {
    if report.body.runs().is_empty() {
        bail!("{shown}: no run in this result");
    }
    let mut names = Distinct::default();
    report
        .body
        .runs()
        .iter()
        .map(|run| distribution(run, names.name(plain(&run.name)), shown))
        .collect()
}

fn distribution(run: &Run, name: String, shown: &str) -> Result<LatenessHistogram> {
    let outcome = &run.outcome;
    let whole = |ns: f64| ns as i64;
    let histogram = LatenessHistogram {
        run: name,
        cpu: run.setup.cpu,
        min_ns: outcome.lateness_ns.min.map(whole),
        max_ns: outcome.lateness_ns.max.map(whole),
        mean_ns: outcome.lateness_ns.mean,
        buckets: Vec::new(),
        overflow: outcome.histogram.overflow,
    };
    // What is not known counts as later than every bucket.
    let open = |histogram: LatenessHistogram| LatenessHistogram {
        overflow: histogram.overflow.saturating_add(outcome.histogram.unknown),
        ..histogram
    };
    if outcome.lateness.count() > 0 {
        return Ok(open(histogram.with(&outcome.lateness)));
    }
    let mut last = None;
    let mut buckets = Vec::new();
    for bucket in &outcome.histogram.buckets {
        let rises = last.is_none_or(|last| bucket.lower_ns >= last);
        let rises = rises && bucket.lower_ns < bucket.upper_ns;
        if !rises || outcome.histogram.unit_ns != 1 {
            bail!("{shown}: result is corrupt: run \"{}\" has buckets out of order", histogram.run);
        }
        buckets.push(bucket.closed());
        last = Some(bucket.upper_ns);
    }
    let histogram = LatenessHistogram { buckets, ..histogram };
    // Beyond another program's histogram, but not beyond the maximum that it stated.
    Ok(open(match outcome.left_out() {
        Some(between) => {
            histogram.with_bounded_overflow(Some(between.lowest_ns), between.highest_ns)
        }
        None => histogram,
    }))
}
