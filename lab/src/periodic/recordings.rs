//! Where the samples of an experiment go: one recording a run, and one for all loads together.
//!
//! For the drain's thread, as they come. Constant memory; touches no file.

use punctual::drain::Sink;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::compare::series::Builder;
use punctual_analysis::recording::{Recording, RecordingConfig, ReleaseInstants};
use punctual_core::releases;
use punctual_core::sample::Sample;

use super::plan::PeriodicPlan;
use crate::experiment::{Standings, StandingsWriter};

/// What recordings look for.
#[derive(Clone, Debug, Default)]
pub struct EvaluationConfig {
    /// Whether conditions count as one, too ([`PeriodicPlan::counts_as_one`]).
    pub merge: bool,
    /// Whether the cold cycles at the start of each block count.
    pub keep_cold: bool,
    /// Lateness above which cycles are counted.
    pub thresholds_ns: Vec<i64>,
    /// The claims that they are to show.
    pub claims: Vec<Ask>,
}

/// All recordings of an experiment.
#[derive(Debug)]
pub struct Recordings {
    /// By run, as the plan counts them.
    pub runs: Vec<Recording>,
    /// By stream: the conditions that count as one. Empty unless requested.
    pub merged: Vec<Recording>,
    /// By run, as `runs`: what a comparison needs.
    pub series: Vec<Builder>,
    /// By condition: whether it counts as one with others.
    as_one: Vec<bool>,
    /// How the claims stand, by run; those of a merged run stand at each of its conditions.
    standings: StandingsWriter,
}

impl Recordings {
    /// Recordings for each stream, given by its grid, and condition of the plan; how the claims
    /// stand goes to `standings`.
    pub fn new(
        grids: &[releases::Releases],
        plan: &PeriodicPlan,
        watch: &EvaluationConfig,
        standings: &Standings,
    ) -> Self {
        let setup = |grid: &releases::Releases| RecordingConfig {
            period: Some(grid.period()),
            epoch: grid.first(),
            leave_out_cold: !watch.keep_cold,
            thresholds_ns: watch.thresholds_ns.clone(),
            releases: ReleaseInstants::Known,
        };
        let recording =
            |grid: &releases::Releases| Recording::new(setup(grid)).watching(&watch.claims);
        let conditions = plan.conditions.len();
        let as_one = (0..conditions).map(|at| watch.merge && plan.counts_as_one(at)).collect();
        let all = || grids.iter().map(recording);
        let series =
            |grid: &releases::Releases| Builder::new(grid.period().as_ns(), !watch.keep_cold);
        Self {
            runs: grids
                .iter()
                .flat_map(|grid| (0..conditions).map(move |_| recording(grid)))
                .collect(),
            merged: if watch.merge { all().collect() } else { Vec::new() },
            series: grids
                .iter()
                .flat_map(|grid| std::iter::repeat_n(series(grid), conditions))
                .collect(),
            as_one,
            standings: standings.writer(),
        }
    }
}

impl Sink for Recordings {
    fn take(&mut self, run: usize, samples: &[Sample]) {
        self.runs[run].extend(samples);
        samples.iter().for_each(|sample| self.series[run].push(sample));
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
