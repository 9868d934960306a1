//! A result, as far as a comparison needs it, from a directory, a result.json or a sample file.
//!
//! Samples are read where they are, because they hold the order of time; else the histogram of the
//! result, and then nothing is known of how cycles depend on each other.

use std::fs::{self, File};
use std::io::Seek;
use std::path::Path;

use anyhow::{Context, Result, bail};
use punctual_analysis::compare::series::{Builder, LatenessSeries};
use punctual_analysis::plain::plain_spaces;
use punctual_analysis::recording::{Recording, RecordingConfig, ReleaseInstants};
use punctual_analysis::summary::SummaryStats;
use punctual_core::time::{Instant, Period};
use punctual_host::facts::MachineFacts;
pub(crate) use punctual_import::samples::RUNS_MAX;
use punctual_import::samples::{FileEnding, FileInfo, RunInfo, SampleFileReader};
use punctual_report::{Report, Run, Session, Setup};
use serde::{Deserialize, Serialize};

use crate::stored::{self, RESULT, SAMPLES};

/// A result, as far as a comparison needs it: bounded in size, however long it ran.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// Where it was read, or which baseline it is.
    pub(crate) from: String,
    /// The version that measured.
    pub(crate) version: String,
    /// The subcommand that measured.
    pub(crate) experiment: String,
    /// When it started, in UTC (RFC 3339).
    pub(crate) started_at: Option<String>,
    /// Whether it ended before its time.
    pub(crate) incomplete: bool,
    /// The machine, where the data say.
    pub(crate) machine: Option<MachineFacts>,
    /// What the kernel granted, where the data say.
    pub(crate) session: Option<Session>,
    /// What stamps were taken with, where the data say.
    pub(crate) stamps: Option<String>,
    /// Its runs, in their order.
    pub(crate) runs: Vec<RecordedRun>,
}

/// One run of a result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordedRun {
    /// Its name.
    pub(crate) name: String,
    /// How it was set up.
    pub(crate) setup: Setup,
    /// Whether cold cycles were left out.
    pub(crate) cold_left_out: bool,
    /// Cycles that ran and did not fit in the recorder: they are in no count.
    #[serde(default)]
    pub(crate) unrecorded: u64,
    /// Missed releases that `parts` leave out, where they are of wakes alone.
    #[serde(default)]
    pub(crate) left_out: u64,
    /// Lateness of all its releases, as results show it, where it is known.
    #[serde(default)]
    pub(crate) lateness_ns: Option<SummaryStats>,
    /// Of its wakes alone.
    #[serde(default)]
    pub(crate) wakes_ns: Option<SummaryStats>,
    /// What it gave: one series for each load that counts in it.
    pub(crate) parts: Vec<LatenessSeries>,
}

impl RecordedRun {
    /// Whether this is its name. Results of before have hard spaces in names.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        plain_spaces(&self.name) == plain_spaces(name)
    }

    /// Whether the other one holds the very same counts.
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        self.name == other.name && self.parts == other.parts
    }
}

impl Recorded {
    /// A result that was just measured, with the series of its runs that were recorded on the way.
    pub(crate) fn measured(report: &Report, runs: &[RecordedRun], from: &str) -> Self {
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
            session: report.envelope.session.clone(),
            stamps: report.envelope.clock.as_ref().map(|clock| clock.source.clone()),
            runs: Vec::new(),
        }
    }

    /// The kernel's release, where the data say.
    pub(crate) fn kernel(&self) -> Option<String> {
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
    if let Some(samples) = &stored.samples {
        let recorded = of_samples(samples, shown.clone())?;
        // Samples of another run may lie next to it.
        if recorded.started_at == stored.report.envelope.started_at {
            return Ok(Recorded { runs: recorded.runs, ..Recorded::head(&stored.report, shown) });
        }
    }
    let runs = stored.report.body.runs();
    if runs.len() > RUNS_MAX {
        bail!("{shown}: {} runs: at most {RUNS_MAX} can be compared", runs.len());
    }
    of_report(&stored.report, shown)
}

fn of_samples(path: &Path, from: String) -> Result<Recorded> {
    let shown = path.display().to_string();
    let mut file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    file.rewind().with_context(|| format!("cannot read {shown}"))?;
    let mut file = SampleFileReader::open(file).with_context(|| shown.clone())?;
    let info = file.info().clone();
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
        whole.get_or_insert_with(|| recording(run)).extend(block.samples);
    }
    if let Some(FileEnding::Damaged { at_byte, why }) = file.ending() {
        bail!("{shown}: damaged at byte {at_byte}: {why}");
    }
    let series: Vec<LatenessSeries> = builders
        .into_iter()
        .enumerate()
        .map(|(run, builder)| {
            let (_, missed, unrecorded) = file.counts(run).unwrap_or_default();
            builder.unwrap_or_else(|| Builder::new(0, true)).finish_with(missed, unrecorded)
        })
        .collect();
    let counts: Vec<(u64, u64)> = (0..info.runs.len())
        .map(|run| file.counts(run).map_or((0, 0), |(_, missed, lost)| (missed, lost)))
        .collect();
    let machine = info.machine.clone().and_then(|facts| serde_json::from_value(facts).ok());
    Ok(Recorded {
        from,
        version: info.version.clone(),
        experiment: "samples".to_owned(),
        started_at: Some(info.started_at.clone()).filter(|at| !at.is_empty()),
        incomplete: file.ending() != Some(&FileEnding::Complete),
        machine,
        session: None,
        stamps: info.runs.first().map(|run| run.clock.clone()).filter(|clock| !clock.is_empty()),
        runs: of_first_wait(grouped(&info, series, recordings, &counts)),
    })
}

/// The runs, those that count as one together.
fn grouped(
    info: &FileInfo,
    series: Vec<LatenessSeries>,
    recordings: Vec<Option<Recording>>,
    counts: &[(u64, u64)],
) -> Vec<RecordedRun> {
    let mut runs: Vec<RecordedRun> = Vec::new();
    let of_run = info.runs.iter().zip(series).zip(recordings).zip(counts);
    for (((run, series), recording), &(_, unrecorded)) in of_run {
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
            let missed = same().map(|(_, counts)| counts.0).fold(0, u64::saturating_add);
            let lost = same().map(|(_, counts)| counts.1).fold(0, u64::saturating_add);
            let figures = recording.map(|recording| recording.finish_with(missed, lost));
            let stats = figures.map(|figures| (figures.lateness_ns, figures.wakes.stats)).unzip();
            runs.push(RecordedRun {
                name: name.clone(),
                setup: setup(run),
                cold_left_out: true,
                unrecorded,
                left_out: 0,
                lateness_ns: stats.0,
                wakes_ns: stats.1,
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

/// What a run counts in: its own name, or that of the runs that it is one with.
fn name(run: &RunInfo) -> &String {
    run.part_of.as_ref().unwrap_or(&run.name)
}

/// The figures of a run as results show them.
fn recording(run: &RunInfo) -> Recording {
    Recording::new(RecordingConfig {
        period: Period::from_ns(run.period_ns),
        epoch: Instant::from_ns(run.epoch_ns),
        leave_out_cold: true,
        thresholds_ns: Vec::new(),
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
    let run = |run: &Run| {
        let outcome = &run.outcome;
        let max_ns = outcome.lateness_ns.max.map(|ns| ns as i64);
        let histogram = &outcome.histogram;
        let beyond = histogram.overflow.saturating_add(outcome.censored);
        let mut series = LatenessSeries::of_buckets(&histogram.buckets, beyond, max_ns);
        // Other programs and columns of lateness have their wakes alone, unless they say that
        // nothing was missed.
        series.of_wakes = match outcome.imported {
            Some(_) => outcome.missed != Some(0),
            None => outcome.wakes.left_out.is_none(),
        };
        series.missed = if series.of_wakes { 0 } else { outcome.missed.unwrap_or_default() };
        RecordedRun {
            name: run.name.clone(),
            setup: run.setup.clone(),
            cold_left_out: true,
            unrecorded: run.outcome.unrecorded,
            left_out: 0,
            lateness_ns: Some(outcome.lateness_ns.clone()),
            wakes_ns: Some(outcome.wakes.stats.clone()),
            parts: vec![series],
        }
    };
    let shows = |run: &&Run| run.outcome.lateness_ns.max.is_some();
    if !report.body.runs().is_empty() && !report.body.runs().iter().any(|run| shows(&run)) {
        bail!(
            "{from}: it contains intervals but no lateness, and cannot be compared with lateness"
        );
    }
    let runs: Vec<RecordedRun> = report.body.runs().iter().filter(shows).map(run).collect();
    // The ways of `measure wait` are compared by name.
    let is_check = report.envelope.experiment == "check";
    let runs = if is_check { of_first_wait(runs) } else { runs };
    Ok(Recorded { runs, ..Recorded::head(report, from) })
}
