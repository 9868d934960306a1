//! Recordings: the figures of each run of a plan, as its samples come.

use punctual_analysis::claim::ask::Ask;
use punctual_analysis::compare::series::Builder;
use punctual_analysis::quantile::Probability;
use punctual_analysis::recording::{Recording, RecordingConfig, ReleaseInstants};
use punctual_core::releases::Releases;
use punctual_core::sample::Sample;
use punctual_engine::drain::Sink;

use super::plan::PeriodicPlan;
use crate::experiment::{Standings, StandingsWriter};

/// The choices for recordings.
#[derive(Clone, Debug, Default)]
pub struct EvaluationConfig {
    /// True where conditions count as one, too ([`PeriodicPlan::counts_as_one`]).
    pub merge: bool,
    /// True where the cold cycles at the start of each block count.
    pub keep_cold: bool,
    /// Lateness above which cycles are counted.
    pub thresholds_ns: Vec<i64>,
    /// The claims that they are to show.
    pub claims: Vec<Ask>,
    /// Samples of each run that are kept as they came, from the first one on; 0 for none.
    pub first: usize,
}

/// All recordings of an experiment.
///
/// For the drain's thread, as samples come. Constant memory; touches no file.
#[derive(Debug)]
pub struct Recordings {
    /// By run, as the plan counts them.
    pub runs: Vec<Recording>,
    /// By stream: the conditions that count as one. Empty unless requested.
    pub merged: Vec<Recording>,
    /// By run, as `runs`: what a comparison needs.
    pub series: Vec<Builder>,
    /// By run, as `runs`: the first samples, as many as were requested.
    pub first: Vec<Vec<Sample>>,
    first_most: usize,
    /// By condition: whether it counts as one with others.
    as_one: Vec<bool>,
    /// The standing of the claims, by run; those of a merged run stand at each of its conditions.
    standings: StandingsWriter,
}

impl Recordings {
    /// Recordings for each stream and condition of the plan, on the grids of the runs; how the
    /// claims stand goes to `standings`.
    pub fn new(
        run_grids: &[Releases],
        plan: &PeriodicPlan,
        watch: &EvaluationConfig,
        standings: &Standings,
    ) -> Self {
        let setup = |grid: &Releases| RecordingConfig {
            period: Some(grid.period()),
            epoch: grid.first(),
            leave_out_cold: !watch.keep_cold,
            thresholds_ns: watch.thresholds_ns.clone(),
            releases: ReleaseInstants::Known,
        };
        let recording = |grid: &Releases| Recording::new(setup(grid)).watching(&watch.claims);
        let conditions = plan.conditions.len();
        let as_one = (0..conditions).map(|at| watch.merge && plan.counts_as_one(at)).collect();
        // Those that count as one are on the grid of the first.
        let of_streams = || run_grids.iter().step_by(conditions.max(1)).map(recording);
        let series = |grid: &Releases| Builder::new(grid.period().as_ns(), !watch.keep_cold);
        Self {
            runs: run_grids.iter().map(recording).collect(),
            merged: if watch.merge { of_streams().collect() } else { Vec::new() },
            series: run_grids.iter().map(series).collect(),
            first: run_grids.iter().map(|_| Vec::with_capacity(watch.first)).collect(),
            first_most: watch.first,
            as_one,
            standings: standings.writer(),
        }
    }

    /// A quantile of the lateness of a stream's wakes under a condition, or under all that count as
    /// one with it, ns: that of this share, in [0, 1]; 0 where it is an early wake. `None` where
    /// too few show it.
    pub fn lateness_ns(&self, stream: usize, condition: usize, share: f64) -> Option<u64> {
        let merged = self.merged.get(stream).filter(|_| self.as_one.get(condition) == Some(&true));
        let recording = merged.or_else(|| self.runs.get(stream * self.as_one.len() + condition))?;
        let quantile_ns = recording.wakes_so_far(Probability::from_share(share)?)?;
        Some(quantile_ns.max(0).unsigned_abs())
    }
}

impl Sink for Recordings {
    fn take(&mut self, run: usize, samples: &[Sample]) {
        self.runs[run].extend(samples);
        samples.iter().for_each(|sample| self.series[run].push(sample));
        let first = &mut self.first[run];
        let room = self.first_most - first.len();
        first.extend(samples.iter().take(room).copied());
        let (stream, condition) = (run / self.as_one.len(), run % self.as_one.len());
        if self.as_one[condition]
            && let Some(merged) = self.merged.get_mut(stream)
        {
            merged.extend(samples);
            self.standings.look(run, merged);
        } else {
            self.standings.look(run, &self.runs[run]);
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual::RtThread;
    use punctual_core::sample::Flags;
    use punctual_core::time::{Instant, Period, Span};
    use punctual_engine::wait_policy::WaitKind;

    use super::super::plan::{Condition, Stream};
    use super::*;

    #[test]
    fn the_quantile_of_wakes_is_that_of_all_conditions_that_count_as_one() {
        let (us, period) = (1_000, Period::from_ns(1_000_000).expect("positive"));
        let thread = RtThread::cpu(1).fifo(90).wait(WaitKind::Sleep);
        let condition = |name: &str| Condition {
            name: name.to_owned(),
            wait: None,
            library: None,
            loads: Vec::new(),
        };
        let plan = PeriodicPlan {
            streams: vec![Stream { thread, period, phase_ns: 0 }; 2],
            conditions: ["idle", "cpu", "memory"].map(condition).into(),
            blocks: Vec::new(),
            housekeeping: Vec::new(),
            cold: 0,
        };
        let grids = vec![Releases::new(Instant::from_ns(0), period); plan.runs()];
        let quantile = |merge, run: usize, late_us: &[i64], (judged, rank): (usize, usize)| {
            let watch = EvaluationConfig { merge, keep_cold: true, ..EvaluationConfig::default() };
            let standings = Standings::new(&[], plan.runs());
            let mut recordings = Recordings::new(&grids, &plan, &watch, &standings);
            for (at, &late_us) in late_us.iter().enumerate() {
                // Of two conditions in turn, where those are one.
                let run = if merge { run + at % 2 } else { run };
                let (cycle, lateness) = (at as u64, Span::from_ns(late_us * us));
                let flags = Flags::NONE;
                recordings.take(run, &[Sample { cycle, lateness, flags }]);
            }
            recordings.lateness_ns(judged, rank, 0.9)
        };
        let late: Vec<i64> = (1..=100).collect();
        let near = |ns: Option<u64>| ns.is_some_and(|ns| (90_000..93_000).contains(&ns));
        assert!(near(quantile(false, plan.run_index(1, 2), &late, (1, 2))));
        assert_eq!(quantile(false, plan.run_index(1, 2), &late, (1, 1)), None, "nothing ran there");
        assert!(near(quantile(true, plan.run_index(1, 1), &late, (1, 1))), "both loads");
        assert!(near(quantile(true, plan.run_index(1, 1), &late, (1, 2))), "both loads");
        assert_eq!(quantile(false, 0, &late[..5], (0, 0)), None, "too few");
        assert_eq!(quantile(false, 0, &[-3; 20], (0, 0)), Some(0), "none is late");
        assert_eq!(quantile(false, 0, &late, (9, 9)), None);
    }
}
