//! The samples of a result, read again and thinned for its page.
//!
//! One pass in constant memory. A file that is missing, cut off or another run's costs the page
//! its time series and not its numbers; which it is, is noted.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use punctual_analysis::plot::{Thinned, Thinner, ThinnerConfig};
use punctual_core::sample::Flags;
use punctual_import::samples::{RunInfo, SampleFileReader};
use punctual_report::{Body, Report, Run};

use crate::stored;

/// Bins of all envelopes of a page together, and the most of one.
const BINS: usize = 7_168;
const BINS_OF_ONE: usize = 4_096;
/// Columns of the heat maps of a page, and of one at most: finer than they are drawn, for a zoom.
const HEAT_COLUMNS: usize = 2_048;
const HEAT_COLUMNS_OF_ONE: usize = 1_024;

/// Outliers of all runs of a page together, and the most of one.
const OUTLIERS: usize = 4_000;
const OUTLIERS_OF_ONE: usize = 2_000;

/// The note where there is no sample file.
const NONE: &str = "no sample file next to this result (samples.punctual, or its own name with \
                    .punctual): it has a histogram but no time series";

/// The note where samples were analysed, and are elsewhere.
const ELSEWHERE: &str = "no heat map and no time series: an analysis keeps histograms and counts; \
                         'punctual report FILE.punctual' draws them from the sample file that was \
                         analysed, as does this result where that file has its name and stands \
                         beside it";

/// The note where the data are no samples of this program.
const IMPORTED: &str = "no heat map and no time series: an analysis keeps histograms and counts, \
                        and of data that are no sample file of punctual no command draws them";

/// The most changes of load of a run: a file that has more is not this program's.
const LOADED_MAX: usize = 2_000;

/// A load that ran next to a loop, from one cycle to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// Its name.
    pub(crate) load: String,
    /// The first cycle that was recorded meanwhile.
    pub(crate) first: u64,
    /// The last one.
    pub(crate) last: u64,
}

/// The parts of a page that come from a sample file.
#[derive(Debug, Default)]
pub(super) struct FromSamples {
    /// The time series of each run, where there are samples.
    pub(super) series: Vec<Option<Thinned>>,
    /// The turns of each run whose loads took turns: which load ran when.
    pub(super) loaded: Vec<Vec<Loaded>>,
    /// The reasons why a time series is missing, or ends early.
    pub(super) notes: Vec<String>,
}

impl FromSamples {
    /// The part of a result without a sample file: that is noted where its kind has one.
    pub(super) fn missing(report: &Report) -> Self {
        match report.body {
            Body::Check(_) | Body::Periodic(_) => Self::none(NONE.to_owned()),
            Body::Recorded(_) => {
                // A loop of this program has its policy; what was imported does not say it.
                let is_own = report.body.runs().iter().any(|run| run.setup.policy.is_some());
                Self::none(if is_own { ELSEWHERE } else { IMPORTED }.to_owned())
            }
            _ => Self::default(),
        }
    }

    /// No time series, and why.
    fn none(why: String) -> Self {
        Self { notes: vec![why], ..Self::default() }
    }
}

/// The time series of the runs of `report`, and what there is to say of them; `drawn` runs share
/// what a page has room for.
pub(super) fn read(path: &Path, report: &Report, drawn: usize) -> Result<FromSamples> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    thinned(file, path, report, drawn)
}

/// The time series of the runs of `report` from an open sample file; `path` is for messages.
pub(super) fn thinned(
    file: File,
    path: &Path,
    report: &Report,
    drawn: usize,
) -> Result<FromSamples> {
    let shown = path.display();
    let mut file = match SampleFileReader::open(file) {
        Ok(file) => file,
        Err(why) => return Ok(FromSamples::none(format!("no time series: {shown}: {why}"))),
    };
    if !stored::is_of(report, &file.info().started_at) {
        let why = format!("no time series: the samples in {shown} belong to another run");
        return Ok(FromSamples::none(why));
    }
    let of_run: Vec<Option<usize>> =
        file.info().runs.iter().map(|info| place(info, report.body.runs())).collect();
    let bounds = |run: &Run| ThinnerConfig {
        bins: (BINS / drawn).min(BINS_OF_ONE),
        heat_columns: (HEAT_COLUMNS / drawn).min(HEAT_COLUMNS_OF_ONE),
        outliers: (OUTLIERS / drawn).min(OUTLIERS_OF_ONE),
        outlier_above_ns: run.outcome.lateness_ns.p99_9.map(|ns| ns as i64),
        leave_out_cold: recorded(run) < run.outcome.cycles,
    };
    let mut thinners: Vec<Thinner> =
        report.body.runs().iter().map(|run| Thinner::new(bounds(run))).collect();
    let turns: Vec<Option<String>> = file.info().runs.iter().map(turn).collect();
    let mut loaded = vec![Vec::new(); thinners.len()];
    while let Some(block) = file.next_block() {
        let Some(run) = of_run[block.run] else { continue };
        thinners[run].extend(block.samples);
        if let (Some(load), [first, .., last] | [first @ last]) = (&turns[block.run], block.samples)
        {
            let begins = first.flags.has(Flags::FIRST);
            took_turn(&mut loaded[run], load, begins, (first.cycle, last.cycle));
        }
    }
    let series: Vec<Option<Thinned>> = thinners
        .into_iter()
        .map(Thinner::finish)
        .map(|thinned| (thinned.samples > 0).then_some(thinned))
        .collect();
    let ended = stored::ended(file.ending(), "the time series is incomplete");
    Ok(FromSamples { series, loaded, notes: ended.into_iter().collect() })
}

/// The recorded cycles that the figures of a run are of.
fn recorded(run: &Run) -> u64 {
    let lost = run.outcome.missed.unwrap_or(0).saturating_add(run.outcome.unrecorded);
    run.outcome.releases().saturating_sub(lost)
}

/// The load of a run that counts in another together with others.
fn turn(info: &RunInfo) -> Option<String> {
    info.part_of.as_ref()?;
    match info.load.as_slice() {
        [load] => Some(load.clone()),
        // Several at once have a name together: "all loads".
        _ => Some(info.condition().to_owned()),
    }
}

/// Notes that a load ran from a cycle to another; a turn that `begins` stands apart from one of the
/// same load before it, between which the loop ran without load.
fn took_turn(loaded: &mut Vec<Loaded>, load: &str, begins: bool, (first, last): (u64, u64)) {
    let room = loaded.len() < LOADED_MAX;
    match loaded.last_mut() {
        Some(before) if before.load == load && !begins => before.last = last,
        _ if room => loaded.push(Loaded { load: load.to_owned(), first, last }),
        _ => {}
    }
}

/// The run of a report that a run of its sample file counts in.
fn place(info: &RunInfo, runs: &[Run]) -> Option<usize> {
    let name = info.part_of.as_ref().unwrap_or(&info.name);
    runs.iter().position(|run| {
        run.name == *name
            && run.setup.period_ns == Some(info.period_ns)
            && run.setup.cpu.is_none_or(|cpu| cpu == info.cpu)
    })
}
