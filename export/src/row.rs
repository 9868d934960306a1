//! One sample as a row of a table: what it says, and what only its neighbour can tell.
//!
//! For the formats that are tables. Computes the release, the interval and the gap from two samples
//! of one run, exactly or not at all; holds one sample a run.

use punctual_core::sample::{Flags, Sample};

use crate::ExportError;

/// The columns of a table of samples, in order.
pub const COLUMNS: [&str; 10] = [
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
];

/// A run of samples: what its rows have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The name that the result gives it; a plain one ([`crate::name::plain`]).
    pub run: String,
    /// What it ran under, where several conditions count as one run; else the name again. Plain.
    pub condition: String,
    /// CPU it ran on.
    pub cpu: u32,
    /// Period, ns, at least 1.
    pub period_ns: u64,
    /// Instant of release 0 on CLOCK_MONOTONIC, ns.
    pub epoch_ns: u64,
}

/// One cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// k: the release was at epoch + k·period.
    pub cycle: i64,
    /// That instant on CLOCK_MONOTONIC, ns.
    pub release_ns: i64,
    /// wake − release, ns; negative for an early wake.
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
}

/// Turns the samples of several runs into rows.
#[derive(Debug)]
pub struct Rows {
    runs: Vec<Run>,
    /// Cycle and wake of the last sample of each run.
    previous: Vec<Option<(u64, i128)>>,
}

impl Rows {
    /// Rows of these runs, none of which has had a sample yet.
    pub fn new(runs: Vec<Run>) -> Self {
        Self { previous: vec![None; runs.len()], runs }
    }

    /// The runs.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The row of the next sample of run `run`, whose cycles do not decrease.
    ///
    /// # Errors
    /// A time that no 64-bit clock can show ([`ExportError::Range`]).
    ///
    /// # Panics
    /// When there is no such run.
    pub fn row(&mut self, run: usize, sample: &Sample) -> Result<Row, ExportError> {
        let of = &self.runs[run];
        let range = || ExportError::Range { run: of.run.clone(), cycle: sample.cycle };
        let fits = |ns: i128| i64::try_from(ns).map_err(|_| range());
        let period = i128::from(of.period_ns);
        let release = i128::from(of.epoch_ns) + i128::from(sample.cycle) * period;
        let wake = release + i128::from(sample.lateness.as_ns());
        let first = sample.flags.has(Flags::FIRST);
        let previous = self.previous[run].filter(|_| !first);
        let interval = previous.map(|(_, before)| fits(wake - before - period)).transpose()?;
        // Saturating: the readers refuse cycles that decrease.
        let gap = previous.map(|(k, _)| sample.cycle.saturating_sub(k).saturating_sub(1));
        let row = Row {
            cycle: fits(i128::from(sample.cycle))?,
            release_ns: fits(release)?,
            lateness_ns: sample.lateness.as_ns(),
            interval_ns: interval,
            gap_before: gap.map(|gap| fits(i128::from(gap))).transpose()?,
            first,
            cold: sample.flags.has(Flags::COLD),
        };
        fits(wake)?;
        self.previous[run] = Some((sample.cycle, wake));
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_analysis::recording::{Recording, Setup};
    use punctual_core::time::{Instant, Period, Span};

    fn sample(cycle: u64, lateness_ns: i64, flags: Flags) -> Sample {
        Sample { cycle, lateness: Span::from_ns(lateness_ns), flags }
    }

    fn run() -> Run {
        Run { run: "idle".into(), period_ns: 1_000, epoch_ns: 500, ..Run::default() }
    }

    #[test]
    fn a_row_knows_its_neighbour_but_not_across_segments_and_runs() {
        let mut rows = Rows::new(vec![run(), run()]);
        let first = rows.row(0, &sample(3, 10, Flags::FIRST.with(Flags::COLD))).unwrap();
        assert_eq!((first.release_ns, first.interval_ns, first.gap_before), (3_500, None, None));
        assert!(first.first && first.cold);
        let other = rows.row(1, &sample(9, -4, Flags::NONE)).unwrap();
        assert_eq!((other.lateness_ns, other.interval_ns), (-4, None));
        let late = rows.row(0, &sample(6, 40, Flags::NONE)).unwrap();
        assert_eq!((late.interval_ns, late.gap_before), (Some(2_030), Some(2)));
        let again = rows.row(0, &sample(90, 0, Flags::FIRST)).unwrap();
        assert_eq!((again.interval_ns, again.gap_before), (None, None));
    }

    #[test]
    fn a_time_beyond_the_clock_is_refused_with_run_and_cycle() {
        let far = Run { epoch_ns: u64::MAX, ..run() };
        let error = Rows::new(vec![far]).row(0, &sample(7, 0, Flags::NONE)).unwrap_err();
        assert!(error.to_string().contains("\"idle\", cycle 7"), "{error}");
        let mut rows = Rows::new(vec![run()]);
        assert!(rows.row(0, &sample(0, i64::MAX, Flags::NONE)).is_err(), "the wake");
        assert!(rows.row(0, &sample(0, i64::MIN + 1_000, Flags::NONE)).is_ok());
        assert!(rows.row(0, &sample(1, i64::MAX - 2_000, Flags::NONE)).is_err(), "the interval");
    }

    proptest! {
        #[test]
        fn intervals_and_gaps_are_those_of_the_analysis(
            steps in prop::collection::vec((1u64..5, -2_000i64..90_000), 1..100),
        ) {
            let mut rows = Rows::new(vec![run()]);
            let mut recording = Recording::new(Setup {
                period: Period::from_ns(1_000),
                epoch: Instant::from_ns(500),
                ..Setup::default()
            });
            let (mut cycle, mut gaps, mut largest) = (0, 0, None);
            for (step, lateness_ns) in steps {
                cycle += step;
                let sample = sample(cycle, lateness_ns, Flags::NONE);
                let row = rows.row(0, &sample).unwrap();
                gaps += row.gap_before.unwrap_or_default().unsigned_abs();
                largest = largest.max(row.interval_ns);
                recording.push(&sample);
            }
            prop_assert_eq!(gaps, recording.gaps());
            let outcome = recording.finish(0);
            prop_assert_eq!(largest.map(|ns| ns as f64), outcome.interval_ns.max);
        }
    }
}
