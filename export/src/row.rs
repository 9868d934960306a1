//! One release as a row of a table: a sample, or a release that was missed before or after one.
//!
//! For the formats that are tables. Computes the release, the interval and the gap from two samples
//! of one run, exactly or not at all; holds one sample a run. How late a missed release was is
//! `punctual_analysis::release`.

use punctual_analysis::release::{Falling, Walk};
use punctual_core::sample::{Flags, Sample};

use crate::ExportError;

/// The columns of a table of samples, in order.
pub const COLUMNS: [&str; 11] = [
    "run",
    "condition",
    "cpu",
    "cycle",
    "release_ns",
    "lateness_ns",
    "interval_ns",
    "gap_before",
    "first",
    "cold",
    "kind",
];

/// The most missed releases between two samples that are written, a row each.
const GAP_ROWS_MAX: u64 = 10_000_000;

/// A run of samples: what its rows have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportedRun {
    /// The name that the result gives it; a plain one ([`crate::name::plain`]).
    pub run: String,
    /// The condition that it ran under, where several count as one run; else the name again. Plain.
    pub condition: String,
    /// CPU it ran on.
    pub cpu: u32,
    /// Period, ns, at least 1.
    pub period_ns: u64,
    /// Instant of release 0 on CLOCK_MONOTONIC, ns.
    pub epoch_ns: u64,
}

/// The fate of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// It ran.
    Ran,
    /// It was missed: late until the first wake after it.
    Missed,
    /// It was missed and no wake followed: at least a period late, and no more is known.
    Censored,
}

impl RowKind {
    /// Its name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Missed => "missed",
            Self::Censored => "censored",
        }
    }
}

/// One release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseRow {
    /// k: the release was at epoch + k·period.
    pub cycle: i64,
    /// That instant on CLOCK_MONOTONIC, ns.
    pub release_ns: i64,
    /// wake − release, ns; negative for an early wake. Of a missed release until the first wake
    /// after it, and a period at least; of a censored one the period.
    pub lateness_ns: i64,
    /// wake − previous wake − period, ns; `None` where the loop did not run just before.
    pub interval_ns: Option<i64>,
    /// Releases between the previous sample and this one that have no sample: missed, or
    /// unrecorded where the run says that it has such; `None` where the loop did not run just
    /// before.
    pub gap_before: Option<i64>,
    /// The first cycle of a segment.
    pub first: bool,
    /// One of the first cycles of a segment: caches and predictors may have been cold.
    pub cold: bool,
    /// Its fate.
    pub kind: RowKind,
}

/// Turns the samples of several runs into rows.
#[derive(Debug)]
pub struct ReleaseRows {
    runs: Vec<ExportedRun>,
    /// Where each run has come to, and the wake of its last sample.
    walks: Vec<(Walk, Option<(u64, i128)>)>,
}

impl ReleaseRows {
    /// Rows of these runs, none of which has had a sample yet.
    pub fn new(runs: Vec<ExportedRun>) -> Self {
        let walk = |run: &ExportedRun| {
            let period_ns = i64::try_from(run.period_ns).unwrap_or(i64::MAX);
            (Walk::new(period_ns, false), None)
        };
        Self { walks: runs.iter().map(walk).collect(), runs }
    }

    /// The runs.
    pub fn runs(&self) -> &[ExportedRun] {
        &self.runs
    }

    /// Gives the rows of the next sample of run `run`, whose cycles do not decrease: the releases
    /// that were missed before it, then its own. With `unrecorded` cycles so far it is unknown
    /// which releases of a gap were missed: then the gap is only in its column.
    ///
    /// # Errors
    /// A time beyond 64 bits ([`ExportError::Range`]); a gap of too many rows; what `give` gave.
    ///
    /// # Panics
    /// When there is no such run.
    pub fn sample(
        &mut self,
        run: usize,
        sample: &Sample,
        unrecorded: u64,
        give: &mut impl FnMut(&ReleaseRow) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let (exported, (walk, previous)) = (&self.runs[run], &mut self.walks[run]);
        let before = *previous;
        let gap = walk.step(sample, sample.lateness.as_ns()).gap.filter(|_| unrecorded == 0);
        let own = own(exported, sample, before)?;
        *previous = Some((sample.cycle, i128::from(own.release_ns) + i128::from(own.lateness_ns)));
        if let (Some(gap), Some((before, _))) = (gap, before) {
            if gap.missed() > GAP_ROWS_MAX {
                let (run, cycle, missed) = (exported.run.clone(), sample.cycle, gap.missed());
                return Err(ExportError::Gap { run, cycle, missed });
            }
            let mut cycle = before;
            for piece in gap.pieces() {
                each(exported, &mut cycle, piece, RowKind::Missed, give)?;
            }
        }
        give(&own)
    }

    /// Gives the rows of the releases of run `run` that were missed after the last cycle of a
    /// segment, where `missed` were missed in all.
    ///
    /// # Errors
    /// As [`Self::sample`].
    ///
    /// # Panics
    /// When there is no such run.
    pub fn ended(
        &self,
        run: usize,
        missed: u64,
        unrecorded: u64,
        give: &mut impl FnMut(&ReleaseRow) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let (exported, (walk, previous)) = (&self.runs[run], &self.walks[run]);
        let placement = walk.placement(missed, unrecorded);
        let Some(&(last, _)) = previous.as_ref().filter(|_| placement.gaps) else { return Ok(()) };
        let mut beyond = last;
        for trailing in &placement.trailing {
            let mut cycle = trailing.after;
            for piece in trailing.pieces {
                each(exported, &mut cycle, piece, RowKind::Missed, give)?;
            }
            beyond = if trailing.after == last { cycle } else { beyond };
        }
        // They belong to the last segment: a run that goes on wakes once more.
        let censored = placement.censored.min(GAP_ROWS_MAX);
        let piece = Falling::new(i128::from(exported.period_ns), 0, censored);
        each(exported, &mut beyond, piece, RowKind::Censored, give)
    }
}

/// The row of a sample; `before` is the sample before it.
fn own(
    exported: &ExportedRun,
    sample: &Sample,
    before: Option<(u64, i128)>,
) -> Result<ReleaseRow, ExportError> {
    let range = || ExportError::Range { run: exported.run.clone(), cycle: sample.cycle };
    let fits = |ns: i128| i64::try_from(ns).map_err(|_| range());
    let period = i128::from(exported.period_ns);
    let release = i128::from(exported.epoch_ns) + i128::from(sample.cycle) * period;
    let wake = release + i128::from(sample.lateness.as_ns());
    fits(wake)?;
    let first = sample.flags.has(Flags::FIRST);
    let before = before.filter(|_| !first);
    let interval = before.map(|(_, before)| fits(wake - before - period)).transpose()?;
    // Saturating: the readers refuse cycles that decrease.
    let gap = before.map(|(k, _)| sample.cycle.saturating_sub(k).saturating_sub(1));
    Ok(ReleaseRow {
        cycle: fits(i128::from(sample.cycle))?,
        release_ns: fits(release)?,
        lateness_ns: sample.lateness.as_ns(),
        interval_ns: interval,
        gap_before: gap.map(|gap| fits(i128::from(gap))).transpose()?,
        first,
        cold: sample.flags.has(Flags::COLD),
        kind: RowKind::Ran,
    })
}

/// Gives the rows of missed releases, the first of which follows `cycle`.
fn each(
    exported: &ExportedRun,
    cycle: &mut u64,
    mut piece: Falling,
    kind: RowKind,
    give: &mut impl FnMut(&ReleaseRow) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    while let Some(lateness_ns) = piece.next_ns() {
        piece.take(1);
        *cycle += 1;
        let release =
            i128::from(exported.epoch_ns) + i128::from(*cycle) * i128::from(exported.period_ns);
        let fits = |ns: i128| {
            let range = |_| ExportError::Range { run: exported.run.clone(), cycle: *cycle };
            i64::try_from(ns).map_err(range)
        };
        give(&ReleaseRow {
            cycle: fits(i128::from(*cycle))?,
            release_ns: fits(release)?,
            lateness_ns,
            interval_ns: None,
            gap_before: None,
            first: false,
            cold: false,
            kind,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_core::time::{Instant, Period, Span};

    fn sample(cycle: u64, lateness_ns: i64, flags: Flags) -> Sample {
        Sample { cycle, lateness: Span::from_ns(lateness_ns), flags }
    }

    fn run() -> ExportedRun {
        ExportedRun {
            run: "idle".into(),
            period_ns: 1_000,
            epoch_ns: 500,
            ..ExportedRun::default()
        }
    }

    /// All rows of a sample.
    fn rows_of(
        rows: &mut ReleaseRows,
        run: usize,
        sample: &Sample,
        unrecorded: u64,
    ) -> Result<Vec<ReleaseRow>, ExportError> {
        let mut given = Vec::new();
        rows.sample(run, sample, unrecorded, &mut |row| {
            given.push(*row);
            Ok(())
        })?;
        Ok(given)
    }

    /// The sample's own row.
    fn row(rows: &mut ReleaseRows, run: usize, sample: &Sample) -> Result<ReleaseRow, ExportError> {
        Ok(*rows_of(rows, run, sample, 0)?.last().expect("its own"))
    }

    #[test]
    fn a_row_knows_its_neighbour_but_not_across_segments_and_runs() {
        let mut rows = ReleaseRows::new(vec![run(), run()]);
        let first = row(&mut rows, 0, &sample(3, 10, Flags::FIRST.with(Flags::COLD))).unwrap();
        assert_eq!((first.release_ns, first.interval_ns, first.gap_before), (3_500, None, None));
        assert!(first.first && first.cold && first.kind == RowKind::Ran);
        let of_run_1 = row(&mut rows, 1, &sample(9, -4, Flags::NONE)).unwrap();
        assert_eq!((of_run_1.lateness_ns, of_run_1.interval_ns), (-4, None));
        let late = row(&mut rows, 0, &sample(6, 40, Flags::NONE)).unwrap();
        assert_eq!((late.interval_ns, late.gap_before), (Some(2_030), Some(2)));
        let again = row(&mut rows, 0, &sample(90, 0, Flags::FIRST)).unwrap();
        assert_eq!((again.interval_ns, again.gap_before), (None, None));
    }

    #[test]
    fn a_missed_release_has_a_row_with_its_lateness() {
        let shown = |row: &ReleaseRow| (row.cycle, row.release_ns, row.lateness_ns, row.kind);
        let mut rows = ReleaseRows::new(vec![run()]);
        row(&mut rows, 0, &sample(3, 2_400, Flags::FIRST)).unwrap();
        // Two passed before that wake, one waited for the next.
        let missed: Vec<_> = rows_of(&mut rows, 0, &sample(7, 40, Flags::NONE), 0)
            .unwrap()
            .iter()
            .map(shown)
            .collect();
        let expected = [
            (4, 4_500, 1_400, RowKind::Missed),
            (5, 5_500, 1_000, RowKind::Missed),
            (6, 6_500, 1_040, RowKind::Missed),
            (7, 7_500, 40, RowKind::Ran),
        ];
        assert_eq!(missed, expected);
        // With unrecorded cycles nobody knows which of a gap were missed.
        let lost = rows_of(&mut rows, 0, &sample(11, 1_500, Flags::NONE), 1).unwrap();
        assert_eq!((lost.len(), lost[0].gap_before), (1, Some(3)));
        let gap = rows_of(&mut rows, 0, &sample(1 << 40, 0, Flags::NONE), 0).unwrap_err();
        assert!(gap.to_string().contains("missed in a row"), "{gap}");
        let mut ends = ReleaseRows::new(vec![run()]);
        row(&mut ends, 0, &sample(3, 1_200, Flags::FIRST)).unwrap();
        let mut trailing = Vec::new();
        ends.ended(0, 2, 0, &mut |row| {
            trailing.push(shown(row));
            Ok(())
        })
        .unwrap();
        let expected = [(4, 4_500, 1_000, RowKind::Missed), (5, 5_500, 1_000, RowKind::Censored)];
        assert_eq!(trailing, expected);
    }

    #[test]
    fn a_time_beyond_the_clock_is_refused_with_run_and_cycle() {
        let far = ExportedRun { epoch_ns: u64::MAX, ..run() };
        let error =
            row(&mut ReleaseRows::new(vec![far]), 0, &sample(7, 0, Flags::NONE)).unwrap_err();
        assert!(error.to_string().contains("\"idle\", cycle 7"), "{error}");
        let mut rows = ReleaseRows::new(vec![run()]);
        assert!(row(&mut rows, 0, &sample(0, i64::MAX, Flags::NONE)).is_err(), "the wake");
        assert!(row(&mut rows, 0, &sample(0, i64::MIN + 1_000, Flags::NONE)).is_ok());
        assert!(
            row(&mut rows, 0, &sample(1, i64::MAX - 2_000, Flags::NONE)).is_err(),
            "the interval"
        );
    }

    proptest! {
        #[test]
        fn intervals_and_gaps_are_those_of_the_analysis(
            steps in prop::collection::vec((1u64..5, -2_000i64..90_000), 1..100),
        ) {
            let mut rows = ReleaseRows::new(vec![run()]);
            let mut recording = Recording::new(RecordingConfig {
                period: Period::from_ns(1_000),
                epoch: Instant::from_ns(500),
                ..RecordingConfig::default()
            });
            let (mut cycle, mut gaps, mut largest, mut missed) = (0, 0, None, Vec::new());
            for (step, lateness_ns) in steps {
                cycle += step;
                let sample = sample(cycle, lateness_ns, Flags::NONE);
                let given = rows_of(&mut rows, 0, &sample, 0).unwrap();
                let row = *given.last().unwrap();
                let late = given.iter().filter(|row| row.kind == RowKind::Missed);
                missed.extend(late.map(|row| row.lateness_ns));
                gaps += row.gap_before.unwrap_or_default().unsigned_abs();
                largest = largest.max(row.interval_ns);
                recording.push(&sample);
            }
            prop_assert_eq!(gaps, recording.gaps());
            let outcome = recording.finish(0);
            prop_assert_eq!(largest.map(|ns| ns as f64), outcome.interval_ns.max);
            prop_assert_eq!(missed.len() as u64, gaps);
            let latest = missed.iter().copied().max().map(|ns| ns as f64);
            let of_wakes = outcome.wakes.stats.max;
            let most = if latest > of_wakes { latest } else { of_wakes };
            prop_assert_eq!(most, outcome.lateness_ns.max);
        }
    }
}
