//! Sample files of the project's own, as runs of a report.
//!
//! A file that was cut off or damaged is read up to there, and says so.

use std::io::Read;

use anyhow::Result;
use punctual_analysis::recording::{Recording, RecordingConfig, ReleaseInstants, RunFigures};
use punctual_core::time::{Instant, Period};
use punctual_import::samples::{FileEnding, RunInfo, SampleFileReader};

use super::data::RecordedData;
use crate::args::ReportArgs;
use crate::report::{self, EndedBy, Run, Setup};
use crate::stored;

/// A run of the report: the runs of the file that count as one.
struct Part {
    name: String,
    infos: Vec<usize>,
    recording: Recording,
}

/// Reads a whole file.
pub(in crate::command) fn read(args: &ReportArgs, reader: impl Read) -> Result<RecordedData> {
    let mut file = SampleFileReader::open(reader)?;
    let info = file.info().clone();
    let (mut parts, of_run) = parts(&info.runs, args);
    while let Some(block) = file.next_block() {
        parts[of_run[block.run]].recording.extend(block.samples);
    }
    let mut read = RecordedData::new();
    read.envelope.started_at = Some(info.started_at.clone()).filter(|at| !at.is_empty());
    read.envelope.machine = info.machine.and_then(|facts| serde_json::from_value(facts).ok());
    let ended = stored::ended(file.ending(), "its data up to there was read");
    read.envelope.incomplete = ended.is_some();
    read.envelope.ended_by = ended.as_ref().map(|_| match file.ending() {
        Some(FileEnding::Early) => EndedBy::Recording,
        _ => EndedBy::File,
    });
    read.envelope.warnings.extend(ended);
    for part in parts {
        let infos: Vec<&RunInfo> = part.infos.iter().map(|&run| &info.runs[run]).collect();
        let (mut missed, mut unrecorded) = (0, 0);
        for &run in &part.infos {
            let counts = file.counts(run).unwrap_or_default();
            missed += counts.1;
            unrecorded += counts.2;
        }
        let outcome = part.recording.finish_with(missed, unrecorded);
        if outcome.cycles == 0 {
            read.envelope.warnings.push(format!("run \"{}\" has no samples", part.name));
        }
        read.runs.push(run(part.name, &infos, outcome));
    }
    Ok(read)
}

/// The runs of the report, and to which of them each run of the file belongs.
fn parts(runs: &[RunInfo], args: &ReportArgs) -> (Vec<Part>, Vec<usize>) {
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
                thresholds_ns: report::thresholds(&args.limits, &args.claims),
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

fn run(name: String, infos: &[&RunInfo], outcome: RunFigures) -> Run {
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
    Run { floor_ns: first.floor_ns, ..Run::recorded(name, setup, outcome) }
}
